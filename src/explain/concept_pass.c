/* concept_pass.c: one pass over the patches: their concepts are measured, and the network runs on
 * them forwards and back (concept_study.h). Batches do not depend on the number of threads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "base/pool.h"
#include "base/text.h"
#include "explain/concept_study.h"
#include "net/model/model_prepare.h"
#include "nuclei/labels_in.h"
#include "patch/store.h"

#define BATCH 32

struct passing {
    struct concept_study *study;
    const struct ctx *ctx;
    struct probe *probe; /* NULL: activations are known already */
    float *input;        /* [BATCH, 3, height, width] */
    struct image images[BATCH];
    int64_t first, n; /* the batch */
    uint8_t *group;   /* pixels of the store's group that is in memory */
    int32_t group_origin, group_number;
    struct nuclei_source *nuclei; /* of the origin or image that was read last; NULL: none yet */
    int32_t nuclei_origin;
    double step_l0; /* level-0 px for each px of the origin's patches */
};

/* --- one patch --- */

/* Outlines of the slide of a store, kept while its patches are read. */
static bool open_store_nuclei(struct passing *pass, int64_t sample, struct err *err)
{
    const struct dataset *dataset = &pass->study->source.dataset;
    int32_t origin = dataset_origin(dataset, sample);
    struct store *store = NULL;
    char *path = NULL;
    if (pass->nuclei && pass->nuclei_origin == origin)
        return true;
    nuclei_source_free(pass->nuclei);
    pass->nuclei = NULL;
    if (!store_open(dataset_origin_path(dataset, sample), &store, err))
        return false;
    const struct store_facts *facts = store_facts(store);
    struct nuclei_source_slide slide = { facts->width_l0, facts->height_l0, facts->objective };
    pass->step_l0 = facts->downsample > 0 ? facts->downsample : 1;
    pass->nuclei_origin = origin;
    bool ok = nuclei_source_find(pass->study->request->nuclei, facts->slide, &path, err) &&
              nuclei_source_open(path, &slide, &pass->nuclei, err);
    free(path);
    store_close(store);
    return ok;
}

/* The labels of a patch from the folder of nuclei. Of images: a file for each. */
static bool read_labels(struct passing *pass, int64_t sample, const char *name,
                        const struct image *image, struct nuclei_labels *out, struct err *err)
{
    const struct dataset *dataset = &pass->study->source.dataset;
    if (dataset_in_group(dataset, sample)) {
        struct sample_place place = dataset_place(dataset, sample);
        return nuclei_source_window(pass->nuclei, (double)place.x_l0, (double)place.y_l0,
                                    pass->step_l0, image->width, image->height, out, NULL, err);
    }
    struct nuclei_source_slide slide = { image->width, image->height, 0 };
    struct nuclei_source *source = NULL;
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    char *stem = strdup(base), *path = NULL;
    if (!stem)
        return err_memory(err, "nuclei");
    if (strrchr(stem, '.'))
        *strrchr(stem, '.') = '\0';
    bool ok = nuclei_source_find(pass->study->request->nuclei, stem, &path, err) &&
              nuclei_source_open(path, &slide, &source, err) &&
              nuclei_source_window(source, 0, 0, 1, image->width, image->height, out, NULL, err);
    nuclei_source_free(source);
    free(path);
    free(stem);
    return ok;
}

static bool measure_patch(struct passing *pass, int64_t index, const struct image *image,
                          struct err *err)
{
    struct concept_study *study = pass->study;
    int64_t sample = study->samples[index];
    struct sample_place place = dataset_place(&study->source.dataset, sample);
    struct nuclei_labels labels = { 0 };
    bool given = study->request->nuclei && study->list.needs_nuclei;
    struct concept_patch patch = { .name = study->names[index],
                                   .slide = place.slide,
                                   .x_l0 = place.x_l0,
                                   .y_l0 = place.y_l0,
                                   .image = image,
                                   .mpp = study->mpp,
                                   .labels = given ? &labels : NULL,
                                   .seed = study->request->seed };
    bool ok = (!given || read_labels(pass, sample, patch.name, image, &labels, err)) &&
              concept_measure(&study->list, &patch, study->values + index * study->list.n, err);
    nuclei_labels_free(&labels);
    return ok;
}

static bool prepare_patch(struct passing *pass, int64_t at, struct image *image, struct err *err)
{
    const struct concept_study *study = pass->study;
    const struct model_config *config = &study->request->model->config;
    int64_t width = 0, height = 0;
    if (!model_input_size(config, image->width, image->height, &width, &height, err))
        return false;
    if (width != study->width || height != study->height)
        return err_set(err, ERR_USAGE,
                       "%lld x %lld px for the network, but the first patch has %lld x %lld; all "
                       "must have the same size",
                       (long long)width, (long long)height, (long long)study->width,
                       (long long)study->height);
    return stain_need_patch(&study->source.stain, image, err) &&
           model_prepare(config, image, pass->input + at * 3 * height * width, err);
}

static bool one_patch(void *arg, int64_t at, int worker, struct err *err)
{
    (void)worker;
    struct passing *pass = arg;
    struct concept_study *study = pass->study;
    int64_t index = pass->first + at, sample = study->samples[index];
    struct image *image = &pass->images[at];
    bool ok = (image->px || dataset_read(&study->source.dataset, sample, NULL, image, err)) &&
              measure_patch(pass, index, image, err) &&
              (!pass->probe || prepare_patch(pass, at, image, err));
    image_free(image);
    return ok || (err->kind != ERR_STOPPED && !strstr(err->text, study->names[index])
                      ? err_prefix(err, study->names[index])
                      : false);
}

/* --- batches --- */

static bool read_group(struct passing *pass, int64_t sample, struct err *err)
{
    const struct dataset *dataset = &pass->study->source.dataset;
    int32_t origin = dataset_origin(dataset, sample), group = dataset_group(dataset, sample);
    if (pass->group && pass->group_origin == origin && pass->group_number == group)
        return true;
    free(pass->group);
    pass->group = malloc((size_t)dataset_group_bytes(dataset, sample));
    pass->group_origin = origin;
    pass->group_number = group;
    if (!pass->group)
        return err_memory(err, "a group of patches");
    if (dataset_read_group(dataset, sample, pass->group, err))
        return true;
    free(pass->group);
    pass->group = NULL;
    return false;
}

/* Patches of stores, which one thread reads. A batch ends where the slide of nuclei changes. */
static bool read_batch(struct passing *pass, struct err *err)
{
    struct concept_study *study = pass->study;
    const struct dataset *dataset = &study->source.dataset;
    bool outlines = study->request->nuclei && study->list.needs_nuclei;
    int32_t slide = -1;
    pass->n = study->n - pass->first < BATCH ? study->n - pass->first : BATCH;
    for (int64_t i = 0; i < pass->n; i++) {
        int64_t sample = study->samples[pass->first + i];
        if (!dataset_in_group(dataset, sample))
            continue;
        int32_t origin = dataset_origin(dataset, sample);
        if (outlines && slide >= 0 && origin != slide) {
            pass->n = i;
            break;
        }
        slide = origin;
        if ((outlines && !open_store_nuclei(pass, sample, err)) || !read_group(pass, sample, err) ||
            !dataset_read(dataset, sample, pass->group, &pass->images[i], err))
            return false;
    }
    return true;
}

/* [C, h, w] -> its means over the positions, or for gradients the sums: the change of the logit if
 * all positions of a channel move together. */
static void pool_positions(const float *from, int64_t channels, int64_t positions, bool sums,
                           float *to)
{
    for (int64_t c = 0; c < channels; c++) {
        double sum = 0;
        for (int64_t i = 0; i < positions; i++)
            sum += (double)from[c * positions + i];
        to[c] = (float)(sums ? sum : sum / (double)positions);
    }
}

static bool keep_layer(struct passing *pass, int number, struct err *err)
{
    struct concept_study *study = pass->study;
    struct concept_layer *layer = &study->layers[number];
    int64_t positions = layer->height * layer->width, whole = layer->channels * positions;
    const float *activations = probe_activation(pass->probe, number, err);
    const float *gradients = activations ? probe_gradient(pass->probe, number, err) : NULL;
    if (!gradients)
        return false;
    for (int64_t i = 0; i < pass->n; i++) {
        float *x = layer->activations + (pass->first + i) * layer->p;
        float *g = layer->gradients + (pass->first + i) * layer->p;
        if (study->request->flat) {
            memcpy(x, activations + i * whole, (size_t)whole * sizeof *x);
            memcpy(g, gradients + i * whole, (size_t)whole * sizeof *g);
        } else {
            pool_positions(activations + i * whole, layer->channels, positions, false, x);
            pool_positions(gradients + i * whole, layer->channels, positions, true, g);
        }
    }
    return true;
}

static bool run_network(struct passing *pass, struct err *err)
{
    struct concept_study *study = pass->study;
    int64_t classes[BATCH], all = probe_classes(pass->probe);
    for (int64_t i = 0; i < pass->n; i++)
        classes[i] = study->class_index;
    if (!probe_differentiate(pass->probe, pass->input, pass->n, classes, err))
        return false;
    const float *logits = probe_logits(pass->probe);
    for (int64_t i = 0; i < pass->n; i++)
        study->logits[pass->first + i] = logits[i * all + study->class_index];
    for (int layer = 0; layer < study->n_layers; layer++)
        if (!keep_layer(pass, layer, err))
            return false;
    return true;
}

static bool pass_all(struct passing *pass, struct err *err)
{
    struct concept_study *study = pass->study;
    bool ok = true;
    console_begin(pass->ctx->console, pass->probe ? "activations" : "concepts", study->n,
                  "patches");
    for (pass->first = 0; ok && pass->first < study->n; pass->first += pass->n) {
        ok = (!ctx_stopped(pass->ctx) || err_stopped(err)) && read_batch(pass, err) &&
             pool_for(pass->ctx->pool, pass->n, one_patch, pass, pass->ctx->stop, err) &&
             (!pass->probe || run_network(pass, err));
        console_advance(pass->ctx->console, pass->n);
    }
    console_end(pass->ctx->console);
    return ok;
}

/* --- memory --- */

static bool make_room(struct concept_study *study, struct err *err)
{
    size_t n = (size_t)study->n;
    for (int i = 0; i < study->n_layers; i++) {
        struct concept_layer *layer = &study->layers[i];
        layer->activations = malloc(n * (size_t)layer->p * sizeof(float));
        layer->gradients = malloc(n * (size_t)layer->p * sizeof(float));
        if (!layer->activations || !layer->gradients)
            return err_set(err, ERR_MEMORY,
                           "%s: no memory for the activations of %lld patches; pass fewer layers, "
                           "--most-patches or --pool mean",
                           layer->name, (long long)study->n);
    }
    return true;
}

bool concept_pass(struct concept_study *study, const struct ctx *ctx, struct err *err)
{
    struct passing pass = { .study = study, .ctx = ctx };
    const char *names[PROBE_MOST_LAYERS];
    size_t n = (size_t)study->n;
    study->values = malloc(n * (size_t)study->list.n * sizeof *study->values + 1);
    bool kept = concept_kept_read(study), ok = study->values || err_memory(err, "concepts");
    if (!kept)
        study->logits = malloc(n * sizeof *study->logits + 1);
    ok = ok && (study->logits || err_memory(err, "scores"));
    for (int i = 0; i < study->n_layers; i++)
        names[i] = study->layers[i].name;
    struct probe_options options = { .layers = names,
                                     .n_layers = study->n_layers,
                                     .height = study->height,
                                     .width = study->width,
                                     .batch = BATCH,
                                     .threads = pool_workers(ctx->pool) };
    if (ok && !kept) {
        pass.input = malloc((size_t)(BATCH * 3 * study->height * study->width) * sizeof(float));
        ok = (pass.input || err_memory(err, "patches")) && make_room(study, err) &&
             probe_new(study->request->model, &options, &pass.probe, err);
    }
    ok = ok && pass_all(&pass, err) && (kept || concept_kept_write(study, err));
    for (int i = 0; i < BATCH; i++)
        image_free(&pass.images[i]);
    nuclei_source_free(pass.nuclei);
    probe_free(pass.probe);
    free(pass.group);
    free(pass.input);
    return ok;
}
