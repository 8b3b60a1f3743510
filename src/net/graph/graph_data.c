/* graph_data.c: the floats of parameters: allocation and first values. */
#include <math.h>
#include <string.h>
#include "base/rng.h"
#include "net/graph/graph.h"

int graph_init(struct graph *graph, const char *name, struct init init)
{
    int matched = 0;
    const char *tail = name[0] == '*' ? name + 1 : NULL;
    for (int32_t i = 0; i < graph->n_values; i++) {
        struct value *value = &graph->values[i];
        if (!graph_is_parameter(graph, i))
            continue;
        size_t length = strlen(value->name), tail_length = tail ? strlen(tail) : 0;
        bool hit =
            tail ? length >= tail_length && strcmp(value->name + length - tail_length, tail) == 0
                 : strcmp(value->name, name) == 0;
        if (hit)
            value->init = init, matched++;
    }
    return matched;
}

bool graph_allocate(struct graph *graph, struct err *err)
{
    for (int32_t i = 0; i < graph->n_values; i++) {
        struct value *value = &graph->values[i];
        if (!graph_is_parameter(graph, i) || value->data)
            continue;
        value->data = buffer_new(shape_count(&value->shape));
        if (!value->data)
            return err_memory(err, value->name);
    }
    return true;
}

void graph_forget(struct graph *graph)
{
    for (int32_t i = 0; i < graph->n_values; i++)
        if (graph_is_parameter(graph, i)) {
            buffer_release(graph->values[i].data);
            graph->values[i].data = NULL;
        }
}

float *graph_data(const struct graph *graph, value_id parameter)
{
    const struct value *value = &graph->values[parameter];
    return value->data ? buffer_data(value->data) : NULL;
}

bool graph_own(struct graph *graph, value_id parameter, struct err *err)
{
    struct value *value = &graph->values[parameter];
    int64_t count = shape_count(&value->shape);
    struct buffer *own = buffer_new_unset(count);
    if (!own)
        return err_memory(err, value->name);
    memcpy(buffer_data(own), buffer_data(value->data), (size_t)count * sizeof(float));
    buffer_release(value->data);
    value->data = own;
    return true;
}

/* Inputs (or outputs) that one output (input) of a weight [O, I, ..] is connected to. */
static double fan(const struct shape *shape, bool out)
{
    int64_t field = shape->rank > 2 ? shape_span(shape, 2, shape->rank) : 1;
    int axis = out || shape->rank < 2 ? 0 : 1;
    return shape->rank ? (double)(shape->dim[axis] * field) : 1;
}

static double draw(struct rng *rng, const struct value *value)
{
    double a = (double)value->init.a, x;
    switch (value->init.kind) {
    case INIT_CONSTANT:
        return a;
    case INIT_UNIFORM:
        return rng_between(rng, -a, a);
    case INIT_NORMAL:
        return a * rng_normal(rng);
    case INIT_TRUNCATED:
        do
            x = rng_normal(rng);
        while (fabs(x) > 2);
        return a * x;
    case INIT_FAN_IN_UNIFORM:
        a = 1 / sqrt(fan(&value->shape, false));
        return rng_between(rng, -a, a);
    case INIT_FAN_OUT_NORMAL:
        return sqrt(2 / fan(&value->shape, true)) * rng_normal(rng);
    case INIT_FAN_IN_NORMAL:
        return sqrt(2 / fan(&value->shape, false)) * rng_normal(rng);
    }
    return 0;
}

bool graph_initialize(struct graph *graph, uint64_t seed, struct err *err)
{
    if (!graph_allocate(graph, err))
        return false;
    for (int32_t i = 0; i < graph->n_values; i++) {
        const struct value *value = &graph->values[i];
        if (!graph_is_parameter(graph, i))
            continue;
        struct rng rng = rng_new(seed, rng_hash(value->name), 0);
        float *data = buffer_data(value->data);
        int64_t count = shape_count(&value->shape);
        for (int64_t k = 0; k < count; k++)
            data[k] = (float)draw(&rng, value);
    }
    return true;
}
