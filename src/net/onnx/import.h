/* import.h: the interface for the importer's operator handlers. A handler reads one node of the
 * file and adds nodes to the graph; the driver (import.c) calls it, in order, for every node that
 * an output needs, and puts the file and the node before its error message. */
#ifndef NET_ONNX_IMPORT_H
#define NET_ONNX_IMPORT_H
#include <onnx.pb-c.h>
#include "net/graph/graph.h"
#include "net/onnx/onnx.h"
#include "net/onnx/host.h"

/* What a name in the file refers to. Nothing (no host, no value) until its node has been read. */
struct onnx_name {
    const char *text;
    const Onnx__TensorProto *tensor; /* an initializer; decoded on demand */
    struct host *host;               /* known elements */
    value_id value;                  /* in the graph; NO_VALUE if not (yet) there */
    int32_t producer;                /* the node that makes it; -1: none */
    int32_t n_uses;                  /* as inputs of nodes and outputs of the model */
    int32_t user;                    /* the last node that uses it; -1: none */
    bool bound;                      /* given by onnx_options */
};

struct onnx_import {
    const char *path;
    const Onnx__GraphProto *proto;
    int64_t opset;
    const struct onnx_options *options;
    struct graph *graph;
    struct onnx_name *names;
    int32_t n_names;
    int32_t *buckets; /* hash table of names: index or -1; a power of two */
    uint32_t n_buckets;
    bool *needed;        /* [node]: an output depends on it, and no fused node replaces it */
    int64_t fold_budget; /* elements still available for constants */
    int64_t batch;       /* where the file leaves the first axis of an input open */
    bool open_batch;     /* it does */
    bool shapes_only;    /* parameters get no floats */
    const struct onnx_external *external; /* files with weights, or NULL */
};

typedef const Onnx__NodeProto onnx_node;
typedef bool (*onnx_handler)(struct onnx_import *im, onnx_node *node, struct err *err);

/* One line of the operator table (table.c). */
struct onnx_operator {
    const char *type;
    int64_t since; /* the lowest opset whose meaning the handler knows */
    onnx_handler handler;
};

/* NULL if the operator is not known. */
const struct onnx_operator *onnx_operator_find(const char *type);

/* --- names.c --- */

bool onnx_names_build(struct onnx_import *im, struct err *err);
void onnx_names_free(struct onnx_import *im);
/* Whether an output of the model was requested. */
bool onnx_output_wanted(const struct onnx_import *im, const char *text);
/* NULL if it is not in the file, or text is NULL or "". */
struct onnx_name *onnx_name_find(const struct onnx_import *im, const char *text);

/* --- access.c: inputs and outputs of a node --- */

/* Whether input i is present (given and not ""). */
bool onnx_has(onnx_node *node, size_t i);
/* Whether anything uses output k. */
bool onnx_wanted(const struct onnx_import *im, onnx_node *node, size_t k);
/* The elements of input i if they are known, else NULL; also NULL if it is absent. *err is set only
 * if an initializer cannot be decoded. The caller does not own it. */
const struct host *onnx_known(struct onnx_import *im, onnx_node *node, size_t i, struct err *err);
const struct host *onnx_name_host(struct onnx_import *im, struct onnx_name *name, struct err *err);
/* The same, an error if they are not known. `what` names the input in the message. */
const struct host *onnx_constant(struct onnx_import *im, onnx_node *node, size_t i,
                                 const char *what, struct err *err);
/* Up to max integers of a constant 0- or 1-axis input. Returns their number; -1 with an error. */
int onnx_ints(struct onnx_import *im, onnx_node *node, size_t i, const char *what, int64_t *out,
              int max, struct err *err);

/* Input i as a value of the graph; known elements become a parameter or a constant of it. NO_VALUE
 * with an error if it is absent or not computed yet. */
value_id onnx_value(struct onnx_import *im, onnx_node *node, size_t i, struct err *err);
/* A constant input as a parameter: reshaped to `shape` (same count). buffer: not learnt. */
value_id onnx_parameter(struct onnx_import *im, onnx_node *node, size_t i, struct shape shape,
                        bool buffer, struct err *err);
/* A new parameter or buffer with these floats (copied; NULL for a parameter: the caller fills it)
 * of a name made from `name`. */
value_id onnx_store(struct onnx_import *im, const char *name, bool buffer, struct shape shape,
                    const float *floats, struct err *err);
/* The parameter `value` contains the constant of this name and is reused under this name. Only if
 * it has the same shape. The known elements of the name may be freed. */
void onnx_remember(struct onnx_import *im, struct onnx_name *name, value_id value);
/* What was decoded from the file can be decoded again: its memory is not kept beside the graph's.
 * Pointers to the known elements of the name are invalid afterwards. */
void onnx_forget(struct onnx_name *name);
const struct shape *onnx_shape(const struct onnx_import *im, value_id value);

/* A node of the graph. suffix NULL: it gets the name of the file's node (the last one made for it),
 * else that name + suffix. NO_VALUE with an error. */
value_id onnx_add(struct onnx_import *im, onnx_node *node, const char *suffix, enum op_kind kind,
                  const value_id *inputs, int n_inputs, const union attr *attr, struct err *err);
/* A reshape that, where possible, also works for other batches. */
value_id onnx_add_reshape(struct onnx_import *im, onnx_node *node, const char *suffix, value_id x,
                          struct shape target, struct err *err);
value_id onnx_add_scale(struct onnx_import *im, onnx_node *node, const char *suffix, value_id x,
                        double factor, double offset, struct err *err);

value_id onnx_add_function(struct onnx_import *im, onnx_node *node, const char *suffix, value_id x,
                           enum function_kind kind, struct err *err);
/* Elements of an axis from `begin` down to, but without, `end` by a negative step (take.c). */
value_id onnx_take_backwards(struct onnx_import *im, onnx_node *node, const char *suffix,
                             value_id x, int axis, int64_t begin, int64_t end, int64_t step,
                             struct err *err);

/* Whether a value is computed from an input of the network, and so has its images along axis 0. */
bool onnx_from_images(const struct onnx_import *im, value_id value);

/* Output k of the node is this value. False if value is NO_VALUE. */
bool onnx_bind(struct onnx_import *im, onnx_node *node, size_t k, value_id value, struct err *err);
/* Output k is known; takes over host, which may be NULL (a failure that is in err). */
bool onnx_bind_host(struct onnx_import *im, onnx_node *node, size_t k, struct host *host,
                    struct err *err);
/* A new constant, counted against the budget of the import. */
struct host *onnx_host_new(struct onnx_import *im, enum host_type type, struct shape shape,
                           struct err *err);

/* --- input.c --- */

/* An input of the model, unless it is a constant or nothing uses it. */
bool onnx_add_input(struct onnx_import *im, const Onnx__ValueInfoProto *info, struct err *err);

/* --- attributes.c --- */

/* Whether all attributes that are read have the type that ONNX defines. */
bool onnx_attributes_check(onnx_node *node, struct err *err);
const Onnx__AttributeProto *onnx_attribute(onnx_node *node, const char *name);
int64_t onnx_int(onnx_node *node, const char *name, int64_t otherwise);
float onnx_float(onnx_node *node, const char *name, float otherwise);
/* The text equals one of the choices: its index; 0 if absent (the default comes first); -1 with an
 * error that names the value otherwise. choices ends with NULL. */
int onnx_choice(onnx_node *node, const char *name, const char *const *choices, struct err *err);
/* Number of ints written to out; 0 if absent; -1 with an error if more than max. */
int onnx_int_list(onnx_node *node, const char *name, int64_t *out, int max, struct err *err);
/* The axes named by an input (from opset `input_since` on) or by the attribute "axes", as bits of
 * a tensor with `rank` axes. *given is false if there are none. */
bool onnx_axes(struct onnx_import *im, onnx_node *node, int64_t input_since, int rank,
               uint32_t *bits, bool *given, struct err *err);

/* --- batch.c --- */

/* Changes the reshapes of `graph` so that they work for any batch: `other` is the same network,
 * imported for another batch, and shows which extents depend on it. */
void onnx_free_batch(struct graph *graph, const struct graph *other);

/* --- layers.c --- */

/* Names of layers, after all nodes: those in the metadata, or all that the file has. */
bool onnx_layers_read(struct onnx_import *im, const Onnx__ModelProto *model, struct err *err);
/* Those of the modules of a network that PyTorch exported (modules.c). */
bool onnx_modules_read(struct onnx_import *im, struct err *err);

/* --- fold.c, fuse.c --- */

/* Computes the node now if all its inputs are known. *done: whether it was computed. */
bool onnx_fold(struct onnx_import *im, onnx_node *node, bool *done, struct err *err);
/* If a known pattern starts at node `index` (GELU, SiLU, layer norm, group norm, a linear layer
 * with its bias), adds a single node for it and marks the others as not needed. */
bool onnx_fuse(struct onnx_import *im, size_t index, bool *done, struct err *err);

/* --- handlers, one file per family: see table.c --- */
#define ONNX_HANDLER(name) bool name(struct onnx_import *im, onnx_node *node, struct err *err)
ONNX_HANDLER(onnx_conv);
ONNX_HANDLER(onnx_conv_transpose);
ONNX_HANDLER(onnx_max_pool);
ONNX_HANDLER(onnx_average_pool);
ONNX_HANDLER(onnx_global_average_pool);
ONNX_HANDLER(onnx_global_max_pool);
ONNX_HANDLER(onnx_gemm);
ONNX_HANDLER(onnx_matmul);
ONNX_HANDLER(onnx_batch_norm);
ONNX_HANDLER(onnx_instance_norm);
ONNX_HANDLER(onnx_group_norm);
ONNX_HANDLER(onnx_layer_norm);
ONNX_HANDLER(onnx_lrn);
ONNX_HANDLER(onnx_relu);
ONNX_HANDLER(onnx_leaky_relu);
ONNX_HANDLER(onnx_sigmoid);
ONNX_HANDLER(onnx_tanh);
ONNX_HANDLER(onnx_gelu);
ONNX_HANDLER(onnx_clip);
ONNX_HANDLER(onnx_hard_sigmoid);
ONNX_HANDLER(onnx_hard_swish);
ONNX_HANDLER(onnx_prelu);
ONNX_HANDLER(onnx_softmax);
ONNX_HANDLER(onnx_log_softmax);
ONNX_HANDLER(onnx_dropout);
ONNX_HANDLER(onnx_identity);
ONNX_HANDLER(onnx_cast);
ONNX_HANDLER(onnx_quantize);
ONNX_HANDLER(onnx_dequantize);
ONNX_HANDLER(onnx_add_op);
ONNX_HANDLER(onnx_sub_op);
ONNX_HANDLER(onnx_mul_op);
ONNX_HANDLER(onnx_div_op);
ONNX_HANDLER(onnx_pow);
ONNX_HANDLER(onnx_neg);
ONNX_HANDLER(onnx_exp);
ONNX_HANDLER(onnx_log);
ONNX_HANDLER(onnx_sqrt);
ONNX_HANDLER(onnx_reciprocal);
ONNX_HANDLER(onnx_abs);
ONNX_HANDLER(onnx_erf);
ONNX_HANDLER(onnx_sin);
ONNX_HANDLER(onnx_cos);
ONNX_HANDLER(onnx_softplus);
ONNX_HANDLER(onnx_mish);
ONNX_HANDLER(onnx_elu);
ONNX_HANDLER(onnx_selu);
ONNX_HANDLER(onnx_celu);
ONNX_HANDLER(onnx_max);
ONNX_HANDLER(onnx_min);
ONNX_HANDLER(onnx_sum);
ONNX_HANDLER(onnx_reduce_mean);
ONNX_HANDLER(onnx_reduce_sum);
ONNX_HANDLER(onnx_reduce_log_sum_exp);
ONNX_HANDLER(onnx_reduce_l1);
ONNX_HANDLER(onnx_reduce_l2);
ONNX_HANDLER(onnx_reduce_sum_square);
ONNX_HANDLER(onnx_reduce_max);
ONNX_HANDLER(onnx_reduce_min);
ONNX_HANDLER(onnx_reshape);
ONNX_HANDLER(onnx_flatten);
ONNX_HANDLER(onnx_transpose);
ONNX_HANDLER(onnx_squeeze);
ONNX_HANDLER(onnx_unsqueeze);
ONNX_HANDLER(onnx_concat);
ONNX_HANDLER(onnx_slice);
ONNX_HANDLER(onnx_split);
ONNX_HANDLER(onnx_gather);
ONNX_HANDLER(onnx_gather_nd);
ONNX_HANDLER(onnx_gather_elements);
ONNX_HANDLER(onnx_scatter_nd);
ONNX_HANDLER(onnx_tile);
ONNX_HANDLER(onnx_where);
ONNX_HANDLER(onnx_trilu);
ONNX_HANDLER(onnx_einsum);
ONNX_HANDLER(onnx_attention);
ONNX_HANDLER(onnx_rms_norm);
ONNX_HANDLER(onnx_depth_to_space);
ONNX_HANDLER(onnx_space_to_depth);
ONNX_HANDLER(onnx_expand);
ONNX_HANDLER(onnx_pad);
ONNX_HANDLER(onnx_resize);
ONNX_HANDLER(onnx_upsample);

/* The weight [O, C] and the bias of a linear layer; see linear.c. */
value_id onnx_linear(struct onnx_import *im, onnx_node *node, value_id x, const struct host *b,
                     bool b_transposed, float alpha, value_id bias, struct err *err);
#endif
