/* denoiser.c: see denoiser.h. */
#include "diffusion/denoiser.h"

#include <string.h>
#include "net/zoo/zoo.h"

static int port(const struct graph_port *ports, int n, const char *name)
{
    int i = 0;
    while (i < n && strcmp(ports[i].name, name) != 0)
        i++;
    return i < n ? i : -1;
}

bool denoiser_ports(const struct graph *graph, struct denoiser *out, struct err *err)
{
    struct denoiser d = { .x = port(graph->inputs, graph->n_inputs, "input"),
                          .time = port(graph->inputs, graph->n_inputs, "time"),
                          .condition = port(graph->inputs, graph->n_inputs, "condition"),
                          .output = port(graph->outputs, graph->n_outputs, "noise") };
    if (d.x < 0 || d.time < 0 || d.output < 0)
        return err_set(
            err, ERR_USAGE,
            "%s is not a network that turns noise into images; use unet_tiny, unet_small, unet or "
            "unet_large",
            graph->name);
    const struct shape *x = graph_shape(graph, graph->inputs[d.x].value);
    d.batch = x->dim[0];
    d.floats = shape_count(x) / d.batch;
    d.features = graph_shape(graph, graph->inputs[d.time].value)->dim[1];
    if (d.condition >= 0)
        d.conditions = graph_shape(graph, graph->inputs[d.condition].value)->dim[1];
    *out = d;
    return true;
}

bool denoiser_new(const struct graph *graph, int threads, struct denoiser *out, struct err *err)
{
    struct plan_options options = { .mode = PLAN_INFER, .threads = threads };
    return denoiser_ports(graph, out, err) && plan_new(graph, &options, &out->plan, err);
}

void denoiser_free(struct denoiser *denoiser)
{
    plan_free(denoiser->plan);
    *denoiser = (struct denoiser){ 0 };
}

const float *denoiser_run(struct denoiser *denoiser, const struct process_at *at, const float *x,
                          const float *conditions, struct err *err)
{
    const struct denoiser *d = denoiser;
    float *input = plan_input(d->plan, d->x), *time = plan_input(d->plan, d->time);
    for (int64_t i = 0; i < d->batch; i++) {
        float scale = (float)at[i].scale;
        for (int64_t k = 0; k < d->floats; k++)
            input[i * d->floats + k] = scale * x[i * d->floats + k];
        zoo_time_embedding(at[i].code, d->features, time + i * d->features);
    }
    if (d->condition >= 0) {
        size_t bytes = (size_t)(d->batch * d->conditions) * sizeof *conditions;
        float *place = plan_input(d->plan, d->condition);
        if (conditions)
            memcpy(place, conditions, bytes);
        else
            memset(place, 0, bytes);
    }
    return plan_forward(d->plan, err) ? plan_output(d->plan, d->output) : NULL;
}
