/* subject_images.c: images and patches of stores as subjects: all images, and of each store those
 * with the highest scores, or random ones (subject.h). */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/text.h"
#include "explain/subject.h"
#include "train/model_patches.h"
#include "train/score.h"

struct image_state {
    struct model_patches patches;
    pthread_mutex_t mutex; /* HDF5 is read by one thread at a time */
    uint8_t *group;        /* of a store: the patches that were read last, together */
    int32_t group_origin, group_number;
};

static bool images_enter(struct subjects *subjects, int32_t source, struct err *err)
{
    (void)subjects, (void)source, (void)err;
    return true;
}

/* Patches of a store are read by groups. */
static bool read_stored(struct image_state *state, int64_t sample, struct image *out,
                        struct err *err)
{
    const struct dataset *dataset = &state->patches.dataset;
    int32_t origin = dataset_origin(dataset, sample), group = dataset_group(dataset, sample);
    bool held = state->group && state->group_origin == origin && state->group_number == group;
    if (!held) {
        free(state->group);
        state->group = malloc((size_t)dataset_group_bytes(dataset, sample));
        state->group_origin = origin;
        state->group_number = group;
        held = state->group ? dataset_read_group(dataset, sample, state->group, err)
                            : err_memory(err, "a group of patches");
    }
    if (held)
        return dataset_read(dataset, sample, state->group, out, err);
    free(state->group);
    state->group = NULL;
    return false;
}

static bool images_read(struct subjects *subjects, const struct subject *subject, struct image *out,
                        struct err *err)
{
    struct image_state *state = subjects->state;
    const struct dataset *dataset = &state->patches.dataset;
    bool ok;
    if (dataset_in_group(dataset, subject->sample)) {
        pthread_mutex_lock(&state->mutex);
        ok = read_stored(state, subject->sample, out, err);
        pthread_mutex_unlock(&state->mutex);
    } else {
        ok = dataset_read(dataset, subject->sample, NULL, out, err);
    }
    if (ok && !stain_need_patch(&state->patches.stain, out, err)) {
        image_free(out);
        ok = false;
    }
    return ok;
}

static void images_close(void *arg)
{
    struct image_state *state = arg;
    model_patches_free(&state->patches);
    free(state->group);
    pthread_mutex_destroy(&state->mutex);
    free(state);
}

static const struct subject_kind images = { .enter = images_enter,
                                            .read = images_read,
                                            .close = images_close };

/* --- picking --- */

struct scores {
    double *values; /* [samples]; NAN: could not be scored */
    int64_t n, class_index;
};

static bool take_score(void *arg, const struct score_row *row, struct err *err)
{
    (void)err;
    struct scores *scores = arg;
    scores->values[scores->n++] = row->problem ? NAN : row->scores[scores->class_index];
    return true;
}

/* A key for each sample: the highest are picked. Without `top`, images need none. */
static bool make_keys(const struct subject_request *request, const struct dataset *dataset,
                      const struct ctx *ctx, struct scores *out, struct err *err)
{
    out->values = malloc((size_t)(dataset->n_samples + 1) * sizeof *out->values);
    if (!out->values)
        return err_memory(err, "the list of images");
    for (int64_t i = 0; i < dataset->n_samples; i++)
        out->values[i] = NAN;
    if (request->pick == PICK_RANDOM || (!dataset->has_stores && request->top == 0))
        return true;
    struct score_request score = { .model = request->model,
                                   .paths = request->paths,
                                   .n_paths = (size_t)request->n_paths,
                                   .any_stain = request->any_stain };
    return score_run(&score, ctx, take_score, out, err);
}

struct candidate {
    double key;
    int64_t sample;
};

static int by_key(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->key != y->key)
        return x->key > y->key ? -1 : 1;
    return (x->sample > y->sample) - (x->sample < y->sample);
}

static int by_sample(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return (x->sample > y->sample) - (x->sample < y->sample);
}

/* Of samples [first, end): moves those that are picked to the front and returns their number. */
static int64_t pick(const struct subject_request *request, const struct scores *scores,
                    int64_t first, int64_t end, int64_t top, struct candidate *out)
{
    struct rng rng = rng_new(request->seed, rng_hash("patches"), (uint64_t)first);
    int64_t n = 0;
    for (int64_t i = first; i < end; i++) {
        double key = request->pick == PICK_RANDOM ? rng_uniform(&rng) : scores->values[i];
        bool all = top >= end - first; /* those without a score fail with a reason */
        if (!isnan(key) || all)
            out[n++] = (struct candidate){ isnan(key) ? 0 : key, i };
    }
    qsort(out, (size_t)n, sizeof *out, by_key);
    n = n < top ? n : top;
    qsort(out, (size_t)n, sizeof *out, by_sample);
    return n;
}

/* --- listing --- */

/* "dir/x.png" and "a.tar: dir/x.png" -> "x"; "s.h5 patch 12" -> "s_12". */
static char *subject_name(const struct dataset *dataset, int64_t sample, const char *file)
{
    const char *origin = dataset_origin_path(dataset, sample);
    bool stored = dataset_in_group(dataset, sample);
    size_t length = strlen(origin);
    if (length > 0 && strncmp(file, origin, length) == 0 && strncmp(file + length, ": ", 2) == 0)
        file += length + 2; /* an entry of a tar */
    char *stem = file_stem(stored ? origin : file), *name = stem;
    if (stem && stored) {
        name = text_format("%s_%lld", stem, (long long)dataset_item(dataset, sample));
        free(stem);
    }
    return name;
}

/* Where a patch of a store is, and what its file is. */
struct origin_facts {
    int32_t origin; /* whose these are; -1: none yet */
    double downsample, mpp;
    struct identity identity;
    bool stored;
};

static bool look_at_origin(const struct dataset *dataset, int64_t sample, struct origin_facts *out,
                           struct err *err)
{
    int32_t origin = dataset_origin(dataset, sample);
    const char *path = dataset_origin_path(dataset, sample);
    if (out->origin == origin)
        return true;
    *out = (struct origin_facts){ .origin = origin, .stored = dataset_in_group(dataset, sample) };
    if (!out->stored && (!path[0] || file_is_folder(path)))
        return true; /* its images are looked at one by one */
    if (!identity_of_sample(path, &out->identity, err))
        return false;
    struct store *store = NULL;
    if (!out->stored)
        return true;
    if (!store_open(path, &store, err))
        return false;
    out->downsample = store_facts(store)->downsample;
    out->mpp = store_facts(store)->mpp;
    store_close(store);
    return true;
}

static bool add_sample(const struct dataset *dataset, const struct candidate *candidate,
                       bool has_score, struct origin_facts *facts, struct subjects *out,
                       struct err *err)
{
    int64_t sample = candidate->sample;
    struct sample_place place = dataset_place(dataset, sample);
    char *file = dataset_sample_name(dataset, sample);
    char *name = file ? subject_name(dataset, sample, file) : NULL;
    bool ok = (name || err_memory(err, "the list of images")) &&
              look_at_origin(dataset, sample, facts, err);
    struct subject *subject = ok ? subjects_add(out, name, file, place.slide, err) : NULL;
    ok = subject != NULL;
    if (ok) {
        subject->sample = sample;
        subject->x_l0 = place.x_l0;
        subject->y_l0 = place.y_l0;
        subject->downsample = facts->downsample;
        subject->mpp = facts->mpp;
        subject->found = has_score ? candidate->key : NAN;
        struct identity identity = facts->identity;
        if (!facts->stored && file_exists(file))
            ok = identity_of_file(file, &identity, err);
        else
            subject->item = dataset_item(dataset, sample);
        inputs_add(subject->inputs, facts->stored ? "store" : "image", &identity);
    }
    free(file);
    free(name);
    return ok;
}

/* Samples [first, end) are of one store, or are all images in a row. */
static bool add_picked(const struct subject_request *request, const struct dataset *dataset,
                       const struct scores *scores, int64_t first, int64_t end,
                       struct candidate *candidates, struct subjects *out, struct err *err)
{
    bool stored = dataset_in_group(dataset, first), ok = true;
    int64_t top = request->top > 0 ? request->top : stored ? SUBJECTS_OF_SLIDE : end - first;
    int64_t n = pick(request, scores, first, end, top, candidates);
    struct origin_facts facts = { .origin = -1 };
    for (int64_t i = 0; ok && i < n; i++)
        ok = add_sample(dataset, &candidates[i], scores->n > 0 && request->pick != PICK_RANDOM,
                        &facts, out, err);
    return ok;
}

static bool add_all(const struct subject_request *request, const struct dataset *dataset,
                    const struct scores *scores, struct subjects *out, struct err *err)
{
    int64_t end = 0, n = dataset->n_samples;
    struct candidate *candidates = malloc((size_t)(n + 1) * sizeof *candidates);
    bool ok = candidates || err_memory(err, "the list of images");
    for (int64_t first = 0; ok && first < n; first = end) {
        bool stored = dataset_in_group(dataset, first);
        int32_t origin = dataset_origin(dataset, first);
        for (end = first + 1; end < n && dataset_in_group(dataset, end) == stored &&
                              (!stored || dataset_origin(dataset, end) == origin);)
            end++;
        ok = add_picked(request, dataset, scores, first, end, candidates, out, err);
    }
    free(candidates);
    return ok;
}

bool subjects_find_images(const struct subject_request *request, const struct ctx *ctx,
                          struct subjects *out, struct err *err)
{
    if (request->pick == PICK_LESIONS || request->areas)
        return err_set(err, ERR_USAGE, "%s: %s needs a results folder of 'microtome predict'",
                       request->paths[0],
                       request->pick == PICK_LESIONS ? "--pick lesions" : "--stitch");
    struct image_state *state = calloc(1, sizeof *state);
    if (!state)
        return err_memory(err, "the list of images");
    pthread_mutex_init(&state->mutex, NULL);
    out->kind = &images;
    out->state = state;
    out->n_sources = 1;
    struct scores scores = { .class_index = out->class_index };
    bool ok = model_patches_open(request->model, request->paths, (size_t)request->n_paths,
                                 request->any_stain, ctx, &state->patches, err) &&
              make_keys(request, &state->patches.dataset, ctx, &scores, err) &&
              add_all(request, &state->patches.dataset, &scores, out, err);
    free(scores.values);
    return ok;
}
