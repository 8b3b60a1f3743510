/* predictions.c: see predictions.h. */
#include "train/predictions.h"

#include <stdlib.h>
#include <string.h>

void predictions_free(struct predictions *predictions)
{
    free(predictions->values);
    free(predictions->truths);
    free(predictions->samples);
    *predictions = (struct predictions){ 0 };
}

bool predictions_grow(struct predictions *to, int64_t n, struct err *err)
{
    if (to->n + n <= to->room)
        return true;
    int64_t room = 2 * (to->n + n);
    float *values = realloc(to->values, (size_t)room * (size_t)to->outputs * sizeof *values);
    to->values = values ? values : to->values;
    float *truths = realloc(to->truths, (size_t)room * sizeof *truths);
    to->truths = truths ? truths : to->truths;
    int64_t *samples = realloc(to->samples, (size_t)room * sizeof *samples);
    to->samples = samples ? samples : to->samples;
    if (!values || !truths || !samples)
        return err_memory(err, "predictions");
    to->room = room;
    return true;
}

struct gathered {
    int64_t sample, from; /* from: its place before sorting */
};

static int by_sample(const void *a, const void *b)
{
    const struct gathered *x = a, *y = b;
    if (x->sample != y->sample)
        return x->sample < y->sample ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

/* As one rank would have them: by sample. */
static bool put_in_order(const struct predictions *from, struct predictions *to, struct err *err)
{
    size_t n = (size_t)from->n, outputs = (size_t)from->outputs;
    struct gathered *order = calloc(n + 1, sizeof *order);
    to->values = calloc(n * outputs + 1, sizeof *to->values);
    to->truths = calloc(n + 1, sizeof *to->truths);
    to->samples = calloc(n + 1, sizeof *to->samples);
    bool ok = (order && to->values && to->truths && to->samples) || err_memory(err, "predictions");
    for (size_t i = 0; ok && i < n; i++)
        order[i] = (struct gathered){ from->samples[i], (int64_t)i };
    if (ok)
        qsort(order, n, sizeof *order, by_sample);
    for (size_t i = 0; ok && i < n; i++) {
        size_t at = (size_t)order[i].from;
        memcpy(to->values + i * outputs, from->values + at * outputs, outputs * sizeof *to->values);
        to->truths[i] = from->truths[at];
        to->samples[i] = from->samples[at];
    }
    to->n = to->room = from->n;
    free(order);
    return ok;
}

bool predictions_gather(struct ranks *ranks, const struct predictions *mine,
                        struct predictions *all, struct err *err)
{
    size_t n = (size_t)mine->n, *at = calloc((size_t)ranks->size + 1, sizeof *at);
    char *values = NULL, *truths = NULL, *samples = NULL;
    *all = (struct predictions){ .outputs = mine->outputs, .loss_sum = mine->loss_sum };
    bool ok = ranks_agree(ranks, at || err_memory(err, "predictions"), NULL, err) &&
              ranks_gather(ranks, mine->values, n * (size_t)mine->outputs * sizeof *mine->values,
                           &values, at, err) &&
              ranks_gather(ranks, mine->truths, n * sizeof *mine->truths, &truths, at, err) &&
              ranks_gather(ranks, mine->samples, n * sizeof *mine->samples, &samples, at, err);
    if (ok) {
        struct predictions together = { .values = (void *)values,
                                        .truths = (void *)truths,
                                        .samples = (void *)samples,
                                        .n = (int64_t)(at[ranks->size] / sizeof *mine->samples),
                                        .outputs = mine->outputs };
        ok = ranks_agree(ranks, put_in_order(&together, all, err), NULL, err);
    }
    free(values);
    free(truths);
    free(samples);
    free(at);
    if (!ok)
        predictions_free(all);
    return ok;
}
