/* ensemble.h: the models of a run and how each is applied to a slide: by windows, or densely
 * with a given stride and halo. Read-only once made. Private to this folder. */
#ifndef HEATMAP_ENSEMBLE_H
#define HEATMAP_ENSEMBLE_H
#include "net/model/classifier.h"
#include "net/plan/shared_weights.h"
#include "net/graph/transform.h"

#define ENSEMBLE_MAX 16
#define ENSEMBLE_SIZES 8

struct ensemble_model {
    struct model *model;
    struct graph *graph;   /* of the model, without dropout and with folded batch norm: done once */
    int64_t window;        /* raster px that a score is made from */
    int64_t side;          /* the same after the steps in the config */
    float normal[3][256];  /* RGB byte -> what the network sees */
    bool shares;           /* can be run densely */
    struct field field;    /* of the logits; where it shares */
    char reason[256];      /* why it does not share; "" if it does */
    int64_t dense_stride;  /* px between the scores of a dense run */
    int64_t pick;          /* one in `pick` of them is used */
    int64_t halo;          /* px around a block that are computed and thrown away */
    double *gain, *offset; /* [classes]: dense logits -> window logits; NULL: as they are */
};

/* Blocks that are larger than those that are computed in one go: streamed, tile by tile. */
struct ensemble_stream {
    int64_t tile;  /* px: side of the tiles; 0: no block is streamed */
    int64_t side;  /* px of the input of a block: at most */
    int64_t px;    /* the same of its area, for one model in one symmetry */
    int64_t cells; /* of a block: at most */
    bool always;   /* even where other blocks are less work */
};

struct ensemble {
    struct ensemble_model models[ENSEMBLE_MAX];
    int n;
    int64_t n_classes;
    int64_t stride; /* px from cell to cell */
    bool dense, tta;
    int64_t before, after;         /* px that a cell needs around the centre of its window */
    int64_t block;                 /* cells of the largest block's side */
    int64_t batch;                 /* windows at a time */
    int64_t sizes[ENSEMBLE_SIZES]; /* cells, ascending: dense blocks are computed at one of these */
    int n_sizes;
    struct ensemble_stream stream;
    int64_t worker_bytes;         /* that one worker may take: plans, pixels, scores */
    int64_t arena_bytes;          /* of these for the activations of whichever plan runs */
    int64_t shared_bytes;         /* that all workers together may take: transformed weights */
    struct plan_weights *weights; /* shared by all plans */
    int64_t weights_budget;       /* of one plan, see plan_options */
    int64_t least_bytes; /* that ensemble_choose needs, where it was given less; 0: enough */
    bool direct, fast;   /* kernels, see plan_options */
};

/* Takes over the models. All must have the same classes. */
bool ensemble_init(struct ensemble *ensemble, struct model **models, int n, int64_t stride,
                   struct err *err);
void ensemble_free(struct ensemble *ensemble); /* also fine on a zeroed struct */

/* Can all be run densely, and is that exact for all? *reason: why not, in words. */
bool ensemble_shares(const struct ensemble *ensemble, const char **reason);
bool ensemble_exact(const struct ensemble *ensemble, const char **reason);

/* Fixes the mode and the size of blocks such that two workers and what they share stay within
 * `bytes`; with direct convolutions if they would not otherwise. Where that is not possible either,
 * ensemble->least_bytes is the minimum. */
bool ensemble_choose(struct ensemble *ensemble, bool dense, bool tta, int64_t bytes,
                     struct err *err);

/* After ensemble_choose of a dense ensemble: blocks may be streamed, each at most `group_cost` px
 * of network input; within the same `bytes`. Chooses stream, but for `always`; with too little
 * memory stream.tile stays 0. Fails for networks that cannot be streamed, by name. */
bool ensemble_choose_stream(struct ensemble *ensemble, int64_t group_cost, int64_t bytes,
                            struct err *err);

/* Cells that a dense block of n cells is computed with. */
int64_t ensemble_size(const struct ensemble *ensemble, int64_t n);
/* px of the region that n cells need. */
int64_t ensemble_region(const struct ensemble *ensemble, int64_t n);
/* px of a dense input of n cells for one model. */
int64_t ensemble_input(const struct ensemble *ensemble, const struct ensemble_model *model,
                       int64_t n);
/* Bytes of the models' parameters as they are held, in no layout of a kernel. */
int64_t ensemble_parameter_bytes(const struct ensemble *ensemble);
/* px that pass through the networks for a block; windows is how many of its cells are wanted. */
int64_t ensemble_cost(const struct ensemble *ensemble, int64_t width, int64_t height,
                      int64_t windows);
#endif
