/* space.h: a network whose images are divided among rows x columns processes, while it is written
 * node by node. Internal to transform_space. Axis 0 is the height, divided among PEERS_BANDS; axis
 * 1 the width, divided among PEERS_SPACE.
 *
 * A map of the network is divided along an axis at `cuts`: part p has its cells
 * [cuts[p], cuts[p + 1]). A layer that needs other cells than these gets them by a halo. Every
 * process works out the same for all parts, so that all make the same nodes and refuse the same. */
#ifndef NET_GRAPH_SPACE_H
#define NET_GRAPH_SPACE_H
#include "net/graph/rewrite.h"
#include "net/graph/transform.h"

/* Cells [begin, end) of a whole map along one axis. */
struct space_range {
    int64_t begin, end;
};

struct space_axis {
    int64_t cuts[SPACE_MOST + 1];
};

/* What all parts read of a map, along both axes. */
struct space_want {
    struct space_range part[2][SPACE_MOST];
};

/* A value of the whole network. */
struct space_value {
    struct space_axis *axes;  /* [2]; NULL: not divided, the same on every process */
    struct space_want *wider; /* NULL: none yet; else what `widened` has */
    value_id widened;         /* in the new graph */
};

struct space {
    struct rewrite r;
    const struct graph *graph;
    struct space_spec spec;
    int parts[2], at[2];
    struct space_value *values; /* [n_values] */
};

bool space_divided(const struct space *s, value_id value);
/* How many cells part p has. */
int64_t space_extent(const struct space_axis *axis, int p);
/* Divides the value of the whole network as `axes` [2] (copied). */
bool space_divide(struct space *s, value_id value, const struct space_axis *axes, struct err *err);
/* "layer4.0.conv2: conv <why>". Returns false. */
bool space_refuse(const struct node *node, const char *why, struct err *err);

/* The cells of `want` of a divided value that a node reads; *out is in the new graph. */
bool space_read(struct space *s, const struct node *node, value_id value,
                const struct space_want *want, value_id *out, struct err *err);
/* The same cells that a map divided as `axes` has. */
bool space_read_as(struct space *s, const struct node *node, value_id value,
                   const struct space_axis *axes, value_id *out, struct err *err);
/* A node that is not in the whole network: its name is the node's and a suffix ("": its own). */
value_id space_node(struct space *s, const struct node *node, const char *suffix, enum op_kind kind,
                    const value_id *inputs, int n, const union attr *attr);

/* Convolutions and poolings; transposed convolutions; upsampling; padding. */
bool space_window(struct space *s, const struct node *node, struct err *err);
bool space_transposed(struct space *s, const struct node *node, struct err *err);
bool space_upsample(struct space *s, const struct node *node, struct err *err);
bool space_pad(struct space *s, const struct node *node, struct err *err);

/* Nodes behind which every process has the same: one number of each whole map; whole maps. */
bool space_pool(struct space *s, const struct node *node, struct err *err);
bool space_join(struct space *s, const struct node *node, struct err *err);
/* The whole map of a divided value, for `node`, in the new graph; NO_VALUE: failed. */
value_id space_whole(struct space *s, const struct node *node, value_id value);
#endif
