/* build.h: composes the messages of an ONNX file in memory. Weights are not copied. Failures (only
 * memory, or those the caller sets) are kept in the builder; later calls then do nothing. */
#ifndef NET_ONNX_BUILD_H
#define NET_ONNX_BUILD_H
#include <onnx.pb-c.h>
#include "net/graph/graph.h"

struct onnx_builder {
    const struct graph *graph;
    const char **names; /* [n_values]: the name of a value in the file; NULL: none yet */
    Onnx__NodeProto **nodes;
    size_t n_nodes;
    Onnx__TensorProto **tensors;
    size_t n_tensors;
    void **kept; /* everything that is freed at the end */
    size_t n_kept;
    struct err err;
};

void onnx_build_free(struct onnx_builder *b);

/* Zeroed memory that lives as long as the builder; never NULL unless the builder failed. */
void *onnx_keep(struct onnx_builder *b, size_t bytes);
/* printf into kept memory; "" after a failure. */
char *onnx_text(struct onnx_builder *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A node with these inputs (names; "" for an absent one) and one output. NULL after a failure,
 * which the attribute functions accept. */
Onnx__NodeProto *onnx_emit(struct onnx_builder *b, const char *type, const char *name,
                           const char *const *inputs, size_t n_inputs, const char *output);
void onnx_set_int(struct onnx_builder *b, Onnx__NodeProto *node, const char *name, int64_t value);
void onnx_set_float(struct onnx_builder *b, Onnx__NodeProto *node, const char *name, float value);
void onnx_set_text(struct onnx_builder *b, Onnx__NodeProto *node, const char *name,
                   const char *value);
void onnx_set_ints(struct onnx_builder *b, Onnx__NodeProto *node, const char *name,
                   const int64_t *values, size_t n);

/* Initializers; they return their name. Floats of onnx_weight are not copied. */
const char *onnx_weight(struct onnx_builder *b, const char *name, const struct shape *shape,
                        const float *floats);
const char *onnx_const_floats(struct onnx_builder *b, const char *name, const struct shape *shape,
                              const float *floats);
const char *onnx_const_number(struct onnx_builder *b, const char *name, float value);
const char *onnx_const_ints(struct onnx_builder *b, const char *name, const int64_t *values,
                            size_t n);
const char *onnx_const_int8(struct onnx_builder *b, const char *name, int8_t value);

/* The description of an input or output. batch: the first axis is open. */
Onnx__ValueInfoProto *onnx_value_info(struct onnx_builder *b, const char *name,
                                      const struct shape *shape, bool batch);

/* --- layers.c --- */
/* The shortest alias of a value; NULL if it has none. */
const char *onnx_layer_name(const struct graph *graph, value_id value);
/* The names of layers for the metadata; NULL if there are none. */
char *onnx_layers_text(struct onnx_builder *b);

/* --- export_ops.c --- */
/* The nodes of one node of the graph. */
void onnx_export_node(struct onnx_builder *b, const struct node *node);
#endif
