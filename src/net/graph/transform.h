/* transform.h: graphs made from graphs. Every transform returns a new graph and leaves the old one
 * unchanged; unchanged parameters share their floats, so the new graph sees later changes of those
 * but not of folded ones. Aliases go with their numbers (graph_alias). *out is the caller's; free
 * with graph_free. Below 1 ms for the largest networks, but for folding, which writes new weights:
 * 30 ms for 25 M parameters. */
#ifndef NET_GRAPH_TRANSFORM_H
#define NET_GRAPH_TRANSFORM_H
#include "net/graph/graph.h"

/* For inference: dropout removed, tokens that nobody reads left out, batch norm folded, activation
 * and residual fused. Values named in `keep` (by graph_find) stay values of the new graph under
 * their names. */
bool transform_for_inference(const struct graph *graph, const char *const *keep, int n_keep,
                             struct graph **out, struct err *err);

/* The individual steps of it. */
bool transform_remove_dropout(const struct graph *graph, struct graph **out, struct err *err);
/* Where only some tokens of a sequence [N, T, C] are read by a slice, at most half of them, such as
 * the class token of a ViT, only those go through the layers that treat every token by itself and
 * are queries of the last attention. The results are the same; layers of which only some tokens
 * are left have no alias. Parameters keep their order. */
bool transform_rows(const struct graph *graph, const char *const *keep, int n_keep,
                    struct graph **out, struct err *err);
/* Batch norm after a conv, transposed conv or linear layer is folded into its weight and bias
 * (computed in double); a batch norm that cannot be folded stays. The parameters keep their names.
 */
bool transform_fold_batch_norm(const struct graph *graph, const char *const *keep, int n_keep,
                               struct graph **out, struct err *err);
/* conv (+ add of another value) (+ relu, silu, gelu) -> one node; linear (+ activation). */
bool transform_fuse(const struct graph *graph, const char *const *keep, int n_keep,
                    struct graph **out, struct err *err);

/* All inputs with another batch; images with another size (0: as it is). */
bool transform_resize(const struct graph *graph, int64_t batch, int64_t height, int64_t width,
                      struct graph **out, struct err *err);

/* A network of one grey channel, run on RGB: a 1x1 convolution before it makes 0.299 R + 0.587 G +
 * 0.114 B (ITU-R BT.601). Its only input must be an image with one channel. */
bool transform_grey(const struct graph *graph, struct graph **out, struct err *err);

/* Every attention as products of matrices with a softmax between them, whose output is the map of
 * attention; for those who look at it, and for ONNX. Slower, and all scores are in memory. A query
 * that sees no key gives the mean of all values, not 0. */
bool transform_expand_attention(const struct graph *graph, struct graph **out, struct err *err);

/* Without the node that makes `value`: its first input, of the same shape, takes its place. */
bool transform_bypass(const struct graph *graph, value_id value, struct graph **out,
                      struct err *err);

/* With all parameters as buffers: nothing is learnt, and plans compute no gradients of weights. */
bool transform_freeze(const struct graph *graph, struct graph **out, struct err *err);

/* Adapters of low rank beside all convolutions and linear layers with more weights than their
 * adapter would have: W x becomes W x + B (A x), A [rank, ..] "NAME.adapter_down.weight" drawn by
 * the seed, B "NAME.adapter_up.weight" 0. The graph has its floats. */
bool transform_adapters(const struct graph *graph, int64_t rank, uint64_t seed, struct graph **out,
                        struct err *err);
/* The same network without adapters: W + B A. */
bool transform_merge_adapters(const struct graph *graph, struct graph **out, struct err *err);
/* Only some parameters stay parameters, all others become buffers, as by transform_freeze: those
 * whose names match a pattern (fnmatch), or "adapters", "norms", "biases". A pattern without any is
 * an error. */
bool transform_learn(const struct graph *graph, const char *const *patterns, size_t n,
                     struct graph **out, struct err *err);

/* Splits the graph at `value`: *head has the values that cross the cut as outputs, *tail has them
 * as inputs, in the same order and with the same names. Nodes that `value` needs are in the head,
 * all others in the tail. */
bool transform_cut(const struct graph *graph, value_id value, struct graph **head,
                   struct graph **tail, struct err *err);

/* Only what `value` needs, with `value` as the only output. */
bool transform_prefix(const struct graph *graph, value_id value, struct graph **out,
                      struct err *err);

enum padding { PADDING_ZERO, PADDING_REFLECT, PADDING_REPLICATE, PADDING_VALID };
/* The padding of every convolution and pooling of the network. VALID removes it; where branches of
 * different size then meet, the larger one is cropped around its centre. */
bool transform_padding(const struct graph *graph, enum padding padding, struct graph **out,
                       struct err *err);

/* How a classifier gets from its last map to its classes. */
enum head_kind {
    HEAD_AUTO,      /* as the network is */
    HEAD_MEAN,      /* the mean of the map, then the linear layer */
    HEAD_LSE,       /* the same with log-sum-exp (global_lse_pool) in place of the mean */
    HEAD_MAX,       /* the same with the maximum */
    HEAD_ATTENTION, /* a mean with learnt weights: the softmax of w (tanh(V h) sigmoid(U h)); 1x1
                       convolutions head.v, head.u and head.w, the last one gives the scores */
    HEAD_CLASSES,   /* the linear layer at every cell ("head.map"), then log-sum-exp: where the
                       network sees a class is a map of the network. No dropout before it */
};
extern const char *const head_names[]; /* in this order; ends with NULL */
#define HEAD_HIDDEN 128                /* channels of head.v and head.u */
/* Of a network that ends in a pooling of a whole map, [flatten], [dropout] and a linear layer,
 * which keeps its parameters. Others are refused. */
bool transform_head(const struct graph *graph, enum head_kind head, struct graph **out,
                    struct err *err);

/* What keeps the numbers of a network in bounds while it is trained. */
enum norm_rule {
    NORM_BATCH,  /* batch norm, as the network has it */
    NORM_FROZEN, /* the same network; its plans use the running statistics (options.norm_frozen) */
    NORM_WS,     /* weight standardisation (scaled, Brock et al. 2021): a batch norm behind a
                    convolution becomes its bias, and its weight is standardised (op standardize)
                    with a learnt gain "name.gain", smaller at the end of residual branches */
    NORM_FIXUP,  /* none (Zhang et al. 2019): scalar biases before and behind every convolution, a
                    scalar factor at the end of residual branches, and initial values that suit */
    NORM_GROUP,  /* group norm with the same weights and biases, over the largest number of groups
                    up to 32 of at least 4 channels: an image is normalised by itself */
};
extern const char *const norm_names[]; /* in this order; ends with NULL */
/* For a network that has no floats yet: all but the first two have other parameters. Networks for
 * which a rule does not exist are refused: ws needs every batch norm to follow a convolution, fixup
 * also residual branches. */
bool transform_norm(const struct graph *graph, enum norm_rule rule, struct graph **out,
                    struct err *err);

/* The network as a sliding window of `window` px (square; its training size), run on a whole image:
 * strides beyond `output_stride` become dilation of everything that follows, global pooling a
 * sliding mean over the extent of the window, flatten and the classifier 1x1 convolutions; the
 * output is [N, classes, h, w], one score every output_stride px. The input is resized to height x
 * width. */
struct dense_spec {
    int64_t window;
    int64_t output_stride;
    int64_t height, width;
};
bool transform_dense(const struct graph *graph, const struct dense_spec *spec, struct graph **out,
                     struct err *err);

/* The network with one more output, CLASS_MAP_OUTPUT [N, classes, h, w]: the logits that each cell
 * of the map that it pools would give alone. It must end in a pooling of a whole map, [flatten],
 * [dropout] and a linear layer, whose floats are copied; or in a pooling of a map that has the
 * classes for channels. */
#define CLASS_MAP_OUTPUT "class_map"
struct map_ending {
    enum op_kind pooling; /* how the map is pooled */
    bool classified;   /* the classes are there before the pooling; else a linear layer follows */
    const float *bias; /* [classes], the graph's: what a cell gets without any evidence; NULL: 0 */
};
bool transform_class_map(const struct graph *graph, struct graph **out, struct map_ending *about,
                         struct err *err);

/* The part of a network whose images are divided among rows x columns processes, for the process at
 * (row, column): shapes are those of its part, and what a layer needs of the neighbours comes by
 * halos (op halo; group PEERS_BANDS along the height, then PEERS_SPACE along the width of what is
 * taller by then, which brings the corners). A cell belongs to whom the middle of its window
 * belongs to; padding is at the border of the whole image only. Batch norm must be frozen or
 * synchronised over both groups (plan_options.norm_peers).
 *
 * Poolings of whole maps are made from those of the parts, and behind them every process computes
 * the same; a flattened map and an adaptive pooling to several cells are made from the whole map,
 * which every process then has. Gradients that processes give for an output of this kind are added
 * up: one process gives the gradient of the loss, the others leave theirs zero. Outputs that are
 * maps are those of the part, divided as the image is if they are as large; or, with whole_outputs,
 * they are whole on every process too. The sum over all processes of the gradients of a parameter
 * is then its gradient.
 *
 * All parts have nodes of the same names in the same order, those of the network under their names;
 * parameters share their floats and have the order of the network. Refused with names: parts that
 * are smaller than a halo, ops that see a whole map at once (group and layer norm, attention
 * between cells), dropout between maps. */
#define SPACE_MOST 64 /* parts along an axis */
struct space_spec {
    int rows, columns, row, column;
    bool whole_outputs;
};
bool transform_space(const struct graph *graph, const struct space_spec *spec, struct graph **out,
                     struct err *err);
/* The pixels [y0, y1) x [x0, x1) of an image that the part has. */
struct space_part {
    int64_t y0, y1, x0, x1;
};
struct space_part space_part(const struct space_spec *spec, int64_t height, int64_t width);

/* The part of a Transformer whose attention heads and MLP columns are divided among `parts`
 * processes (sub-graph parallelism, SUPER; group PEERS_HEADS), for the process `part`: it has the
 * rows of its heads of q, k and v (and of a bias by distance), the rows of its columns of every
 * MLP, and the columns of the linear layers behind them, whose outputs are summed over processes,
 * two sums in a block; backward as many, where what all have goes into what each has a part of. All
 * else is the same on all processes, which give the same inputs and gradients of outputs.
 *
 * A divided parameter has floats of its own, all others share theirs; the order is that of the
 * network, as are names. outer [graph->n_values], or NULL: for every divided parameter the number
 * of rows [outer, parts, ..] of which the process has [outer, part, ..] (heads_move); 0 for others.
 * Dropout takes the elements that it takes in the whole network. Refused with names and numbers:
 * networks without attention, heads or columns that are no multiple of `parts`, attention whose
 * inputs are not made by linear layers. */
bool transform_heads(const struct graph *graph, int parts, int part, struct graph **out,
                     int64_t *outer, struct err *err);
/* The same network, of which transform_heads made the part `part`, with tokens divided where heads
 * and columns are not (sequence parallelism, Megatron-LM): between a sum over processes and the
 * next divided layer each has its tokens, part p of P from p T / P to (p + 1) T / P, rounded down.
 * Sums leave each with its part of them, norms, residual sums and dropout run on it, and parts are
 * joined in front of what needs all tokens; backward the same in reverse. What is joined is not
 * kept but joined again. summed [graph->n_values of *out]: parameters whose gradient is the sum
 * over the processes, since each has added up its own tokens. Refused: fewer tokens than processes.
 */
bool transform_tokens(const struct graph *graph, int parts, int part, struct graph **out,
                      bool **summed, struct err *err);
/* whole [count] -> own [count / parts], or back. */
void heads_move(float *whole, int64_t count, int64_t outer, int parts, int part, float *own,
                bool back);

/* The part of the input that one element of an output sees, the same along height and width. */
struct field {
    int64_t receptive_px; /* extent of the input it can depend on; global pooling at `window` */
    int64_t stride_px;    /* step between neighbours */
    bool padded;          /* some layer pads: scores near a border of the window see zeros */
    bool exact;           /* dense scores equal those of the sliding window of `window` px */
    char reason[256];     /* why not exact; "" if it is */
};
/* window: the side of the network's input during training. */
bool transform_field(const struct graph *graph, value_id value, int64_t window, struct field *out,
                     struct err *err);
#endif
