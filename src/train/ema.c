/* ema.c: the exponential moving average of a graph's parameters and buffers; see optimizer.h. */
#include <stdlib.h>
#include <string.h>
#include "train/optimizer.h"

struct ema {
    const struct graph *graph;
    double decay;
    int threads;
    struct state_array *arrays;
    value_id *values; /* of the arrays */
    int n_arrays;
    int64_t updates;
};

bool ema_new(const struct graph *graph, double decay, int threads, struct ema **out,
             struct err *err)
{
    bool ok = false;
    struct ema *e = calloc(1, sizeof *e);
    if (!e)
        return err_memory(err, "the average of the weights");
    *e = (struct ema){ .graph = graph, .decay = decay, .threads = threads };
    e->arrays = calloc((size_t)graph->n_values + 1, sizeof *e->arrays);
    e->values = calloc((size_t)graph->n_values + 1, sizeof *e->values);
    if (!e->arrays || !e->values) {
        err_memory(err, "the average of the weights");
        goto done;
    }
    for (value_id v = 0; v < graph->n_values; v++) {
        if (!graph_is_parameter(graph, v))
            continue;
        struct state_array a = { .name = graph->values[v].name,
                                 .count = shape_count(&graph->values[v].shape) };
        a.data = malloc((size_t)a.count * sizeof *a.data);
        if (!a.data) {
            err_memory(err, "the average of the weights");
            goto done;
        }
        memcpy(a.data, graph_data(graph, v), (size_t)a.count * sizeof *a.data);
        e->values[e->n_arrays] = v;
        e->arrays[e->n_arrays++] = a;
    }
    *out = e, e = NULL, ok = true;
done:
    ema_free(e);
    return ok;
}

void ema_free(struct ema *ema)
{
    if (!ema)
        return;
    for (int i = 0; i < ema->n_arrays; i++)
        free(ema->arrays[i].data);
    free(ema->arrays), free(ema->values), free(ema);
}

void ema_update(struct ema *ema)
{
    double early = (1 + (double)ema->updates) / (10 + (double)ema->updates);
    double decay = early < ema->decay ? early : ema->decay;
    const float keep = (float)decay, take = (float)(1 - decay);
#pragma omp parallel for schedule(dynamic) num_threads(ema->threads) if (ema->threads > 1)
    for (int k = 0; k < ema->n_arrays; k++) {
        float *restrict a = ema->arrays[k].data;
        const float *restrict w = graph_data(ema->graph, ema->values[k]);
#pragma omp simd
        for (int64_t i = 0; i < ema->arrays[k].count; i++)
            a[i] = keep * a[i] + take * w[i];
    }
    ema->updates++;
}

void ema_swap(struct ema *ema)
{
    for (int k = 0; k < ema->n_arrays; k++) {
        float *restrict a = ema->arrays[k].data;
        float *restrict w = graph_data(ema->graph, ema->values[k]);
        for (int64_t i = 0; i < ema->arrays[k].count; i++) {
            float kept = a[i];
            a[i] = w[i];
            w[i] = kept;
        }
    }
}

int ema_n_arrays(const struct ema *ema)
{
    return ema->n_arrays;
}

struct state_array ema_array(const struct ema *ema, int i)
{
    return ema->arrays[i];
}

int64_t ema_updates(const struct ema *ema)
{
    return ema->updates;
}

void ema_set_updates(struct ema *ema, int64_t updates)
{
    ema->updates = updates;
}
