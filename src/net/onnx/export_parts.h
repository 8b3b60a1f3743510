/* export_parts.h: names and helper nodes for the exporters of ops (export_ops.c, export_more.c). */
#ifndef NET_ONNX_EXPORT_PARTS_H
#define NET_ONNX_EXPORT_PARTS_H
#include "net/onnx/build.h"

static inline const char *in(const struct onnx_builder *b, const struct node *node, int i)
{
    return i < node->n_inputs && node->inputs[i] != NO_VALUE ? b->names[node->inputs[i]] : "";
}

static inline const char *out(const struct onnx_builder *b, const struct node *node)
{
    return b->names[node->output];
}

static inline const struct shape *in_shape(const struct onnx_builder *b, const struct node *node,
                                           int i)
{
    return graph_shape(b->graph, node->inputs[i]);
}

/* "layer/part": the name of a helper node, value or constant. */
static inline const char *part(struct onnx_builder *b, const struct node *node, const char *suffix)
{
    return onnx_text(b, "%s/%s", node->name, suffix);
}

static inline Onnx__NodeProto *emit1(struct onnx_builder *b, const char *type, const char *name,
                                     const char *x, const char *y)
{
    return onnx_emit(b, type, name, &x, 1, y);
}

static inline Onnx__NodeProto *emit2(struct onnx_builder *b, const char *type, const char *name,
                                     const char *x, const char *w, const char *y)
{
    return onnx_emit(b, type, name, (const char *[]){ x, w }, 2, y);
}

/* type(x, number) -> "layer/suffix", which is returned. */
static inline const char *with_number(struct onnx_builder *b, const struct node *node,
                                      const char *type, const char *suffix, const char *x,
                                      double number)
{
    const char *y = part(b, node, suffix);
    const char *value = onnx_const_number(b, onnx_text(b, "%s.value", y), (float)number);
    emit2(b, type, y, x, value, y);
    return y;
}

/* --- export_more.c --- */
void onnx_export_attention_pool(struct onnx_builder *b, const struct node *node);
void onnx_export_function(struct onnx_builder *b, const struct node *node);
void onnx_export_take(struct onnx_builder *b, const struct node *node);
#endif
