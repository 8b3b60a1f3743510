/* graph_print.c: a graph as text: its nodes and their cost, or its layers. */
#include "net/graph/graph.h"

static void print_field(const struct attr_field *field, const union attr *attr, FILE *stream)
{
    const void *at = (const char *)attr + field->offset;
    char text[SHAPE_TEXT];
    fprintf(stream, " %s=", field->name);
    for (int i = 0; i < field->count; i++) {
        const char *separator = i ? "," : "";
        switch (field->type) {
        case ATTR_INT:
            fprintf(stream, "%s%lld", separator, (long long)((const int64_t *)at)[i]);
            break;
        case ATTR_REAL:
            fprintf(stream, "%g", (double)*(const float *)at);
            break;
        case ATTR_DOUBLE:
            fprintf(stream, "%s%g", separator, ((const double *)at)[i]);
            break;
        case ATTR_BOOL:
            fputs(*(const bool *)at ? "yes" : "no", stream);
            break;
        case ATTR_CHOICE:
            fputs(field->choices[*(const int *)at], stream);
            break;
        case ATTR_SHAPE:
            fputs(shape_text(at, text), stream);
            break;
        case ATTR_BITS:
            fprintf(stream, "0x%x", *(const uint32_t *)at);
            break;
        }
    }
}

/* Attributes that differ from what an empty initialiser gives. */
static void print_attributes(const struct node *node, FILE *stream)
{
    union attr plain = { .reshape = { { 0, { 0 } } } };
    if (node->op->complete)
        node->op->complete(&plain);
    for (const struct attr_field *f = node->op->fields; f && f->name; f++) {
        struct attr_field one[2] = { *f, { .name = NULL } };
        struct op only = { .fields = one };
        if (!op_attr_equal(&only, &node->attr, &plain))
            print_field(f, &node->attr, stream);
    }
}

#define VALUE_TEXT (SHAPE_TEXT + 10)

/* The shape, and how it is kept unless as float32: "[1, 64, 56, 56] int8". */
static const char *value_text(const struct graph *graph, value_id value, char text[VALUE_TEXT])
{
    char shape[SHAPE_TEXT];
    enum dtype dtype = graph->values[value].storage.dtype;
    bool plain = dtype == DTYPE_FLOAT32;
    snprintf(text, VALUE_TEXT, "%s%s%s", shape_text(graph_shape(graph, value), shape),
             plain ? "" : " ", plain ? "" : dtype_names[dtype]);
    return text;
}

void graph_print(const struct graph *graph, FILE *stream)
{
    char text[SHAPE_TEXT], kept[VALUE_TEXT];
    fprintf(stream, "%s\n", *graph->name ? graph->name : "(unnamed network)");
    for (int i = 0; i < graph->n_inputs; i++)
        fprintf(stream, "input  %-28s %s\n", graph->inputs[i].name,
                shape_text(graph_shape(graph, graph->inputs[i].value), text));
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const struct node *node = &graph->nodes[i];
        fprintf(stream, "%5d  %-28s %-22s %-18s(", i, node->name,
                value_text(graph, node->output, kept), node->op->name);
        for (int k = 0; k < node->n_inputs; k++)
            fprintf(stream, "%s%s", k ? ", " : "",
                    node->inputs[k] == NO_VALUE ? "-" : graph->values[node->inputs[k]].name);
        fputc(')', stream);
        print_attributes(node, stream);
        fputc('\n', stream);
    }
    for (int i = 0; i < graph->n_outputs; i++)
        fprintf(stream, "output %-28s %s = %s\n", graph->outputs[i].name,
                shape_text(graph_shape(graph, graph->outputs[i].value), text),
                graph->values[graph->outputs[i].value].name);
    fprintf(stream, "%lld parameters, %.3f G multiply-adds\n",
            (long long)graph_parameter_count(graph), graph_multiply_adds(graph) / 1e9);
}

void graph_print_layers(const struct graph *graph, FILE *stream)
{
    char text[SHAPE_TEXT];
    fprintf(stream, "%-28s %-22s %s\n", "layer", "shape", "made by");
    for (int i = 0; i < graph->n_aliases; i++) {
        const struct value *value = &graph->values[graph->aliases[i].value];
        fprintf(stream, "%-28s %-22s %s\n", graph->aliases[i].name, shape_text(&value->shape, text),
                value->kind == VALUE_NODE ? value->name : "(input)");
    }
}

double graph_node_multiply_adds(const struct graph *graph, const struct node *node)
{
    double out = (double)shape_count(graph_shape(graph, node->output));
    if (node->op->kind == OP_CONV || node->op->kind == OP_LINEAR) {
        const struct shape *w = graph_shape(graph, node->inputs[1]);
        return out * (double)shape_span(w, 1, w->rank);
    }
    if (node->op->kind == OP_CONV_TRANSPOSE) {
        const struct shape *w = graph_shape(graph, node->inputs[1]);
        return (double)shape_count(graph_shape(graph, node->inputs[0])) *
               (double)shape_span(w, 1, w->rank);
    }
    if (node->op->kind == OP_MATMUL) {
        const struct shape *a = graph_shape(graph, node->inputs[0]);
        return out * (double)a->dim[a->rank - 1 - node->attr.matmul.transpose_a];
    }
    if (node->op->kind == OP_ATTENTION) {
        const struct shape *k = graph_shape(graph, node->inputs[node->inputs[1] != NO_VALUE]);
        return 2 * out * (double)k->dim[1];
    }
    return 0;
}

double graph_multiply_adds(const struct graph *graph)
{
    double sum = 0;
    for (int32_t i = 0; i < graph->n_nodes; i++)
        sum += graph_node_multiply_adds(graph, &graph->nodes[i]);
    return sum;
}
