/* graph.h: a network as a static graph. Values are tensors with a name and a shape; a value is an
 * input, a parameter, or the one output of a node. Nodes are stored in an order in which they can
 * run. Every structural change checks shapes immediately, so an existing graph is consistent.
 *
 * Building: every builder returns the new value, or NO_VALUE after a failure. NO_VALUE as an input
 * returns NO_VALUE again and the first error is kept, so a network is written without checks and
 * graph_ok checks once at the end:
 *
 *     value_id x = graph_input(g, "input", SHAPE(1, 3, 224, 224));
 *     x = graph_conv(g, x, "conv1", 64, false, conv_square(7, 2, 3));
 *     x = graph_batch_norm(g, x, "bn1");
 *     x = graph_relu(g, x);
 *     x = graph_max_pool(g, x, pool_square(3, 2, 1));
 *     x = graph_flatten(g, graph_global_average_pool(g, x));
 *     graph_output(g, "logits", graph_linear(g, x, "fc", 1000, true));
 *     if (!graph_ok(g, err)) ...
 *
 * Parameters have the names and shapes of torchvision and timm ("conv1.weight", "bn1.running_var")
 * and are plain row-major floats. Not thread-safe while being built or changed; any number of plans
 * may read one graph. */
#ifndef NET_GRAPH_GRAPH_H
#define NET_GRAPH_GRAPH_H
#include <stdio.h>
#include "net/graph/op.h"

typedef int32_t value_id;
#define NO_VALUE ((value_id)-1)

enum value_kind {
    VALUE_INPUT,
    VALUE_PARAMETER, /* learnt */
    VALUE_BUFFER,    /* kept with the weights but not learnt: running statistics, constants */
    VALUE_NODE,      /* the output of a node */
};

/* Initial value of a parameter, before anything is learnt or loaded. */
enum init_kind {
    INIT_CONSTANT,       /* a */
    INIT_UNIFORM,        /* between -a and a */
    INIT_NORMAL,         /* mean 0, standard deviation a */
    INIT_TRUNCATED,      /* the same, truncated at 2 standard deviations */
    INIT_FAN_IN_UNIFORM, /* PyTorch's default for linear and conv weights: +-1 / sqrt(fan in) */
    INIT_FAN_OUT_NORMAL, /* He: standard deviation sqrt(2 / fan out) (torchvision's ResNet) */
    INIT_FAN_IN_NORMAL,  /* He: standard deviation sqrt(2 / fan in) */
};

struct init {
    enum init_kind kind;
    float a;
};

/* An edge of the network. Exactly one of: an input of the graph, a parameter or buffer, the output
 * of values[].node. Parameters and buffers may be shared with other graphs (struct buffer). */
struct value {
    enum value_kind kind;
    char *name; /* of inputs and parameters: unique among them; of nodes: the name of the node */
    struct shape shape;
    struct storage storage; /* VALUE_NODE: how a plan keeps it; what it is stays numbers */
    int32_t node;           /* VALUE_NODE: index of the node that makes it; else -1 */
    struct init init;       /* VALUE_PARAMETER, VALUE_BUFFER */
    struct buffer *data;    /* VALUE_PARAMETER, VALUE_BUFFER: its floats, after graph_allocate */
};

/* One op. Its attributes are complete (no defaults left to fill) and fit the shapes of its inputs.
 */
struct node {
    const struct op *op;
    char *name; /* "layer1.0.conv1"; unique among nodes */
    union attr attr;
    value_id *inputs; /* [n_inputs]; NO_VALUE where an optional input is absent */
    int n_inputs;
    value_id output;
};

struct graph_port {
    char *name;
    value_id value;
};

/* An entry of the index of names; see graph_names.h. */
enum graph_name_kind { NAME_FREE, NAME_OUTPUT, NAME_VALUE, NAME_ALIAS };
struct graph_name {
    enum graph_name_kind kind;
    uint32_t hash; /* of the text */
    int32_t index; /* in outputs, values or aliases */
};

/* Fields are read-only; change them through the functions below and those of transform.h. What
 * always holds: values and nodes are only ever added, so an id stays valid; a value made by a node
 * has the name of the node; every shape follows from those of the inputs; an alias is
 * never the name of another value. */
struct graph {
    char *name; /* "resnet18", or "" */
    struct value *values;
    int32_t n_values;
    struct node *nodes; /* inputs of a node are made by nodes before it */
    int32_t n_nodes;
    struct graph_port *inputs, *outputs;
    struct graph_port *aliases; /* names of layers, in the order of the network; see graph_alias */
    int n_inputs, n_outputs, n_aliases;
    struct err err; /* the first failure of a builder */
    int64_t room_values, room_nodes;
    struct graph_name *names; /* hash table [room_names], a power of two */
    uint32_t n_names, room_names;
};

/* An empty graph, the caller's; free with graph_free. NULL if no memory. */
struct graph *graph_new(const char *name);
void graph_free(struct graph *graph);
/* A copy of the graph; the floats of the parameters are shared, not copied: 0.1 ms for ResNet-50.
 */
bool graph_copy(const struct graph *graph, struct graph **out, struct err *err);

/* False, with the first error, if any builder failed or no output was declared. */
bool graph_ok(const struct graph *graph, struct err *err);

/* --- building: inputs, outputs, parameters --- */

value_id graph_input(struct graph *graph, const char *name, struct shape shape);
/* Declares a value as an output; returns it. Order of calls = order of outputs. */
value_id graph_output(struct graph *graph, const char *name, value_id value);

/* A name that a user can type for the output of a layer or block: "layer4", "blocks.11". Returns
 * the value, so that it can be wrapped around a builder; a value may have several. A name that
 * means another value already (an input, output, parameter, node or alias) is an error, as is a
 * value that is added later under the name of an alias.
 *
 * An alias names numbers. Transforms carry it to the value that has the numbers in the new graph:
 * behind a fused conv + batch norm + ReLU the alias of the ReLU is on the conv. Where no value has
 * them any more (the conv itself, before its ReLU), it is dropped; `keep` of the transforms keeps
 * it. In contrast, a fused node has the name of its first node. */
value_id graph_alias(struct graph *graph, const char *name, value_id value);
/* Whether graph_alias would accept it; for names that come from files. */
bool graph_can_alias(const struct graph *graph, const char *name, value_id value);

/* A new parameter (learnt) or buffer; the name must be new. Its init is INIT_CONSTANT 0; set
 * another one with graph_init. */
value_id graph_parameter(struct graph *graph, const char *name, struct shape shape);
value_id graph_buffer(struct graph *graph, const char *name, struct shape shape);
/* A buffer with these floats (copied): ONNX constants, folded weights. */
value_id graph_constant(struct graph *graph, const char *name, struct shape shape,
                        const float *data);
/* Sets the initial value of parameter `name` (or, if it starts with '*', of all whose names end
 * with the rest: "*.conv.weight"). Returns how many matched. */
int graph_init(struct graph *graph, const char *name, struct init init);

/* --- building: any node ---
 * For importers. inputs may contain NO_VALUE where the op allows an absent one (graph_node cannot
 * distinguish an earlier failure from an absent input: check before calling it). attr NULL: all
 * defaults. name NULL: one is generated ("relu_12"). */
value_id graph_node(struct graph *graph, enum op_kind kind, const char *name,
                    const value_id *inputs, int n_inputs, const union attr *attr);

/* --- building: layers with parameters; `name` is the prefix of the parameters' names --- */

/* Attributes of square windows. */
struct conv_attr conv_square(int64_t kernel, int64_t stride, int64_t pad);
struct pool_attr pool_square(int64_t kernel, int64_t stride, int64_t pad);

/* name.weight [out, in/groups, kh, kw], name.bias [out] */
value_id graph_conv(struct graph *graph, value_id x, const char *name, int64_t out_channels,
                    bool bias, struct conv_attr attr);
/* name.weight [in, out/groups, kh, kw], name.bias [out] */
value_id graph_conv_transpose(struct graph *graph, value_id x, const char *name,
                              int64_t out_channels, bool bias, struct conv_attr attr);
/* name.weight [out, in], name.bias [out] */
value_id graph_linear(struct graph *graph, value_id x, const char *name, int64_t out_features,
                      bool bias);
/* name.weight, .bias, .running_mean, .running_var; epsilon 1e-5, momentum 0.1 */
value_id graph_batch_norm(struct graph *graph, value_id x, const char *name);
value_id graph_batch_norm_with(struct graph *graph, value_id x, const char *name,
                               struct norm_attr attr);
value_id graph_group_norm(struct graph *graph, value_id x, const char *name, int64_t groups,
                          float epsilon);
/* Over the last axis. */
value_id graph_layer_norm(struct graph *graph, value_id x, const char *name, float epsilon);
/* Divided by the root of the mean square over the last axis; name.weight only. */
value_id graph_rms_norm(struct graph *graph, value_id x, const char *name, float epsilon);

/* --- building: layers without parameters; the node's name is generated from the op --- */

value_id graph_relu(struct graph *graph, value_id x);
value_id graph_leaky_relu(struct graph *graph, value_id x, float slope);
value_id graph_silu(struct graph *graph, value_id x);
value_id graph_gelu(struct graph *graph, value_id x);
value_id graph_sigmoid(struct graph *graph, value_id x);
value_id graph_tanh(struct graph *graph, value_id x);
value_id graph_max_pool(struct graph *graph, value_id x, struct pool_attr attr);
value_id graph_average_pool(struct graph *graph, value_id x, struct pool_attr attr);
value_id graph_global_max_pool(struct graph *graph, value_id x);
value_id graph_global_average_pool(struct graph *graph, value_id x);
/* r 0: the default, see struct lse_attr. */
value_id graph_global_lse_pool(struct graph *graph, value_id x, float r);
value_id graph_attention_pool(struct graph *graph, value_id x, value_id scores);
value_id graph_adaptive_average_pool(struct graph *graph, value_id x, int64_t height,
                                     int64_t width);
value_id graph_lrn(struct graph *graph, value_id x, struct lrn_attr attr);
value_id graph_add(struct graph *graph, value_id a, value_id b);
value_id graph_sub(struct graph *graph, value_id a, value_id b);
value_id graph_mul(struct graph *graph, value_id a, value_id b);
value_id graph_div(struct graph *graph, value_id a, value_id b);
value_id graph_scale(struct graph *graph, value_id x, float factor, float offset);
value_id graph_concat(struct graph *graph, const value_id *inputs, int n, int64_t axis);
/* Elements [begin, end) of an axis. */
value_id graph_slice(struct graph *graph, value_id x, int64_t axis, int64_t begin, int64_t end);
value_id graph_pad(struct graph *graph, value_id x, struct pad_attr attr);
/* See struct reshape_attr: 0 keeps, -1 infers. graph_reshape(g, x, SHAPE(0, 384, -1)) */
value_id graph_reshape(struct graph *graph, value_id x, struct shape target);
value_id graph_flatten(struct graph *graph, value_id x); /* [N, ..] -> [N, product] */
/* order has as many entries as x has axes: graph_transpose(g, x, (int64_t[]){0, 2, 1}) */
value_id graph_transpose(struct graph *graph, value_id x, const int64_t *order);
value_id graph_matmul(struct graph *graph, value_id a, value_id b, struct matmul_attr attr);
value_id graph_expand_batch(struct graph *graph, value_id x, value_id like);
value_id graph_reduce_mean(struct graph *graph, value_id x, uint32_t axes, bool keep);
value_id graph_softmax(struct graph *graph, value_id x, int64_t axis);
value_id graph_dropout(struct graph *graph, value_id x, float rate);
/* Rounded to numbers that can be stored so. */
value_id graph_convert(struct graph *graph, value_id x, struct storage storage);
value_id graph_upsample(struct graph *graph, value_id x, struct upsample_attr attr);
value_id graph_halo(struct graph *graph, value_id x, struct halo_attr attr);
value_id graph_all_reduce(struct graph *graph, value_id x, struct all_reduce_attr attr);
value_id graph_all_gather(struct graph *graph, value_id x, struct all_gather_attr attr);
value_id graph_reduce_scatter(struct graph *graph, value_id x, struct reduce_scatter_attr attr);
/* See OP_ATTENTION and struct attention_attr; bias and mask may be NO_VALUE. */
value_id graph_attention(struct graph *graph, value_id q, value_id k, value_id v, value_id bias,
                         value_id mask, struct attention_attr attr);
/* The same of q, k and v side by side, [N, T, 3 heads d] -> [N, T, heads d] */
value_id graph_attention_packed(struct graph *graph, value_id qkv, value_id bias, value_id mask,
                                struct attention_attr attr);

/* name.weight [rows, width], of which every id of ids [N, T] takes a row: [N, T, width] */
value_id graph_embedding(struct graph *graph, value_id ids, const char *name, int64_t rows,
                         int64_t width);
/* name.weight [rows, heads]: see OP_RELATIVE_BIAS; x [N, T, ..] says how many tokens there are. */
value_id graph_relative_bias(struct graph *graph, value_id x, const char *name, int64_t rows,
                             int64_t heads);

/* --- reading --- */

/* The output declared under this name, else the input, parameter or node, else the alias; NO_VALUE
 * if there is none. (Only an output and a value can share a name: "logits" finds the output.) */
value_id graph_find(const struct graph *graph, const char *name);
/* The activation that a user means: graph_find, with an error that has the nearest name, and that
 * refuses weights. */
bool graph_layer(const struct graph *graph, const char *name, value_id *out, struct err *err);
const struct shape *graph_shape(const struct graph *graph, value_id value);
bool graph_is_parameter(const struct graph *graph, value_id value); /* learnt or buffer */
/* How many inputs of nodes, and outputs of the graph, a value feeds. */
int graph_users(const struct graph *graph, value_id value);
/* The only node that reads this value; NULL if there are none or several, or if it is an output. */
const struct node *graph_only_user(const struct graph *graph, value_id value);
/* The node that makes this value; NULL for inputs, parameters and NO_VALUE. */
const struct node *graph_maker(const struct graph *graph, value_id value);
/* Whether a node makes one number of each whole map of an image: a mean, a maximum, .. */
bool graph_pools_maps(const struct graph *graph, const struct node *node);
/* Sum of the elements of learnt parameters. */
int64_t graph_parameter_count(const struct graph *graph);
/* Multiply-adds of one forward pass at the current shapes. */
double graph_multiply_adds(const struct graph *graph);
/* Those of one node; 0 for all but convolutions, linear layers, products of matrices and
 * attention. */
double graph_node_multiply_adds(const struct graph *graph, const struct node *node);

/* Recomputes the shapes of all values from those of the inputs; an error names the node that does
 * not fit. */
bool graph_infer(struct graph *graph, struct err *err);
/* Changes the shape of one input (any batch, any size) and infers all shapes. On failure nothing
 * changes. */
bool graph_resize(struct graph *graph, value_id input, struct shape shape, struct err *err);

/* --- parameters' floats --- */

/* Allocates zeroed floats for every parameter that has none. */
bool graph_allocate(struct graph *graph, struct err *err);
/* Fills every parameter according to its init, keyed by (seed, name): independent of the order and
 * of the rest of the network, so a network with a new head keeps the other values. Allocates. Slow:
 * 3 s for 25 M normal numbers, on one thread. */
bool graph_initialize(struct graph *graph, uint64_t seed, struct err *err);
/* Gives all floats back, as before graph_allocate; other graphs that share them keep them. */
void graph_forget(struct graph *graph);
/* The floats of a parameter or buffer; NULL before graph_allocate. */
float *graph_data(const struct graph *graph, value_id parameter);
/* Gives the graph a copy of the floats of a parameter that other graphs may share, so that they can
 * be changed here alone. */
bool graph_own(struct graph *graph, value_id parameter, struct err *err);

/* --- identity --- */

/* Continues the hash `begin` (IDENTITY_HASH_BEGIN of base/identity.h at first) over what the
 * network computes: ops, attributes, connections, shapes and, if `weights`, the floats of the
 * parameters. Names do not count. The same on every processor; results keep it (heatmaps, parts of
 * predictions), so what it gives for a network must not change. Reads every float with weights: 2
 * to 3 ms for 1 MB. */
uint64_t graph_hash(const struct graph *graph, uint64_t begin, bool weights);

/* --- text: one line per node, then a summary --- */
void graph_print(const struct graph *graph, FILE *stream);
/* Its layers: every alias with its shape and the node that makes it. */
void graph_print_layers(const struct graph *graph, FILE *stream);
#endif
