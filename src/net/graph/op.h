/* op.h: the table of operations. An op is one entry: its name, its attributes, how the shape of its
 * output follows from those of its inputs, how it is planned forward and backward, and its name in
 * ONNX. The entries are in ops/, one file per family. */
#ifndef NET_GRAPH_OP_H
#define NET_GRAPH_OP_H
#include "net/graph/attr.h"

struct node;
struct plan_node;

/* Inputs in their order; [..] may be absent (NO_VALUE). Images are [N, C, H, W]. */
enum op_kind {
    OP_CONV,           /* x, weight [O, C/groups, kh, kw], [bias O], [residual, added before act] */
    OP_CONV_TRANSPOSE, /* x, weight [C, O/groups, kh, kw], [bias O] */
    OP_LINEAR,         /* x [.., C], weight [O, C], [bias O], [residual, added before act] */
    OP_MATMUL,         /* a [.., M, K], b [.., K, N]; batch axes broadcast */
    OP_BATCH_NORM,     /* x [N, C, ..], weight C, bias C, running_mean C, running_var C */
    OP_GROUP_NORM,     /* x [N, C, ..], weight C, bias C */
    OP_LAYER_NORM,     /* x, weight, bias (shape of the normalised axes) */
    OP_RELU,
    OP_LEAKY_RELU,
    OP_SILU,
    OP_GELU,
    OP_SIGMOID,
    OP_TANH,
    OP_MAX_POOL,
    OP_AVERAGE_POOL,
    OP_GLOBAL_MAX_POOL,     /* [N, C, H, W] -> [N, C, 1, 1] */
    OP_GLOBAL_AVERAGE_POOL, /* [N, C, H, W] -> [N, C, 1, 1] */
    OP_ADAPTIVE_AVERAGE_POOL,
    OP_LRN,
    OP_ADD, /* a, b: broadcast as numpy does */
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_SCALE,  /* factor x + offset */
    OP_CONCAT, /* any number of inputs */
    OP_SLICE,
    OP_PAD,
    OP_RESHAPE,
    OP_FLATTEN, /* ONNX and PyTorch: [product of axes before, product of axes from `axis`] */
    OP_TRANSPOSE,
    OP_EXPAND_BATCH, /* x [1, ..], like [N, ..] -> [N, ..]: x repeated for every image */
    OP_REDUCE_MEAN,
    OP_SOFTMAX,
    OP_LOG_SOFTMAX,
    OP_DROPOUT,
    OP_UPSAMPLE,
    OP_CONVERT,         /* x rounded to what its attributes can store, and kept so */
    OP_HALO,            /* [N, C, H, W], one part of an image: with the borders of its neighbours */
    OP_ALL_REDUCE,      /* summed over peers */
    OP_ALL_GATHER,      /* the parts of all peers joined */
    OP_GLOBAL_LSE_POOL, /* [N, C, H, W] -> [N, C, 1, 1]: log-sum-exp */
    OP_ATTENTION_POOL,  /* x [N, C, H, W], scores [N, 1, H, W] -> [N, C, 1, 1] */
    OP_STANDARDIZE,     /* weight [O, ..], gain O -> a weight of the same shape */
    OP_CARRY,           /* [N, C, H, W], one tile of an image: with cells of its neighbours */
    OP_ATTENTION, /* q [N, T, heads d], k, v [N, S, heads d], [bias [1|N, 1|heads, T, S]], [mask
                     [N, S]] -> [N, T, heads d]; without k and v: q, k, v side by side [N, T,
                     3 heads d] */
    OP_RMS_NORM,  /* x, weight (shape of the normalised axes) */
    OP_FUNCTION,  /* a function of one element, named by an attribute */
    OP_REDUCE_MAX,
    OP_TAKE,           /* x, places [K] along one axis -> x with K places there */
    OP_EMBEDDING,      /* ids [N, T], table [rows, C] -> [N, T, C] */
    OP_RELATIVE_BIAS,  /* x [N, T, ..], of which only T counts, table [rows, heads] -> [1, heads, T,
                          T]: the bias of an attention */
    OP_REDUCE_SCATTER, /* one part of a tensor, or of its sum over peers */
    OP_KINDS
};

enum attr_type { ATTR_INT, ATTR_REAL, ATTR_DOUBLE, ATTR_BOOL, ATTR_CHOICE, ATTR_SHAPE, ATTR_BITS };

/* One attribute, for printing, comparing and checking without knowing the op. */
struct attr_field {
    const char *name;
    enum attr_type type; /* ATTR_INT is int64_t, ATTR_REAL float, ATTR_CHOICE an enum (int) */
    size_t offset;       /* in union attr */
    int count;           /* of int64_t or double in a row; 1 otherwise */
    double min, max;     /* allowed values, inclusive */
    const char *const *choices;
};

struct op {
    enum op_kind kind;
    const char *name; /* "batch_norm" */
    const char *onnx; /* "BatchNormalization"; NULL: opset 17 has no single node for it */
    int min_inputs, max_inputs;
    unsigned optional;               /* bit i: input i may be NO_VALUE */
    const struct attr_field *fields; /* ends with a NULL name; NULL: no attributes */
    /* Fills absent attributes with their defaults (zero stride -> 1). NULL: nothing to fill. */
    void (*complete)(union attr *attr);
    /* in[i] is NULL where input i is absent. Checks that attributes and shapes are consistent; the
     * message does not name the node (the caller does). */
    bool (*shape)(const union attr *attr, const struct shape *const *in, int n_inputs,
                  struct shape *out, struct err *err);
    /* How the output is stored, given how input 0 is; its numbers must be storable so. NULL: as
     * float32. */
    struct storage (*storage)(const union attr *attr, const struct storage *x);
    /* Adds the kernels of the forward and (train mode) of the backward pass; see plan/step.h. */
    bool (*forward)(struct plan_node *node, struct err *err);
    bool (*backward)(struct plan_node *node, struct err *err);
};

/* Never NULL for a kind below OP_KINDS. */
const struct op *op_get(enum op_kind kind);

/* Checks every field against its limits. */
bool op_check_attr(const struct op *op, const union attr *attr, struct err *err);
/* Number i of a field, for any type but ATTR_SHAPE. */
double op_attr_value(const struct attr_field *field, const union attr *attr, int i);
bool op_attr_equal(const struct op *op, const union attr *a, const union attr *b);

/* axis in [0, rank), negative ones counted from the end; -1 if it is out of range. */
int axis_of(int64_t axis, int rank);
/* The error for an axis that axis_of does not find. Returns false. */
bool no_axis(int64_t axis, int rank, struct err *err);

/* The output extent of a window that slides over an extent; < 1 if it does not fit. */
int64_t window_extent(int64_t extent, int64_t kernel, int64_t stride, int64_t pad_begin,
                      int64_t pad_end, int64_t dilation, bool ceil_mode);
#endif
