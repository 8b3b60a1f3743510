/* graph_hash.c: one number for a network: what it computes and, if asked, with which weights.
 * Numbers are hashed byte by byte from the lowest, so that every processor gives the same hash. */
#include <string.h>
#include "base/identity.h"
#include "net/graph/graph.h"

static uint64_t hash_bits(uint64_t hash, uint64_t bits, size_t n_bytes)
{
    unsigned char bytes[8];
    for (size_t i = 0; i < n_bytes; i++)
        bytes[i] = (unsigned char)(bits >> 8 * i);
    return identity_hash(hash, bytes, n_bytes);
}

static uint64_t hash_double(uint64_t hash, double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return hash_bits(hash, bits, sizeof bits);
}

static uint64_t hash_shape(uint64_t hash, const struct shape *shape)
{
    for (int i = 0; i < shape->rank; i++)
        hash = hash_bits(hash, (uint64_t)shape->dim[i], sizeof shape->dim[i]);
    return hash;
}

static uint64_t hash_floats(uint64_t hash, const float *floats, int64_t n)
{
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        return identity_hash(hash, floats, (size_t)n * sizeof *floats);
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &floats[i], sizeof bits);
        hash = hash_bits(hash, bits, sizeof bits);
    }
    return hash;
}

/* Which input of the graph a value is, where there are several to confuse. */
static uint64_t hash_which_input(uint64_t hash, const struct graph *graph, value_id id)
{
    for (int i = 1; i < graph->n_inputs; i++)
        if (graph->inputs[i].value == id)
            hash = hash_bits(hash, (uint64_t)i, 4);
    return hash;
}

/* A value by where it comes from: its floats, or the node that makes it (-1: an input). */
static uint64_t hash_value(uint64_t hash, const struct graph *graph, value_id id, bool weights)
{
    if (id == NO_VALUE)
        return identity_hash(hash, "-", 1);
    const struct value *value = &graph->values[id];
    hash = hash_bits(hash, (uint32_t)value->node, sizeof value->node);
    hash = hash_shape(hash_which_input(hash, graph, id), &value->shape);
    if (weights && graph_is_parameter(graph, id) && value->data)
        hash = hash_floats(hash, buffer_data(value->data), shape_count(&value->shape));
    return hash;
}

static uint64_t hash_node(uint64_t hash, const struct graph *graph, const struct node *node,
                          bool weights)
{
    hash = identity_hash(hash, node->op->name, strlen(node->op->name) + 1);
    for (const struct attr_field *f = node->op->fields; f && f->name; f++) {
        if (f->type == ATTR_SHAPE)
            hash = hash_shape(hash, (const void *)((const char *)&node->attr + f->offset));
        for (int i = 0; f->type != ATTR_SHAPE && i < f->count; i++)
            hash = hash_double(hash, op_attr_value(f, &node->attr, i));
    }
    for (int i = 0; i < node->n_inputs; i++)
        hash = hash_value(hash, graph, node->inputs[i], weights);
    return hash;
}

uint64_t graph_hash(const struct graph *graph, uint64_t begin, bool weights)
{
    uint64_t hash = begin;
    for (int32_t i = 0; i < graph->n_nodes; i++)
        hash = hash_node(hash, graph, &graph->nodes[i], weights);
    for (int i = 0; i < graph->n_outputs; i++)
        hash = hash_value(hash, graph, graph->outputs[i].value, weights);
    return hash;
}
