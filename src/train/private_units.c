/* private_units.c: see private_units.h. */
#include "train/private_units.h"

#include <stdlib.h>
#include "base/rng.h"

/* Counts runs of training samples; with out->first, notes them. */
static void find_runs(const struct dataset *dataset, struct private_units *out)
{
    int64_t end = -1, runs = 0, before = 0;
    struct sample_range range;
    for (int64_t at = 0; at < dataset->n_samples; at = range.end) {
        range = dataset_range(dataset, at);
        if (range.side != DATA_TRAIN)
            continue;
        if (range.first != end) {
            if (out->first)
                out->first[runs] = range.first, out->before[runs] = before;
            runs++;
        }
        before += range.end - range.first;
        end = range.end;
    }
    out->n_runs = runs;
    out->n = before;
    if (out->first)
        out->before[runs] = before;
}

static bool find_patches(const struct dataset *dataset, struct private_units *out, struct err *err)
{
    find_runs(dataset, out);
    out->first = calloc((size_t)out->n_runs + 1, sizeof *out->first);
    out->before = calloc((size_t)out->n_runs + 1, sizeof *out->before);
    if (!out->first || !out->before)
        return err_memory(err, "the units of a private training");
    find_runs(dataset, out);
    return true;
}

/* Counting sort of the samples by patient; patients without any are no units. */
static bool find_patients(const struct dataset *dataset, struct private_units *out, struct err *err)
{
    size_t patients = (size_t)dataset->n_patients;
    int64_t *at = calloc(patients + 1, sizeof *at), all = 0;
    out->begin = calloc(patients + 1, sizeof *out->begin);
    out->samples = calloc((size_t)dataset->n_samples + 1, sizeof *out->samples);
    bool ok =
        (at && out->begin && out->samples) || err_memory(err, "the units of a private training");
    struct sample_range range;
    for (int64_t i = 0; ok && i < dataset->n_samples; i = range.end) {
        range = dataset_range(dataset, i);
        at[range.patient] += range.side == DATA_TRAIN ? range.end - i : 0;
    }
    for (size_t p = 0; ok && p < patients; p++) {
        int64_t count = at[p];
        at[p] = all;
        if (count > 0)
            out->begin[out->n++] = all;
        all += count;
    }
    for (int64_t i = 0; ok && i < dataset->n_samples; i = range.end) {
        range = dataset_range(dataset, i);
        for (int64_t s = i; range.side == DATA_TRAIN && s < range.end; s++)
            out->samples[at[range.patient]++] = s;
    }
    if (ok)
        out->begin[out->n] = all;
    free(at);
    return ok;
}

bool private_units_new(const struct dataset *dataset, enum privacy_unit kind,
                       struct private_units *out, struct err *err)
{
    *out = (struct private_units){ .kind = kind };
    if (kind == UNIT_PATCH ? find_patches(dataset, out, err) : find_patients(dataset, out, err))
        return true;
    private_units_free(out);
    return false;
}

void private_units_free(struct private_units *units)
{
    free(units->first), free(units->before), free(units->samples), free(units->begin);
    *units = (struct private_units){ 0 };
}

static int64_t patch_of(const struct private_units *units, int64_t unit)
{
    int64_t low = 0, high = units->n_runs;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        *(units->before[middle] <= unit ? &low : &high) = middle;
    }
    return units->first[low] + unit - units->before[low];
}

static int by_sample(const void *a, const void *b)
{
    const struct order_item *x = a, *y = b;
    return x->sample < y->sample ? -1 : x->sample > y->sample;
}

/* Floyd's way to draw `count` of n places without replacement. */
static void draw(const int64_t *samples, int64_t n, struct rng *rng, int64_t count,
                 struct order_item *out)
{
    for (int64_t i = 0, top = n - count; i < count; i++, top++) {
        int64_t place = (int64_t)rng_below(rng, (uint64_t)top + 1);
        for (int64_t k = 0; k < i; k++)
            if (out[k].sample == samples[place]) {
                place = top;
                break;
            }
        out[i] = (struct order_item){ .sample = samples[place] };
    }
    qsort(out, (size_t)count, sizeof *out, by_sample); /* as they lie in the stores */
}

void private_units_items(const struct private_units *units, int64_t unit, uint64_t seed,
                         uint64_t step, int64_t count, struct order_item *out)
{
    if (units->kind == UNIT_PATCH) {
        int64_t sample = patch_of(units, unit);
        for (int64_t i = 0; i < count; i++)
            out[i] = (struct order_item){ .sample = sample, .copy = (int32_t)i };
        return;
    }
    const int64_t *samples = units->samples + units->begin[unit];
    int64_t n = units->begin[unit + 1] - units->begin[unit];
    struct rng rng = rng_new(seed, rng_hash("patches of a patient") ^ step, (uint64_t)unit);
    if (n >= count) {
        draw(samples, n, &rng, count, out);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        out[i] = (struct order_item){ .sample = samples[i % n], .copy = (int32_t)(i / n) };
}
