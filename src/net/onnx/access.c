/* access.c: inputs and outputs of a node of the file as constants and as values of the graph. */
#include <stdlib.h>
#include <string.h>
#include "net/onnx/import.h"
#include "base/text.h"
#include "net/onnx/external.h"

bool onnx_has(onnx_node *node, size_t i)
{
    return i < node->n_input && *node->input[i];
}

bool onnx_wanted(const struct onnx_import *im, onnx_node *node, size_t k)
{
    const struct onnx_name *name = k < node->n_output ? onnx_name_find(im, node->output[k]) : NULL;
    return name && name->n_uses;
}

struct host *onnx_host_new(struct onnx_import *im, enum host_type type, struct shape shape,
                           struct err *err)
{
    struct host *host = host_new(type, shape, im->fold_budget, err);
    if (host)
        im->fold_budget -= host->count;
    return host;
}

const struct host *onnx_name_host(struct onnx_import *im, struct onnx_name *name, struct err *err)
{
    if (!name->host && name->tensor) {
        name->host = host_from_proto(name->tensor, err);
        onnx_external_release(im->external, name->tensor);
        if (name->host)
            name->host->origin = name->text;
        else
            err_prefix(err, name->text);
    }
    return name->host;
}

const struct host *onnx_known(struct onnx_import *im, onnx_node *node, size_t i, struct err *err)
{
    struct onnx_name *name = onnx_has(node, i) ? onnx_name_find(im, node->input[i]) : NULL;
    return name ? onnx_name_host(im, name, err) : NULL;
}

const struct host *onnx_constant(struct onnx_import *im, onnx_node *node, size_t i,
                                 const char *what, struct err *err)
{
    struct err decode = { 0 };
    const struct host *host = onnx_known(im, node, i, &decode);
    if (host)
        return host;
    if (decode.kind != ERR_NONE)
        err_set(err, decode.kind, "%s", decode.text);
    else if (!onnx_has(node, i))
        err_set(err, ERR_FORMAT, "%s is missing", what);
    else
        err_set(err, ERR_FORMAT,
                "%s ('%.200s') is computed while the network runs; it must be a "
                "constant",
                what, node->input[i]);
    return NULL;
}

int onnx_ints(struct onnx_import *im, onnx_node *node, size_t i, const char *what, int64_t *out,
              int max, struct err *err)
{
    const struct host *host = onnx_constant(im, node, i, what, err);
    if (!host)
        return -1;
    if (host->type != HOST_INT || host->shape.rank > 1 || host->count > max) {
        err_set(err, ERR_FORMAT, "%s is not a list of at most %d whole numbers", what, max);
        return -1;
    }
    for (int64_t k = 0; k < host->count; k++)
        out[k] = host->ints[k];
    return (int)host->count;
}

const struct shape *onnx_shape(const struct onnx_import *im, value_id value)
{
    return graph_shape(im->graph, value);
}

/* A free name for a parameter: `name`, or with a number behind it. The caller's. */
static char *free_name(const struct onnx_import *im, const char *name)
{
    if (graph_find(im->graph, name) == NO_VALUE)
        return strdup(name);
    return text_format("%s.%d", name, (int)im->graph->n_values);
}

value_id onnx_store(struct onnx_import *im, const char *name, bool buffer, struct shape shape,
                    const float *floats, struct err *err)
{
    struct graph *graph = im->graph;
    char *text = free_name(im, name);
    if (!text) {
        err_memory(err, name);
        return NO_VALUE;
    }
    value_id value =
        buffer ? graph_constant(graph, text, shape, floats) : graph_parameter(graph, text, shape);
    free(text);
    if (value == NO_VALUE) {
        err_set(err, graph->err.kind, "%s", graph->err.text);
        return NO_VALUE;
    }
    if (!buffer && !im->shapes_only) {
        if (!graph_allocate(graph, err))
            return NO_VALUE;
        if (floats)
            memcpy(graph_data(graph, value), floats, (size_t)shape_count(&shape) * sizeof *floats);
    }
    return value;
}

/* A constant as floats of the graph. Integers become floats. */
static value_id store_host(struct onnx_import *im, const char *name, const struct host *host,
                           struct shape shape, bool buffer, struct err *err)
{
    if (!shape_check(&shape, name, err))
        return NO_VALUE;
    if (host->type == HOST_FLOAT)
        return onnx_store(im, name, buffer, shape, host->floats, err);
    float *floats = malloc((size_t)host->count * sizeof *floats);
    if (!floats) {
        err_memory(err, name);
        return NO_VALUE;
    }
    for (int64_t i = 0; i < host->count; i++)
        floats[i] = host_float(host, i);
    value_id value = onnx_store(im, name, true, shape, floats, err);
    free(floats);
    return value;
}

void onnx_forget(struct onnx_name *name)
{
    if (!name->tensor || name->bound)
        return;
    host_free(name->host);
    name->host = NULL;
}

void onnx_remember(struct onnx_import *im, struct onnx_name *name, value_id value)
{
    if (value == NO_VALUE || name->value != NO_VALUE)
        return;
    const struct host *host = onnx_name_host(im, name, NULL);
    if (!host || !shape_equal(&host->shape, onnx_shape(im, value)))
        return;
    name->value = value;
    onnx_forget(name);
}

value_id onnx_value(struct onnx_import *im, onnx_node *node, size_t i, struct err *err)
{
    struct onnx_name *name = onnx_has(node, i) ? onnx_name_find(im, node->input[i]) : NULL;
    if (!name) {
        err_set(err, ERR_FORMAT, "input %zu is missing", i);
        return NO_VALUE;
    }
    if (name->value != NO_VALUE)
        return name->value;
    const struct host *host = onnx_constant(im, node, i, "an input", err);
    if (!host)
        return NO_VALUE;
    bool learnt = host->origin && !host->transposed && !name->bound;
    name->value = store_host(im, name->text, host, host->shape, !learnt, err);
    onnx_forget(name);
    return name->value;
}

value_id onnx_parameter(struct onnx_import *im, onnx_node *node, size_t i, struct shape shape,
                        bool buffer, struct err *err)
{
    struct onnx_name *name = onnx_has(node, i) ? onnx_name_find(im, node->input[i]) : NULL;
    if (name && name->value != NO_VALUE && graph_is_parameter(im->graph, name->value) &&
        shape_equal(onnx_shape(im, name->value), &shape))
        return name->value;
    const struct host *host = onnx_constant(im, node, i, "a weight", err);
    if (!host)
        return NO_VALUE;
    char text[SHAPE_TEXT], other[SHAPE_TEXT];
    if (!shape_check(&shape, name->text, err))
        return NO_VALUE;
    if (host->count != shape_count(&shape)) {
        err_set(err, ERR_FORMAT, "'%.200s' is %s; %s is needed", name->text,
                shape_text(&host->shape, text), shape_text(&shape, other));
        return NO_VALUE;
    }
    struct onnx_name *source =
        host->origin && !host->transposed ? onnx_name_find(im, host->origin) : NULL;
    if (source && source->value != NO_VALUE && shape_equal(onnx_shape(im, source->value), &shape))
        return source->value; /* under another shape in between */
    const char *stored = source ? source->text : name->text;
    value_id value = store_host(im, stored, host, shape, buffer, err);
    onnx_remember(im, source ? source : name, value);
    return value;
}

static bool name_taken(const struct graph *graph, const char *name)
{
    for (int32_t i = 0; i < graph->n_nodes; i++)
        if (strcmp(graph->nodes[i].name, name) == 0)
            return true;
    return false;
}

value_id onnx_add(struct onnx_import *im, onnx_node *node, const char *suffix, enum op_kind kind,
                  const value_id *inputs, int n_inputs, const union attr *attr, struct err *err)
{
    struct graph *graph = im->graph;
    const char *base = node->name && *node->name ? node->name
                       : node->n_output          ? node->output[0]
                                                 : "node";
    char *name = text_format("%s%s", base, suffix ? suffix : "");
    if (name && name_taken(graph, name)) {
        free(name);
        name = text_format("%s%s.%d", base, suffix ? suffix : "", (int)graph->n_nodes);
    }
    if (!name) {
        err_memory(err, base);
        return NO_VALUE;
    }
    value_id value = graph_node(graph, kind, name, inputs, n_inputs, attr);
    free(name);
    if (value == NO_VALUE)
        err_set(err, graph->err.kind, "%s", graph->err.text);
    return value;
}

/* Extents that hold for any batch: 0 (keep) for a first axis that stays, -1 (what is left) for one
 * that does not. */
static void free_the_batch(const struct shape *in, struct shape *target)
{
    bool inferred = false;
    if (target->rank < 1 || in->rank < 1 || target->dim[0] < 1)
        return;
    for (int i = 0; i < target->rank; i++)
        inferred = inferred || target->dim[i] == -1;
    if (target->dim[0] == in->dim[0])
        target->dim[0] = 0;
    else if (!inferred)
        target->dim[0] = -1;
}

value_id onnx_add_reshape(struct onnx_import *im, onnx_node *node, const char *suffix, value_id x,
                          struct shape target, struct err *err)
{
    if (x == NO_VALUE)
        return NO_VALUE;
    free_the_batch(onnx_shape(im, x), &target);
    return onnx_add(im, node, suffix, OP_RESHAPE, &x, 1, &(union attr){ .reshape = { target } },
                    err);
}

value_id onnx_add_scale(struct onnx_import *im, onnx_node *node, const char *suffix, value_id x,
                        double factor, double offset, struct err *err)
{
    if (x == NO_VALUE)
        return NO_VALUE;
    union attr attr = { .scale = { (float)factor, (float)offset } };
    return onnx_add(im, node, suffix, OP_SCALE, &x, 1, &attr, err);
}

bool onnx_bind(struct onnx_import *im, onnx_node *node, size_t k, value_id value, struct err *err)
{
    struct onnx_name *name = k < node->n_output ? onnx_name_find(im, node->output[k]) : NULL;
    if (value == NO_VALUE)
        return false;
    if (k >= node->n_output)
        return err_set(err, ERR_FORMAT, "output %zu is missing", k);
    if (name)
        name->value = value;
    return true;
}

bool onnx_bind_host(struct onnx_import *im, onnx_node *node, size_t k, struct host *host,
                    struct err *err)
{
    struct onnx_name *name = k < node->n_output ? onnx_name_find(im, node->output[k]) : NULL;
    if (!host)
        return false;
    if (!name || name->host) {
        host_free(host);
        return name ? err_set(err, ERR_FORMAT, "an output is computed twice") : true;
    }
    name->host = host;
    return true;
}
