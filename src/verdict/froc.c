/* froc.c: see froc.h. */
#include "verdict/froc.h"

#include <math.h>
#include <stdlib.h>
#include "base/array.h"

const char *const froc_ties_names[] = { "equal", "official", NULL };
const double froc_rates[FROC_RATES] = { 0.25, 0.5, 1, 2, 4, 8 };

/* The lesion at a point; 0: none, also outside the mask. */
static int32_t label_at(const struct froc_truth *truth, const struct lesion *call)
{
    if (!truth || !truth->labels)
        return 0;
    double x = trunc(call->x_l0 / truth->downsample) - (double)truth->origin_x;
    double y = trunc(call->y_l0 / truth->downsample) - (double)truth->origin_y;
    if (!(x >= 0 && y >= 0 && x < (double)truth->width && y < (double)truth->height))
        return 0;
    return truth->labels[(int64_t)y * truth->width + (int64_t)x];
}

static bool make_room(double **values, int64_t *room, int64_t needed, struct err *err)
{
    return array_grow(values, room, needed, sizeof **values, "the FROC curve", err);
}

bool froc_add(struct froc_data *data, const struct froc_truth *truth,
              const struct lesion_list *calls, struct froc_slide *slide, struct err *err)
{
    const int64_t n = truth ? truth->n : 0;
    struct froc_slide counts = { .calls = calls->n };
    if (!make_room(&data->wrong, &data->room_wrong, data->n_wrong + calls->n, err) ||
        !make_room(&data->found, &data->room_found, data->n_found + n, err))
        return false;
    double *found = data->found + data->n_found;
    for (int64_t i = 0; i < n; i++)
        found[i] = 0;
    for (int64_t i = 0; i < calls->n; i++) {
        int32_t label = label_at(truth, &calls->items[i]);
        if (label == 0)
            data->wrong[data->n_wrong++] = calls->items[i].score, counts.wrong++;
        else if (truth->isolated[label - 1])
            counts.ignored++;
        else if (calls->items[i].score > found[label - 1])
            found[label - 1] = calls->items[i].score;
    }
    for (int64_t i = 0; i < n; i++)
        counts.hits += found[i] > 0;
    data->n_found += n;
    data->lesions += truth ? truth->counted : 0;
    data->slides++;
    if (slide)
        *slide = counts;
    return true;
}

void froc_data_free(struct froc_data *data)
{
    free(data->wrong);
    free(data->found);
    *data = (struct froc_data){ 0 };
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The score of a lesion as it is compared. */
static double kept(double score, enum froc_ties ties)
{
    return ties == FROC_TIES_OFFICIAL ? (double)(float)score : score;
}

/* Sorted copies of both kinds, and of both together. */
struct sorted {
    double *wrong, *found, *all; /* all is the allocation */
    int64_t n;
};

static bool sort_scores(const struct froc_data *data, enum froc_ties ties, struct sorted *out,
                        struct err *err)
{
    const int64_t n = data->n_wrong + data->n_found;
    double *values = calloc(2 * (size_t)n + 1, sizeof *values);
    *out = (struct sorted){ values + n, values + n + data->n_wrong, values, n };
    if (!values)
        return err_memory(err, "the FROC curve");
    for (int64_t i = 0; i < data->n_wrong; i++)
        values[i] = out->wrong[i] = data->wrong[i];
    for (int64_t i = 0; i < data->n_found; i++)
        values[data->n_wrong + i] = out->found[i] = kept(data->found[i], ties);
    qsort(out->all, (size_t)n, sizeof *values, by_value);
    qsort(out->wrong, (size_t)data->n_wrong, sizeof *values, by_value);
    qsort(out->found, (size_t)data->n_found, sizeof *values, by_value);
    return true;
}

/* A point for every distinct score but the lowest, and (0, 0). */
static void trace(const struct froc_data *data, enum froc_ties ties, const struct sorted *sorted,
                  struct froc *out)
{
    int64_t wrong = 0, found = 0; /* how many are below the threshold */
    for (int64_t i = 1; i < sorted->n; i++) {
        const double threshold = sorted->all[i];
        if (threshold == sorted->all[i - 1])
            continue;
        while (wrong < data->n_wrong && sorted->wrong[wrong] < threshold)
            wrong++;
        while (found < data->n_found && sorted->found[found] < kept(threshold, ties))
            found++;
        out->points[out->n_points++] =
            (struct froc_point){ (double)(data->n_wrong - wrong) / (double)data->slides,
                                 (double)(data->n_found - found) / (double)data->lesions,
                                 threshold };
    }
    out->points[out->n_points++] = (struct froc_point){ 0, 0, INFINITY };
}

bool froc_compute(const struct froc_data *data, enum froc_ties ties, struct froc *out,
                  struct err *err)
{
    const int64_t n = data->n_wrong + data->n_found;
    *out = (struct froc){ 0 };
    if (data->lesions == 0)
        return err_set(err, ERR_MISSING,
                       "no lesion in the %lld slides counts (there is no tumour, or only isolated "
                       "cells): an FROC curve needs at least one; add slides with annotations, or "
                       "check --truth and --mpp",
                       (long long)data->slides);
    struct sorted sorted;
    if (!sort_scores(data, ties, &sorted, err))
        return false;
    out->points = calloc((size_t)n + 1, sizeof *out->points);
    if (!out->points) {
        free(sorted.all);
        return err_memory(err, "the FROC curve");
    }
    trace(data, ties, &sorted, out);
    free(sorted.all);
    for (int i = 0; i < FROC_RATES; i++) {
        out->at[i] = froc_sensitivity(out, froc_rates[i]);
        out->score += out->at[i];
    }
    out->score /= FROC_RATES;
    return true;
}

/* If several points have the same rate, the last one at or below it starts the step to the right,
 * as in numpy's interp. */
double froc_sensitivity(const struct froc *froc, double wrong_per_slide)
{
    int64_t low = 0, high = froc->n_points - 1; /* rates fall from low to high */
    if (wrong_per_slide >= froc->points[low].wrong_per_slide)
        return froc->points[low].sensitivity;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (froc->points[middle].wrong_per_slide > wrong_per_slide)
            low = middle;
        else
            high = middle;
    }
    const struct froc_point *a = &froc->points[high], *b = &froc->points[low];
    return a->sensitivity + (b->sensitivity - a->sensitivity) *
                                (wrong_per_slide - a->wrong_per_slide) /
                                (b->wrong_per_slide - a->wrong_per_slide);
}

void froc_free(struct froc *froc)
{
    free(froc->points);
    *froc = (struct froc){ 0 };
}
