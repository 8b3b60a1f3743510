/* dataset_index.c: what is known of every sample (dataset.h), in a few bits each: runs of samples
 * share origin, patient and side; classes are packed; items and groups are derived. */
#include <stdlib.h>
#include "base/array.h"
#include "train/dataset_origin.h"

/* --- classes: the narrowest power of two of bits; the number after the last means none --- */

static int label_bits(int64_t n_classes)
{
    int bits = 1;
    while (bits < 32 && (INT64_C(1) << bits) <= n_classes)
        bits *= 2;
    return bits;
}

static bool add_label(struct dataset *dataset, int32_t label, struct err *err)
{
    if (dataset->label_bits == 0)
        dataset->label_bits = label_bits(dataset->n_classes);
    int64_t bit = dataset->n_samples * dataset->label_bits, word = bit / 64;
    if (!array_grow(&dataset->labels, &dataset->room_labels, word + 1, sizeof *dataset->labels,
                    "the table of samples", err))
        return false;
    if (bit % 64 == 0)
        dataset->labels[word] = 0;
    uint64_t code = label == PATCH_UNLABELED ? (uint64_t)dataset->n_classes : (uint64_t)label;
    dataset->labels[word] |= code << (bit % 64);
    return true;
}

int32_t dataset_label(const struct dataset *dataset, int64_t sample)
{
    int64_t bit = sample * dataset->label_bits;
    uint64_t mask = (UINT64_C(1) << dataset->label_bits) - 1;
    uint64_t code = dataset->labels[bit / 64] >> (bit % 64) & mask;
    return code == (uint64_t)dataset->n_classes ? PATCH_UNLABELED : (int32_t)code;
}

/* --- spans --- */

int64_t dataset_span_end(const struct dataset *dataset, int64_t span)
{
    return span + 1 < dataset->n_spans ? dataset->spans[span + 1].first : dataset->n_samples;
}

static int64_t span_of(const struct dataset *dataset, int64_t sample)
{
    int64_t low = 0, high = dataset->n_spans;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        *(dataset->spans[middle].first <= sample ? &low : &high) = middle;
    }
    return low;
}

int64_t dataset_span_item(const struct sample_span *span, int64_t sample)
{
    int64_t k = sample - span->first;
    return span->first_item + (span->kept ? kept_place(span->kept, k) : k);
}

/* Continues the last span with an item that leaves out some. */
static bool skip_to(struct dataset *dataset, struct sample_span *span, int64_t item,
                    struct err *err)
{
    if (!span->kept) {
        if (!(span->kept = calloc(1, sizeof *span->kept)))
            return err_memory(err, "the table of samples");
        for (int64_t i = 0; i < dataset->n_samples - span->first; i++)
            if (!kept_add(span->kept, i, err))
                return false;
    }
    return kept_add(span->kept, item - span->first_item, err);
}

static bool add_to_span(struct dataset *dataset, const struct new_sample *new, struct err *err)
{
    struct sample_span *last = dataset->n_spans ? &dataset->spans[dataset->n_spans - 1] : NULL;
    bool same = last && last->origin == new->origin && last->patient == new->patient &&
                last->side == new->side;
    if (same && new->item > dataset->last_item)
        return (!last->kept && new->item == dataset->last_item + 1) ||
               skip_to(dataset, last, new->item, err);
    if (last && last->kept)
        kept_trim(last->kept);
    if (!array_grow(&dataset->spans, &dataset->room_spans, dataset->n_spans + 1,
                    sizeof *dataset->spans, "the table of samples", err))
        return false;
    dataset->spans[dataset->n_spans++] = (struct sample_span){ .first = dataset->n_samples,
                                                               .first_item = new->item,
                                                               .origin = new->origin,
                                                               .patient = new->patient,
                                                               .side = new->side };
    return true;
}

/* Only where the stores have them. */
static bool add_target(struct dataset *dataset, float target, struct err *err)
{
    if (!dataset->target_name)
        return true;
    if (!array_grow(&dataset->targets, &dataset->room_targets, dataset->n_samples + 1,
                    sizeof *dataset->targets, "the table of samples", err))
        return false;
    dataset->targets[dataset->n_samples] = target;
    return true;
}

bool dataset_add_sample(struct dataset *dataset, const struct new_sample *new, struct err *err)
{
    if (!add_to_span(dataset, new, err) || !add_label(dataset, new->label, err) ||
        !add_target(dataset, new->target, err))
        return false;
    dataset->last_item = new->item;
    dataset->n_samples++;
    return true;
}

static void free_spans(struct sample_span *spans, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (spans[i].kept)
            kept_free(spans[i].kept);
        free(spans[i].kept);
    }
    free(spans);
}

/* Spans end wherever the next sample is on another side. */
bool dataset_keep_out(struct dataset *dataset, const bool *held, struct err *err)
{
    struct dataset fresh = { 0 };
    bool ok = true;
    for (int64_t s = 0; ok && s < dataset->n_spans; s++) {
        const struct sample_span *span = &dataset->spans[s];
        for (int64_t i = span->first; ok && i < dataset_span_end(dataset, s); i++) {
            struct new_sample new = { .item = dataset_span_item(span, i),
                                      .origin = span->origin,
                                      .patient = span->patient,
                                      .side = held[i] ? DATA_NONE : span->side };
            ok = add_to_span(&fresh, &new, err);
            fresh.last_item = new.item;
            fresh.n_samples++;
        }
    }
    free_spans(ok ? dataset->spans : fresh.spans, ok ? dataset->n_spans : fresh.n_spans);
    if (ok) {
        dataset->spans = fresh.spans;
        dataset->n_spans = fresh.n_spans;
        dataset->room_spans = fresh.room_spans;
    }
    return ok;
}

void dataset_free_index(struct dataset *dataset)
{
    free_spans(dataset->spans, dataset->n_spans);
    free(dataset->labels);
    free(dataset->targets);
    free(dataset->target_name);
    free(dataset->target_unit);
}

/* --- what others ask --- */

int32_t origin_group(const struct origin *origin, int64_t item)
{
    if (origin->kind != ORIGIN_STORE)
        return (int32_t)item;
    if (item < 0 || origin->n_groups == 0 || item >= origin->group_first[origin->n_groups])
        return -1;
    int64_t low = 0, high = origin->n_groups; /* group_first[low] <= item < group_first[high] */
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        *(origin->group_first[middle] <= item ? &low : &high) = middle;
    }
    return (int32_t)low;
}

struct sample_range dataset_range(const struct dataset *dataset, int64_t sample)
{
    int64_t number = span_of(dataset, sample), end = dataset_span_end(dataset, number);
    const struct sample_span *span = &dataset->spans[number];
    const struct origin *origin = &dataset->origins[span->origin];
    int32_t group = origin_group(origin, dataset_span_item(span, sample));
    int64_t below = sample + 1 - span->first; /* samples of the span before the group's end */
    if (origin->kind == ORIGIN_STORE) {
        below = origin->group_first[group + 1] - span->first_item;
        below = span->kept ? kept_before(span->kept, below) : below;
    }
    return (struct sample_range){
        .first = sample,
        .end = span->first + below < end ? span->first + below : end,
        .origin = span->origin,
        .group = group,
        .patient = span->patient,
        .side = span->side,
    };
}

int64_t dataset_item(const struct dataset *dataset, int64_t sample)
{
    return dataset_span_item(&dataset->spans[span_of(dataset, sample)], sample);
}

enum data_side dataset_side(const struct dataset *dataset, int64_t sample)
{
    return dataset->spans[span_of(dataset, sample)].side;
}

int32_t dataset_origin(const struct dataset *dataset, int64_t sample)
{
    return dataset->spans[span_of(dataset, sample)].origin;
}

int32_t dataset_group(const struct dataset *dataset, int64_t sample)
{
    const struct sample_span *span = &dataset->spans[span_of(dataset, sample)];
    return origin_group(&dataset->origins[span->origin], dataset_span_item(span, sample));
}

const char *dataset_patient(const struct dataset *dataset, int64_t sample)
{
    return dataset->patients[dataset->spans[span_of(dataset, sample)].patient];
}

int64_t dataset_count(const struct dataset *dataset, enum data_side side, int64_t *per_class)
{
    int64_t n = 0;
    for (int64_t c = 0; per_class && c < dataset->n_classes; c++)
        per_class[c] = 0;
    for (int64_t s = 0; s < dataset->n_spans; s++) {
        int64_t end = dataset_span_end(dataset, s);
        if (dataset->spans[s].side != side)
            continue;
        n += end - dataset->spans[s].first;
        for (int64_t i = dataset->spans[s].first; per_class && i < end; i++) {
            int32_t label = dataset_label(dataset, i);
            if (label != PATCH_UNLABELED)
                per_class[label]++;
        }
    }
    return n;
}
