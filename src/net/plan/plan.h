/* plan.h: a graph prepared to run at its current shapes: ordered kernels, the layout of every
 * tensor, and one arena in which tensors that are never alive at the same time share memory.
 * Nothing is allocated while it runs. How it is run (whole, image by image, sample by sample) is
 * decided by the options: see execution.h. A function that this way of running lacks fails with an
 * error that names it, or returns NULL.
 *
 * A plan reads the parameters of its graph and must not outlive it; the graph must not change
 * (other than the parameters' floats, see plan_refresh) while a plan exists. A plan is used by one
 * thread at a time and itself runs on `threads` OpenMP threads; different plans of one graph may
 * run at the same time. In PLAN_TRAIN and PLAN_TUNE the number of threads changes no bits: outputs,
 * gradients and running statistics. In PLAN_INFER it changes none with our own kernels (AVX2,
 * AVX-512), but may change the last digits of large linear layers.
 *
 * Inference:                                Training step:
 *     memcpy(plan_input(p, 0), x, ..);          plan_zero_gradients(p);
 *     plan_forward(p, &err);                    memcpy(plan_input(p, 0), x, ..);
 *     y = plan_output(p, 0);                    plan_forward(p, &err);
 *                                               loss_..(plan_output(p, 0), ..,
 *                                                       plan_output_gradient(p, 0));
 *                                               plan_backward(p, &err);
 *                                               update from plan_gradients(p, &n);
 */
#ifndef NET_PLAN_PLAN_H
#define NET_PLAN_PLAN_H
#include "net/graph/graph.h"
#include "net/plan/peers.h"
#include "net/plan/shared_weights.h"

struct plan;

enum plan_mode {
    PLAN_INFER, /* no dropout, batch norm uses its running statistics */
    PLAN_TRAIN, /* dropout, batch statistics (running ones are updated), backward */
    PLAN_TUNE,  /* backward, but dropout and batch norm as in PLAN_INFER (explaining, frozen BN) */
};

/* How activations are kept from the forward to the backward pass. */
enum plan_saving {
    SAVING_ALL,       /* as they are */
    SAVING_RECOMPUTE, /* only some; the others are recomputed: the same gradients bit for bit */
    SAVING_HALF,      /* as bfloat16, 8 bits of precision; everything is computed in float */
};

/* The layout of inputs and outputs of a graph that is part of another. */
enum plan_ends {
    PLAN_ENDS_PLAIN,
    PLAN_ENDS_NATIVE_OUTPUTS, /* outputs in the layout they were computed in: plan_output cannot
                                 read them */
    PLAN_ENDS_BLOCKED_INPUTS, /* inputs in the blocked layout that kernels use for images */
};

/* An image that is not in memory as a whole. */
struct plan_source {
    void *arg;
    /* Writes rows [y, y + h), columns [x, x + w) of input 0 of the graph, [C, h, w] plain, at batch
     * 1. Within the image; any order; the same floats every time. Not called from two threads at
     * once, but from another one than the plan's. */
    bool (*read)(void *arg, int64_t y, int64_t x, int64_t h, int64_t w, float *out,
                 struct err *err);
};

/* Takes output `output` of the graph, a map [1, C, H, W], part by part: every cell once. */
struct plan_sink {
    void *arg;
    bool (*write)(void *arg, int output, int64_t y, int64_t x, int64_t h, int64_t w,
                  const float *map, struct err *err);
};

/* Which cells of the maps that a network gives are wanted. */
struct plan_wish {
    void *arg;
    /* Whether any cell in rows [y, y + h), columns [x, x + w) of output `output` is wanted. The
     * same answer every time. */
    bool (*any)(void *arg, int output, int64_t y, int64_t x, int64_t h, int64_t w);
};

/* How strips that exceed the budget come to the disk and back. The first is the fastest; the others
 * are there to be compared with it. */
enum plan_spilling {
    SPILLING_AHEAD,  /* several tiles together, while others are computed */
    SPILLING_GROUPS, /* several tiles together, waited for */
    SPILLING_TILES,  /* tile by tile, waited for */
};

/* A network run tile by tile on one large image, each cell of every map computed once a pass: what
 * a tile needs of its neighbours above and to the left (strips) is kept from when they were
 * computed. Then only plan_output of small outputs (not maps) can be accessed, plan_input only
 * without a source. Batch 1; batch norm must be frozen
 * (PLAN_TUNE, norm_frozen) or absent. */
struct plan_stream {
    const struct plan_source *source; /* NULL: plan_input has the image */
    const struct plan_sink *sink;     /* for outputs that are maps; NULL: plan_output has them */
    /* PLAN_INFER, all outputs maps: tiles that no wanted cell depends on are neither read nor
     * computed. Other cells may be wrong or, of tiles that are left out, never given. NULL: all are
     * wanted. */
    const struct plan_wish *wish;
    int64_t tile_px; /* side of a tile; 0: the largest that fits the budget */
    size_t budget;   /* bytes of everything the plan allocates; 0: no limit. One that cannot be met
                        is refused with the least that can */
    const char *spill; /* folder for strips that exceed the budget; NULL: they stay in memory */
    bool bf16;         /* strips are kept as bfloat16: gradients change by 0.2 to 0.4 %, of small
                          tiles (32 px) by 0.5 % */
    const int64_t *band_rows; /* [bands + 1]: rows of the image that peers[PEERS_BANDS] divide it
                                 at (net/stream/divide.h); NULL: as equal as possible. Each then has
                                 its rows of maps, all other outputs, and its part of the gradients:
                                 the sum over the bands is the gradient */
    enum plan_spilling spilling;
    size_t besides; /* bytes that the process takes besides the plan, of which messages speak too:
                       see net/stream/budget.h */
    size_t limit;   /* of the process, for messages; 0: budget + besides */
};

/* Whoever runs the tiles of an image: gives the cells that the op carry adds to a tile, and takes
 * their gradients. x and y in the layout that carry_layout (net/plan/step.h) gives them. */
struct plan_carry {
    void *arg;
    void (*forward)(void *arg, int index, const float *x, float *y);
    void (*backward)(void *arg, int index, const float *dy, float *dx);
};

/* What a streamed plan did. */
struct plan_streamed {
    int64_t tile_px, tiles_down, tiles_across;
    int64_t tiles_still;                /* skipped in the last backward pass: no gradient */
    int64_t tiles_left_out;             /* of the last forward pass: nothing wanted needs them */
    size_t predicted_bytes;             /* of all that it allocates */
    size_t strip_bytes, strips_spilled; /* of all tiles; in the file */
    double waited_source_s, waited_strips_s, strip_io_s; /* over all passes */
};

struct plan_options {
    enum plan_mode mode;
    int threads;          /* >= 1 */
    const value_id *keep; /* values that must stay readable after a run, besides the outputs */
    int n_keep;
    enum plan_saving saving; /* PLAN_TRAIN and PLAN_TUNE */
    /* SAVING_RECOMPUTE: the maximum size of the arena in bytes; no more is recomputed than this
     * requires. 0: as many segments as the square root of the number of nodes. */
    size_t arena_budget;
    /* The others with whom work is shared, by group; must outlive the plan. NULL: none. */
    const struct plan_peers *peers[PEER_GROUPS];
    /* Sums over peers (op all_reduce) are waited for where they start, instead of running while
     * what does not depend on them is computed. The same bits. */
    bool wait_for_sums;
    /* PLAN_TRAIN: batch norm uses the statistics of all peers of these groups (bit 1u << group). 0:
     * its own. */
    uint32_t norm_peers;
    /* PLAN_TRAIN: batch norm as in PLAN_TUNE: with its running statistics, which stay. */
    bool norm_frozen;
    bool input_gradients; /* backward also to the inputs of the graph */
    /* PLAN_TRAIN, PLAN_TUNE: steps that only make gradients of parameters come after all others, so
     * that the two halves of the backward pass can run apart: plan_backward_inputs, then, any time
     * later, plan_backward_weights. The same bits; activations and their gradients stay until then,
     * which takes more memory. Not with SAVING_RECOMPUTE, per_sample or stream. */
    bool split_backward;
    /* Transformed weights are shared through this, where another plan may already have put them;
     * must outlive the plan, and parameters must not change while others use them. NULL: its own.
     * PLAN_TRAIN, PLAN_TUNE: NULL: transformed in every run, which is slower for small images but
     * needs no memory; else only by plan_new and plan_refresh. Not with SAVING_RECOMPUTE. */
    struct plan_weights *weights;
    /* The caller's memory for activations (and, in training, their gradients), aligned to 64 bytes;
     * used if it is large enough (see plan_memory.lent) and not touched before a run. Plans that
     * share it must not run at the same time; an output is valid until another of them runs, and a
     * backward pass must follow its forward pass at once. NULL: its own. */
    void *arena;
    size_t arena_room;
    /* PLAN_TRAIN, PLAN_TUNE: the caller's floats for plan_gradients, graph_parameter_count of them;
     * not zeroed. Plans of one graph that share them add to one sum. NULL: its own. */
    float *gradients;
    /* PLAN_TRAIN, PLAN_TUNE: the batch is so many units of as many samples each, whose gradients
     * stay apart: plan_gradients has those of one unit after another, and plan_options.gradients
     * must have room for them. Refused where a layer cannot do that (own kernels for convolutions,
     * linear layers and norms of single samples can), and unless the whole graph runs at once; nor
     * may samples be coupled or moved to another axis. 0: one. */
    int64_t units;
    bool join; /* several units: gradients of some parameters are not made for each unit, where that
                * is slower; see plan_join_units */
    size_t weights_budget; /* PLAN_INFER: maximum bytes of weights transformed for Winograd
                            * convolutions; layers that do not fit are direct. 0: no limit */
    int winograd_tile;     /* 2, 4 or 6: Winograd convolutions with this tile wherever possible (to
                            * compare); 0: the cheaper tile, where it is worth it */
    bool fast;             /* Winograd convolutions may use tiles of 6 x 6: faster, less exact */
    bool direct;           /* no Winograd convolutions: slower, the last digits more accurate */
    bool no_sharing;       /* every tensor has its own memory, all readable; for tests, debugging */
    bool by_image; /* PLAN_INFER: the first layers may process the batch image by image, one thread
                    * each: faster. Then only plan_input and plan_output can be accessed, and
                    * parameters must not change */
    bool per_sample; /* PLAN_TRAIN, PLAN_TUNE: every sample of the batch runs alone; see
                      * plan_sample_gradients. No values can be kept */
    const struct plan_stream *stream; /* tile by tile; copied, with what it points to outliving the
                                       * plan. NULL: not */
    const struct plan_carry *carry;   /* of tiles of an image: net/stream; must outlive the plan */
    enum plan_ends ends;              /* of parts of a network */
    bool profile;                     /* measure every step (its shortest run); see plan_print */
};

/* *out is the caller's; free with plan_free. The graph's parameters must have been allocated.
 *
 * This takes tens of milliseconds: 23 ms for ResNet-18 at batch 1 (PLAN_INFER), 53 ms for
 * ResNet-50, most of it weights that are transformed, which plans can share (options.weights);
 * 5 and 12 ms for training at batch 8, most of it kernels that oneDNN generates and keeps: the next
 * plan takes 1 and 2 ms. SAVING_RECOMPUTE adds 1 ms, an arena_budget a few more, no kernels.
 * Weights are on large pages: where the system must move other memory first, inference has taken
 * 0.4 s. So a plan is made once for a size and used for many batches.
 */
bool plan_new(const struct graph *graph, const struct plan_options *options, struct plan **out,
              struct err *err);
void plan_free(struct plan *plan);

/* What plan_new would take if it ran the whole graph at once, found without making it. */
struct plan_estimate {
    size_t arena; /* bytes of activations, their gradients and scratch */
    size_t plan;  /* bytes of the plan itself with kernels and their weights, about */
    int segments; /* of the forward pass, all but the last of which are recomputed; 1: none is */
};
/* False also if options.arena_budget cannot be met: ERR_MEMORY, with the least that can in *out.
 * Takes milliseconds. */
bool plan_estimate(const struct graph *graph, const struct plan_options *options,
                   struct plan_estimate *out, struct err *err);

/* The floats of input and output i of the graph, plain, of the shape of the value. They belong to
 * the plan and do not move. */
float *plan_input(struct plan *plan, int i);
const float *plan_output(const struct plan *plan, int i);

bool plan_forward(struct plan *plan, struct err *err);
/* Only as far as is needed for `value`. */
bool plan_forward_until(struct plan *plan, value_id value, struct err *err);

/* Seeds the random numbers of the next forward pass: dropout of image i of the batch is keyed by
 * (seed, the node's name, first_sample + i), independent of where and in which batch it is
 * computed. */
void plan_set_random(struct plan *plan, uint64_t seed, uint64_t first_sample);

/* Applies parameters that changed since plan_new. Needed only in PLAN_INFER and with
 * options.weights, where weights are kept in the kernels' own layouts. */
bool plan_refresh(struct plan *plan, struct err *err);

/* --- backward (PLAN_TRAIN, PLAN_TUNE; after plan_forward) --- */

/* Where to write the gradient of the loss with respect to output i, plain. Initially zero, unless
 * the arena is lent. */
float *plan_output_gradient(struct plan *plan, int i);
/* From the output gradients to all parameters (and inputs); adds to the existing gradients. */
bool plan_backward(struct plan *plan, struct err *err);
/* The halves of it (options.split_backward), in this order: gradients with respect to the inputs;
 * those of the parameters that were left. plan_backward is both. */
bool plan_backward_inputs(struct plan *plan, struct err *err);
bool plan_backward_weights(struct plan *plan, struct err *err);
void plan_zero_gradients(struct plan *plan);
/* The gradients of all learnt parameters in the order of graph->values, one after another, plain;
 * *count floats (of each unit, if there are several: options.units). NULL in PLAN_INFER. */
float *plan_gradients(struct plan *plan, int64_t *count);
/* The part of it that belongs to a parameter, of the first unit; NULL if it is not learnt. */
float *plan_parameter_gradient(struct plan *plan, value_id parameter);

/* Called within plan_backward as soon as the gradient of a parameter is complete: to send it while
 * the rest is computed. The order is the same in every pass of a plan: about from the last layer to
 * the first, but gradients of weights that are computed while sums over peers are under way
 * (wait_for_sums) may come after those of layers before. With several units `gradient` is that of
 * the first. hook NULL: none. */
typedef void (*plan_gradient_hook)(void *arg, value_id parameter, float *gradient, int64_t count);
void plan_on_gradient(struct plan *plan, plan_gradient_hook hook, void *arg);

/* Called after every step of a forward or backward pass, from the thread that runs the plan: to
 * move messages meanwhile. Must not touch the plan. hook NULL: none. Not in plans that are run
 * image by image, sample by sample or tile by tile, where it is never called. */
typedef void (*plan_step_hook)(void *arg);
void plan_on_step(struct plan *plan, plan_step_hook hook, void *arg);

/* From now on batch norm does not (hold) or does update its running statistics in a forward pass:
 * for one that is run again on the same batch. */
void plan_hold_statistics(struct plan *plan, bool hold);

/* Per-sample gradients (options.per_sample): for every image of a batch (inputs in place) calls
 * `sample` with the gradient of that image alone, [count] as in plan_gradients, valid during the
 * call. `loss` writes the gradient with respect to the outputs for one image: outputs[i] and
 * gradients[i] have batch 1. Batch norm in PLAN_TRAIN couples images: plan_new refuses it.
 * Overwrites plan_gradients, also if they are lent.
 * plan_forward and plan_backward work too and give the sum, but compute every image but the last
 * one twice. */
struct plan_samples {
    bool (*loss)(void *arg, int64_t sample, const float *const *outputs, float *const *gradients,
                 struct err *err);
    bool (*sample)(void *arg, int64_t sample, const float *gradients, int64_t count,
                   struct err *err);
    void *arg;
};
bool plan_sample_gradients(struct plan *plan, const struct plan_samples *samples, struct err *err);

/* --- units (options.units, options.join) --- */

/* Of a joined parameter only this is known of each unit: of the squared norm of its gradient, part
 * of what plan_unit_squares gives; and plan_join_units, once after plan_backward, adds the sum of
 * the units' gradients, each times its factor, to the gradient of the first unit. A unit whose
 * factor is 0 is left out, even if it is not finite. Activations are lost. */
bool plan_is_joined(const struct plan *plan, value_id parameter);
/* [units]: after plan_backward, the squared norms of the gradients of all joined parameters
 * together. */
const double *plan_unit_squares(const struct plan *plan);
bool plan_join_units(struct plan *plan, const double *factors, struct err *err);

/* --- looking inside --- */

/* Copies the activation (after a forward) or its gradient (after a backward) of a value in plain
 * order into out [shape of the value]. The value must be an input, an output or in `keep`. */
bool plan_activation(struct plan *plan, value_id value, float *out, struct err *err);
bool plan_activation_gradient(struct plan *plan, value_id value, float *out, struct err *err);

struct plan_memory {
    size_t arena;        /* activations, their gradients, scratch: with sharing */
    bool lent;           /* it is in options.arena */
    size_t unshared;     /* the same without sharing */
    size_t weights;      /* copies of parameters in the kernels' layouts (PLAN_INFER) */
    size_t shared;       /* the same in options.weights, where other plans may use them */
    size_t winograd;     /* those of both that options.weights_budget limits */
    size_t gradients;    /* of parameters */
    bool gradients_lent; /* they are in options.gradients */
};
struct plan_memory plan_memory(const struct plan *plan);
/* False: the plan is not streamed. */
bool plan_streamed(const struct plan *plan, struct plan_streamed *out);
int plan_steps(const struct plan *plan);
/* One line per step: node, kernel, shape, memory and, with options.profile, time, GFLOP/s and its
 * share of the processor's peak (measured now, for about 20 ms). Operations are counted as those of
 * the direct method, so a Winograd convolution may exceed 100 %. */
void plan_print(const struct plan *plan, FILE *stream);
#endif
