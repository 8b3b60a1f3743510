/* patch_set.c: reads patches batch by batch, on all threads, and keeps their features
 * (patch_set.h). */
#include "likeness/patch_set.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "base/pool.h"
#include "base/rng.h"
#include "explain/probe.h"
#include "likeness/features.h"
#include "likeness/patch_nuclei.h"
#include "prepare/stain_need.h"
#include "train/dataset.h"

#define BATCH 64          /* patches that are read, and run through a network, together */
#define SQUARE_ENOUGH 1.1 /* longer side over shorter one, to be resized to a square */

struct patch_size {
    int64_t width, height; /* as stored; 0: too small to be used */
};

struct reading {
    const struct patch_set_options *options;
    const struct ctx *ctx;
    struct train_config config;
    struct dataset dataset;
    struct probe *probe; /* NULL: the 57 features */
    struct stain_need stain;
    float *input; /* [BATCH, 3, height, width] of the network */
    int64_t in_width, in_height;
    int64_t *samples; /* [n], ascending */
    int64_t n, d;
    double *values;             /* [n, d] */
    struct patch_size *sizes;   /* [n] */
    struct nuclei_sums *nuclei; /* [n] */
    double mpp;                 /* before resizing */
    uint8_t *group;             /* of the store that is being read */
    int64_t first;              /* of the batch, in samples */
    struct image batch[BATCH];
};

/* --- what there is --- */

static bool set_classes(struct reading *r, struct err *err)
{
    struct texts *classes = &r->config.classes;
    for (size_t i = 0; i < classes->n; i++)
        free(classes->items[i]);
    free(classes->items);
    size_t n = (size_t)r->options->n_classes;
    *classes = (struct texts){ calloc(n + 1, sizeof *classes->items), 0 };
    bool ok = classes->items != NULL;
    for (; ok && classes->n < n; classes->n += ok)
        ok = (classes->items[classes->n] = strdup(r->options->classes[classes->n])) != NULL;
    return ok || err_memory(err, "the classes");
}

static int by_number(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Lists the patches and draws some of them. */
static bool find_patches(struct reading *r, char *const *paths, size_t n_paths, struct err *err)
{
    if (!config_read(NULL, NULL, 0, &r->config, err) || !set_classes(r, err))
        return false;
    r->config.truth = TRUTH_LABELS;
    r->config.network.input_px = 1;
    r->config.data.spacing_um_px = 1; /* sizes and resolution are looked at here */
    if (!dataset_open_any(&r->config, paths, n_paths, &r->dataset, err))
        return false;
    int64_t found = r->dataset.n_samples;
    r->n = found < r->options->most ? found : r->options->most;
    r->mpp = r->dataset.mpp > 0 ? r->dataset.mpp : r->options->mpp;
    if (!rows_draw(found, r->n, r->options->seed, rng_hash("patches"), &r->samples, err))
        return false;
    qsort(r->samples, (size_t)r->n, sizeof *r->samples, by_number);
    return true;
}

static bool make_room(struct reading *r, struct err *err)
{
    size_t n = (size_t)r->n + 1;
    r->values = malloc(n * (size_t)r->d * sizeof *r->values);
    r->sizes = calloc(n, sizeof *r->sizes);
    r->nuclei = calloc(n, sizeof *r->nuclei);
    return (r->values && r->sizes && r->nuclei) || err_memory(err, "the features of patches");
}

/* --- a network --- */

/* For patches of this size, once one is known. */
static bool open_probe(struct reading *r, const struct image *patch, struct err *err)
{
    const struct model *model = r->options->model;
    const char *layer = r->options->layer ? r->options->layer : "";
    if (!model_input_size(&model->config, patch->width, patch->height, &r->in_width, &r->in_height,
                          err) ||
        !stain_need_of(&model->config, &r->stain, err))
        return err_prefix(err, model->name);
    struct probe_options options = { .layers = &layer,
                                     .n_layers = 1,
                                     .height = r->in_height,
                                     .width = r->in_width,
                                     .batch = BATCH,
                                     .threads = pool_workers(r->ctx->pool),
                                     .forward_only = true };
    if (!probe_new(model, &options, &r->probe, err))
        return false;
    r->d = probe_layer(r->probe, 0)->channels;
    r->input = malloc((size_t)(BATCH * 3 * r->in_height * r->in_width) * sizeof *r->input);
    return r->input || err_memory(err, "the input of the network");
}

static bool prepare_one(void *arg, int64_t index, int worker, struct err *err)
{
    (void)worker;
    struct reading *r = arg;
    struct image *patch = &r->batch[index];
    int64_t width = 0, height = 0;
    float *to = r->input + index * 3 * r->in_height * r->in_width;
    memset(to, 0, (size_t)(3 * r->in_height * r->in_width) * sizeof *to);
    if (r->sizes[r->first + index].width == 0)
        return true;
    if (!model_input_size(&r->options->model->config, patch->width, patch->height, &width, &height,
                          NULL) ||
        width != r->in_width || height != r->in_height) {
        r->sizes[r->first + index].width = 0; /* of another size than the first */
        return true;
    }
    return stain_need_patch(&r->stain, patch, err) &&
           model_prepare(&r->options->model->config, patch, to, err);
}

/* Means of the channels of the layer. */
static bool run_network(struct reading *r, int64_t n, struct err *err)
{
    if (!pool_for(r->ctx->pool, n, prepare_one, r, r->ctx->stop, err) ||
        !probe_forward(r->probe, r->input, n, err))
        return false;
    const struct probe_layer *layer = probe_layer(r->probe, 0);
    const float *activation = probe_activation(r->probe, 0, err);
    int64_t positions = layer->height * layer->width;
    for (int64_t i = 0; activation && i < n * r->d; i++) {
        double sum = 0;
        for (int64_t k = 0; k < positions; k++)
            sum += (double)activation[i * positions + k];
        r->values[r->first * r->d + i] = sum / (double)positions;
    }
    return activation != NULL;
}

/* --- patch by patch --- */

/* The side that a patch of this size is resized to; 0: it stays as it is. */
static int64_t side_for(const struct reading *r, int64_t width, int64_t height)
{
    int64_t side = r->options->shrink_px;
    if (r->options->resize_px > 0)
        return r->options->resize_px;
    return side > 0 && width > side && height > side ? side : 0;
}

static bool fit_size(const struct reading *r, struct image *patch, bool *fits, struct err *err)
{
    int64_t side = side_for(r, patch->width, patch->height);
    double longer = (double)(patch->width > patch->height ? patch->width : patch->height);
    double shorter = (double)(patch->width < patch->height ? patch->width : patch->height);
    *fits = side > 0 ? longer <= SQUARE_ENOUGH * shorter : shorter >= LIKENESS_LEAST_PX;
    if (!*fits || side == 0 || (patch->width == side && patch->height == side))
        return true;
    struct image resized = { 0 };
    if (!image_resize(patch, side, side, &resized, err))
        return false;
    image_free(patch);
    *patch = resized;
    return true;
}

/* um/px of a patch of this size after it was resized. */
static double mpp_of(const struct reading *r, struct patch_size size)
{
    int64_t side = side_for(r, size.width, size.height);
    return side > 0 ? r->mpp * (double)size.width / (double)side : r->mpp;
}

static bool read_one(void *arg, int64_t index, int worker, struct err *err)
{
    (void)worker;
    struct reading *r = arg;
    int64_t place = r->first + index;
    struct image *patch = &r->batch[index];
    bool fits = false;
    if (!dataset_read(&r->dataset, r->samples[place], r->group, patch, err))
        return false;
    struct patch_size size = { patch->width, patch->height };
    if (!fit_size(r, patch, &fits, err))
        return false;
    if (!fits)
        return true;
    r->sizes[place] = size;
    double mpp = mpp_of(r, size);
    if (place % (1 + (r->n - 1) / PATCH_SET_NUCLEI) == 0 &&
        !patch_nuclei_problem(patch->width, patch->height, mpp) &&
        !patch_nuclei_measure(patch, mpp, &r->nuclei[place], err))
        return false;
    if (r->options->model)
        return true;
    double *values = r->values + place * r->d;
    if (!features_measure(patch, values, err))
        return false;
    features_standardise(values);
    return true;
}

/* Keeps some patches, evenly chosen, to be looked at. */
static bool keep_shown(struct reading *r, int64_t n, struct patch_set *out, struct err *err)
{
    int64_t every = 1 + (r->n - 1) / PATCH_SET_SHOWN;
    for (int64_t i = 0; i < n && out->n_shown < PATCH_SET_SHOWN; i++) {
        struct image *patch = &r->batch[i], *to = &out->shown[out->n_shown];
        if ((r->first + i) % every != 0 || r->sizes[r->first + i].width == 0)
            continue;
        if (!image_new(to, patch->width, patch->height, 3, err))
            return false;
        memcpy(to->px, patch->px, image_bytes(patch));
        out->n_shown++;
    }
    return true;
}

/* n samples from r->first on, all of one group or none of a group. */
static bool read_batch(struct reading *r, int64_t n, struct patch_set *out, struct err *err)
{
    bool ok = pool_for(r->ctx->pool, n, read_one, r, r->ctx->stop, err);
    if (ok && r->options->model)
        ok = run_network(r, n, err);
    ok = ok && keep_shown(r, n, out, err);
    for (int64_t i = 0; i < n; i++)
        image_free(&r->batch[i]);
    console_advance(r->ctx->console, n);
    return ok;
}

/* Reads the group of sample `first`, if it is of one; *end: the sample after it. */
static bool enter_group(struct reading *r, int64_t sample, int64_t *end, struct err *err)
{
    free(r->group);
    r->group = NULL;
    *end = INT64_MAX;
    if (!dataset_in_group(&r->dataset, sample)) {
        struct sample_range range = dataset_range(&r->dataset, sample);
        while (range.end < r->dataset.n_samples && !dataset_in_group(&r->dataset, range.end))
            range = dataset_range(&r->dataset, range.end);
        *end = range.end;
        return true;
    }
    struct sample_range range = dataset_range(&r->dataset, sample);
    *end = range.end;
    r->group = malloc((size_t)dataset_group_bytes(&r->dataset, sample));
    return r->group ? dataset_read_group(&r->dataset, sample, r->group, err)
                    : err_memory(err, "a group of patches");
}

static bool read_all(struct reading *r, struct patch_set *out, struct err *err)
{
    int64_t end = 0, n = 0;
    for (r->first = 0; r->first < r->n; r->first += n) {
        if (ctx_stopped(r->ctx))
            return err_stopped(err);
        if (r->samples[r->first] >= end && !enter_group(r, r->samples[r->first], &end, err))
            return false;
        for (n = 0; n < BATCH && r->first + n < r->n && r->samples[r->first + n] < end;)
            n++;
        if (!read_batch(r, n, out, err))
            return false;
    }
    return true;
}

/* A network's features have as many columns as its layer has channels: known from the first patch
 * of a size that it takes. */
static bool begin_features(struct reading *r, struct err *err)
{
    r->d = LIKENESS_FEATURES;
    struct image first = { 0 };
    int64_t end = 0;
    bool fits = false, ok = true;
    for (int64_t i = 0; r->options->model && ok && !r->probe && i < r->n; i++) {
        ok = enter_group(r, r->samples[i], &end, err) &&
             dataset_read(&r->dataset, r->samples[i], r->group, &first, err) &&
             fit_size(r, &first, &fits, err);
        if (ok && fits)
            ok = open_probe(r, &first, err);
        image_free(&first);
    }
    if (ok && r->options->model && !r->probe)
        ok = err_set(err, ERR_FORMAT, "no patch is of a size that can be used");
    return ok && make_room(r, err);
}

/* --- what is kept --- */

/* The most frequent size; all of one size if they were resized. */
static struct patch_size usual_size(const struct reading *r)
{
    struct patch_size usual = { 0, 0 };
    int64_t most = 0;
    for (int64_t i = 0; i < r->n; i++) {
        struct patch_size size = r->sizes[i];
        if (size.width == 0 || (size.width == usual.width && size.height == usual.height))
            continue;
        int64_t count = 0;
        for (int64_t j = i; j < r->n; j++)
            count += r->sizes[j].width == size.width && r->sizes[j].height == size.height;
        if (count > most) {
            most = count;
            usual = size;
        }
        if (most > r->n / 2)
            break;
    }
    return usual;
}

static void keep_rows(struct reading *r, struct patch_size usual, struct patch_set *out)
{
    bool resized = r->options->resize_px > 0;
    for (int64_t i = 0; i < r->n; i++) {
        bool same = r->sizes[i].width == usual.width && r->sizes[i].height == usual.height;
        if (r->sizes[i].width == 0 || (!resized && !same)) {
            r->nuclei[i] = (struct nuclei_sums){ 0 };
            continue;
        }
        memmove(r->values + out->n * r->d, r->values + i * r->d, (size_t)r->d * sizeof *r->values);
        out->labels[out->n++] = dataset_label(&r->dataset, r->samples[i]);
    }
}

static bool summarise(struct reading *r, const char *label, struct patch_set *out, struct err *err)
{
    struct patch_size usual = usual_size(r);
    int64_t side = side_for(r, usual.width, usual.height);
    out->labels = malloc((size_t)(r->n + 1) * sizeof *out->labels);
    if (!out->labels)
        return err_memory(err, "the classes of patches");
    keep_rows(r, usual, out);
    if (out->n == 0)
        return err_set(err, ERR_FORMAT,
                       "%s: no patch has %d px or more on each side; pass "
                       "--resize-px to enlarge them",
                       label, LIKENESS_LEAST_PX);
    out->found = r->dataset.n_samples;
    out->other_size = r->n - out->n;
    out->d = r->d;
    out->values = r->values;
    r->values = NULL;
    out->width = side > 0 ? side : usual.width;
    out->height = side > 0 ? side : usual.height;
    out->stored_width = usual.width;
    out->stored_height = usual.height;
    out->mpp = mpp_of(r, usual);
    patch_nuclei_summary(r->nuclei, r->n, &out->nuclei);
    out->nuclei.why_not = patch_nuclei_problem(out->width, out->height, out->mpp);
    return true;
}

bool patch_set_read(char *const *paths, size_t n_paths, const struct patch_set_options *options,
                    const char *label, const struct ctx *ctx, struct patch_set *out,
                    struct err *err)
{
    struct reading *r = calloc(1, sizeof *r);
    *out = (struct patch_set){ 0 };
    if (!r)
        return err_memory(err, "the features of patches");
    r->options = options;
    r->ctx = ctx;
    bool ok = find_patches(r, paths, n_paths, err) && begin_features(r, err);
    if (ok) {
        console_begin(ctx->console, label, r->n, "patches");
        ok = read_all(r, out, err);
        console_end(ctx->console);
    }
    ok = ok && summarise(r, paths[0], out, err);
    probe_free(r->probe);
    dataset_free(&r->dataset);
    config_free(&r->config);
    free(r->input);
    free(r->samples);
    free(r->values);
    free(r->sizes);
    free(r->nuclei);
    free(r->group);
    free(r);
    if (!ok)
        patch_set_free(out);
    return ok;
}

void patch_set_free(struct patch_set *set)
{
    for (int64_t i = 0; i < set->n_shown; i++)
        image_free(&set->shown[i]);
    free(set->values);
    free(set->labels);
    *set = (struct patch_set){ 0 };
}
