/* drawn_step.c: see drawn_step.h. */
#include "support/drawn_step.h"
#include <math.h>
#include "base/rng.h"

int64_t floats_of(const struct graph *graph, value_id value)
{
    return shape_count(graph_shape(graph, value));
}

bool draw_weights(struct graph *graph)
{
    uint64_t drawn = 1;
    if (!graph_allocate(graph, NULL))
        return false;
    for (value_id v = 0; v < graph->n_values; v++) {
        const struct value *value = &graph->values[v];
        if (!graph_is_parameter(graph, v))
            continue;
        bool constant = value->init.kind == INIT_CONSTANT;
        float scale = value->shape.rank > 1
                          ? sqrtf(6 / (float)shape_span(&value->shape, 1, value->shape.rank))
                          : 0.1f;
        for (int64_t i = 0; i < shape_count(&value->shape); i++) {
            drawn = drawn * 6364136223846793005u + 1442695040888963407u;
            float uniform = (float)(int32_t)(drawn >> 32) / 2147483648.0f;
            graph_data(graph, v)[i] = constant ? value->init.a : scale * uniform;
        }
    }
    return true;
}

void draw_input(const struct graph *graph, int port, int micro, float *to)
{
    struct rng rng = rng_new(5, rng_hash(graph->inputs[port].name), (uint64_t)micro);
    for (int64_t i = 0; i < floats_of(graph, graph->inputs[port].value); i++)
        to[i] = (float)rng_between(&rng, -1, 1);
}

void draw_loss(const struct graph *graph, struct plan *plan, int micro)
{
    for (int o = 0; o < graph->n_outputs; o++) {
        struct rng rng = rng_new(6, (uint64_t)o, (uint64_t)micro);
        const float *y = plan_output(plan, o);
        float *d = plan_output_gradient(plan, o);
        for (int64_t i = 0; i < floats_of(graph, graph->outputs[o].value); i++)
            d[i] = 0.1f * y[i] + (float)rng_between(&rng, -1, 1);
    }
}
