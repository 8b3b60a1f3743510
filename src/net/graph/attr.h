/* attr.h: the attributes of a graph node: one struct per op family. A zero stride, dilation or
 * group count means 1, so a designated initialiser names only what matters. Pairs are ordered
 * height, width: [0] is h, [1] is w. */
#ifndef NET_GRAPH_ATTR_H
#define NET_GRAPH_ATTR_H
#include <stdbool.h>
#include <stdint.h>
#include "net/graph/tensor.h"

/* Sides of a window, in the order of ONNX. */
enum side { SIDE_TOP, SIDE_LEFT, SIDE_BOTTOM, SIDE_RIGHT, SIDES };

/* Activations that can be fused into a convolution or a linear layer. */
enum activation { ACT_NONE, ACT_RELU, ACT_SILU, ACT_GELU };

enum pad_mode { PAD_ZERO, PAD_REFLECT, PAD_REPLICATE };

enum upsample_mode { UPSAMPLE_NEAREST, UPSAMPLE_BILINEAR };

/* The ways in which the work on a network may be divided among processes, each a group of peers
 * (net/plan/peers.h): other samples of a batch; other layers; other parts of an image, along one
 * axis each; other heads or channels of a layer. */
enum peer_group { PEERS_DATA, PEERS_STAGE, PEERS_SPACE, PEERS_BANDS, PEERS_HEADS, PEER_GROUPS };

/* conv, conv_transpose. */
struct conv_attr {
    int64_t kernel[2]; /* must agree with the weight */
    int64_t stride[2];
    int64_t pad[SIDES];
    int64_t dilation[2]; /* 1: none */
    int64_t groups;
    int64_t output_pad[2];      /* conv_transpose only: rows and columns added below and right */
    enum activation activation; /* conv only; set by the fusing transform */
};

/* linear: y = x Wt + b. */
struct linear_attr {
    enum activation activation; /* set by the fusing transform */
};

/* matmul: a [.., M, K] x b [.., K, N]; either may be stored transposed in its last two axes. */
struct matmul_attr {
    bool transpose_a, transpose_b;
    float scale; /* the product is multiplied by this; 0 means 1 */
};

/* max_pool, average_pool. */
struct pool_attr {
    int64_t kernel[2];
    int64_t stride[2];
    int64_t pad[SIDES];
    int64_t dilation[2];
    bool ceil_mode; /* as in PyTorch: a last window that starts inside the padded input counts */
    bool count_include_pad; /* average_pool: zeros of the padding are counted (PyTorch's default) */
};

/* adaptive_average_pool; global pooling is size {1, 1}. */
struct adaptive_attr {
    int64_t size[2];
};

/* global_lse_pool: y = 1/r log mean exp(r x) over height and width: the mean for a small r, the
 * maximum for a large one. With the default of 5 (Pinheiro and Collobert, 2015) a score that only 1
 * % of the cells have counts log(100) / 5 = 0.9 less than if all had it; with 1 it would be 4.6,
 * and the gradient would reach the highest of them hardly more than the others. */
struct lse_attr {
    float r; /* above 0; 0 means LSE_DEFAULT_R */
};
#define LSE_DEFAULT_R 5

/* batch_norm, group_norm, layer_norm, rms_norm, standardize: y = gain (w - mean) / sqrt(n (variance
 * + epsilon)) for the n weights of every output. */
struct norm_attr {
    float epsilon;
    float momentum; /* batch_norm: running = (1 - momentum) running + momentum batch */
    int64_t groups; /* group_norm */
    int64_t axes;   /* layer_norm, rms_norm: how many of the last axes are normalised together; 0
                       means 1 */
    bool alike;     /* batch_norm: PEERS_SPACE and PEERS_BANDS all have the same input, behind a
                       pooling of a whole map; no attribute of the network: neither shown nor hashed
                     */
};

/* leaky_relu: slope. gelu: tanh_form. softmax, log_softmax: axis. dropout: rate. concat: axis.
 * flatten, take: axis. */
struct leaky_attr {
    float slope;
};
struct gelu_attr {
    bool tanh_form; /* the approximation with tanh instead of erf */
};
struct axis_attr {
    int64_t axis; /* may be negative, from the end; stored as given, see axis_of in op.h */
};
/* dropout: of a tensor of which a process has part `part` of `parts` along the last axis, as
 * transform_heads makes it, or what is behind the first `before` floats of a sample, as
 * transform_tokens does (neither in files): the same elements fall out as of the whole. */
struct dropout_attr {
    float rate;
    int parts, part; /* 0 parts mean 1 */
    int64_t before;
};
/* scale: y = factor x + offset. */
struct scale_attr {
    float factor, offset;
};

/* function: y = f(x). */
enum function_kind {
    FUNCTION_EXP,
    FUNCTION_LOG,
    FUNCTION_SQRT,
    FUNCTION_RECIPROCAL,
    FUNCTION_ABS,
    FUNCTION_ERF,
    FUNCTION_SIN,
    FUNCTION_COS,
    FUNCTION_POWER,    /* x^exponent */
    FUNCTION_FROM_NAN, /* x, or `exponent` where it is NaN */
};
struct function_attr {
    enum function_kind function;
    float exponent; /* of FUNCTION_POWER and FUNCTION_FROM_NAN */
};

/* lrn across channels: y = x / (bias + alpha / size * sum of squares over `size` channels)^beta. */
struct lrn_attr {
    int64_t size;
    float alpha, beta, bias;
};

/* slice along one axis: elements begin, begin + step, .. below end. Negative begin and end count
 * from the end; an end beyond the axis is clamped to its extent (INT64_MAX: to the end). step >= 1.
 */
struct slice_attr {
    int64_t axis, begin, end, step;
};

/* pad of height and width; a negative pad crops. */
struct pad_attr {
    int64_t pad[SIDES];
    enum pad_mode mode;
    float value; /* for PAD_ZERO: the value of the border */
};

/* reshape: 0 keeps the extent of the input's axis, one -1 is inferred. So a reshape written as
 * {0, 384, -1} works for any batch and size. */
struct reshape_attr {
    struct shape target;
};

/* transpose: axis i of the output is axis order[i] of the input. */
struct transpose_attr {
    int rank;
    int64_t order[SHAPE_DIMS];
};

/* reduce_mean, reduce_max: the mean, or the maximum, over the axes whose bit is set; kept with
 * extent 1 or removed. The gradient of a maximum is shared by all that are equal to it. */
struct reduce_attr {
    uint32_t axes; /* bit i: axis i */
    bool keep;
};

/* upsample by integer or fractional factors (scale) or, if size is not 0, to a size. */
struct upsample_attr {
    enum upsample_mode mode;
    double scale[2];
    int64_t size[2];
    bool align_corners; /* bilinear */
};

/* convert: how its output is kept is struct storage, see tensor.h. */

/* halo: an image whose height (axis 2) or width (axis 3) is divided among the peers of a group, in
 * the order of their ranks. In front come the last `before` rows (or columns) of the peer before,
 * behind the first `after` of the next one; zeros where there is none. Negative: so many rows of
 * its own are left out instead. The gradient of a border is added to that of the rows it came from.
 * Parts may differ in extent, but not be smaller than the borders. Peers may need different
 * borders (uneven): then each says what the others get. */
struct halo_attr {
    int64_t axis;
    int64_t before, after;
    enum peer_group group;
    bool uneven;      /* else the others get what this one gets: `after` and `before` */
    int64_t given[2]; /* uneven: rows that the peer before gets (its `after`), and the next one */
};

/* all_reduce: the sum over the peers of a group, in one pass or in both; at least one is needed.
 * Which one depends on who computes the loss from the result.
 *  sum_forward alone: every peer computes the same loss from the same sum, and it counts once
 *      (behind a linear layer whose inputs are divided; a mean over a divided image).
 *  sum_backward alone: all peers have the same input and each uses it for another part of the work,
 *      so that the gradients add up (in front of a linear layer whose outputs are divided).
 *  both: every peer uses the sum for another part of the loss (a mean over a divided image that
 *      every pixel sees). */
struct all_reduce_attr {
    enum peer_group group;
    bool sum_forward, sum_backward;
};

/* all_gather: the tensors of all peers of a group joined along an axis in the order of their ranks.
 * `parts` is the size of the group: shapes are known without peers. They have the same shape; or,
 * with `extent`, that of the result, peer p of P has it from p extent / P to (p + 1) extent / P,
 * rounded down. The gradient is the own part of it; sum_backward: of its sum over peers, if every
 * peer uses the result for another part of the loss. */
struct all_gather_attr {
    int64_t axis;
    int64_t parts; /* 0 means 1 */
    enum peer_group group;
    bool sum_backward;
    int64_t extent; /* 0: parts times that of the input */
    bool again;     /* the backward pass gathers again what it needs of it, instead of keeping it */
};

/* reduce_scatter: the reverse: of a tensor that all peers have, part `part` of `parts` along an
 * axis, as with `extent` above; sum_forward: of its sum over peers. The gradient is that of all
 * parts, joined. */
struct reduce_scatter_attr {
    int64_t axis;
    int64_t parts, part; /* 0 parts mean 1 */
    enum peer_group group;
    bool sum_forward;
};

/* carry: a tile of an image with the cells of its neighbours that it needs, without those of its
 * own that it does not need (yet). The cells come from whoever runs the tiles (struct plan_carry).
 */
struct carry_attr {
    int64_t index;     /* of the cells, for the one who runs the tiles */
    int64_t extent[2]; /* of the output */
};

/* attention: softmax(scale q kt + bias) v of every head, which is d neighbouring features. Keys
 * with 0 in the mask are not seen; a query that sees none gives 0. */
struct attention_attr {
    int64_t heads; /* 0 means 1 */
    float scale;   /* 0: 1 / sqrt(d) */
};

/* relative_bias: the bias of key j for query i depends on j - i alone, by rows (buckets) of a table
 * that stand for growing ranges of distances, up to `distance` (Raffel et al. 2020). */
struct relative_attr {
    int64_t distance; /* 0 means RELATIVE_DEFAULT_DISTANCE */
};
#define RELATIVE_DEFAULT_DISTANCE 128

union attr {
    struct conv_attr conv;
    struct linear_attr linear;
    struct matmul_attr matmul;
    struct pool_attr pool;
    struct adaptive_attr adaptive;
    struct lse_attr lse;
    struct norm_attr norm;
    struct leaky_attr leaky;
    struct gelu_attr gelu;
    struct axis_attr axis; /* softmax, log_softmax, concat, flatten, take */
    struct dropout_attr dropout;
    struct scale_attr scale;
    struct lrn_attr lrn;
    struct slice_attr slice;
    struct pad_attr pad;
    struct reshape_attr reshape;
    struct transpose_attr transpose;
    struct reduce_attr reduce;
    struct upsample_attr upsample;
    struct storage convert;
    struct halo_attr halo;
    struct all_reduce_attr all_reduce;
    struct all_gather_attr all_gather;
    struct reduce_scatter_attr reduce_scatter;
    struct carry_attr carry;
    struct attention_attr attention;
    struct function_attr function;
    struct relative_attr relative;
};
#endif
