/* predict_check.c: the difference between dense and window on random windows of the cohort, kept as
 * check.json: measured once, the same for all slides and tasks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/divide.h"
#include "base/file.h"
#include "base/console.h"
#include "base/rng.h"
#include "heatmap/check.h"
#include "heatmap/cover.h"
#include "heatmap/heatmap_json.h"
#include "heatmap/predict_state.h"
#include "heatmap/scorer.h"
#include "base/text.h"

#define MAX_SLIDES 16
#define SIDE 2 /* windows are compared in squares of SIDE x SIDE: one dense run for each */
#define MAX_TRIES 20000

struct sampler {
    struct predict *predict;
    struct scorer *scorer;
    bool fits;                       /* a calibration is wanted */
    struct check_sample fit, judged; /* every other square is for the fit, where there is one */
    int64_t squares;                 /* so far */
    int ways;                        /* models x symmetries */
    float *logits; /* [2, ways, SIDE * SIDE, classes], and [2, ways, classes] of one window */
};

static bool read_square(struct sampler *s, struct specimen *specimen, int64_t column, int64_t row,
                        struct image *out, struct err *err)
{
    const struct ensemble *e = &s->predict->ensemble;
    int64_t side = ensemble_region(e, SIDE);
    int64_t x = e->stride / 2 + column * e->stride - e->before;
    int64_t y = e->stride / 2 + row * e->stride - e->before;
    if (!specimen_read(specimen, x, y, side, side, out, err))
        return false;
    specimen_normalise(specimen, out);
    return true;
}

/* Both logits of the windows of one square. */
static bool compare_square(struct sampler *s, const struct image *region, struct err *err)
{
    const struct ensemble *e = &s->predict->ensemble;
    int64_t cells = SIDE * SIDE, n = e->n_classes, half = s->ways * cells * n;
    float *pair[2] = { s->logits + 2 * half, s->logits + 2 * half + s->ways * n };
    struct check_sample *sample = s->fits && s->squares++ % 2 == 0 ? &s->fit : &s->judged;
    int symmetries = scorer_symmetries(e);
    bool ok = true;
    for (int way = 0; ok && way < s->ways; way++)
        for (int dense = 0; ok && dense < 2; dense++)
            ok = scorer_logits(s->scorer, way / symmetries, dense, way % symmetries, region, SIDE,
                               SIDE, s->logits + dense * half + way * cells * n, err);
    for (int64_t i = 0; ok && i < cells; i++) {
        for (int dense = 0; dense < 2; dense++)
            for (int way = 0; way < s->ways; way++)
                memcpy(pair[dense] + way * n, s->logits + dense * half + (way * cells + i) * n,
                       (size_t)n * sizeof(float));
        ok = check_sample_add(sample, pair[1], pair[0], err);
    }
    return ok;
}

/* Some squares of one slide, at random places with tissue. */
static bool sample_slide(struct sampler *s, size_t slide, int64_t squares, const struct ctx *ctx,
                         struct err *err)
{
    struct predict *predict = s->predict;
    const struct ensemble *e = &predict->ensemble;
    struct specimen specimen;
    char *mask = NULL;
    bool ok = predict_given_mask(predict, slide, &mask, err) &&
              predict_specimen(predict, slide, mask, ctx, &specimen, err);
    struct stain_fit stain;
    if (ok && !(specimen_omit(&specimen, predict->method, predict->options->omit, ctx, err) &&
                predict_fit_stain(predict, &specimen, ctx, &stain, err))) {
        specimen_close(&specimen);
        ok = false;
    }
    free(mask);
    if (!ok)
        return false;
    int64_t width = (specimen.raster.width + e->stride - 1) / e->stride;
    int64_t height = (specimen.raster.height + e->stride - 1) / e->stride, found = 0;
    struct rng rng =
        rng_new(predict->options->seed, rng_hash(predict->slides->entries[slide].name), 0);
    for (int tries = 0; ok && found < squares && tries < MAX_TRIES; tries++) {
        struct partition_block block = { .width = SIDE, .height = SIDE };
        bool wanted[SIDE * SIDE], all = true;
        block.column = (int64_t)rng_below(&rng, (uint64_t)(width > SIDE ? width - SIDE + 1 : 1));
        block.row = (int64_t)rng_below(&rng, (uint64_t)(height > SIDE ? height - SIDE + 1 : 1));
        cover_wanted(&specimen, e, &block, wanted);
        for (int i = 0; i < SIDE * SIDE; i++)
            all = all && wanted[i];
        struct image region = { 0 };
        if (!all)
            continue;
        ok = !ctx_stopped(ctx) || err_stopped(err);
        ok = ok && read_square(s, &specimen, block.column, block.row, &region, err) &&
             compare_square(s, &region, err);
        image_free(&region);
        found++;
        console_advance(ctx->console, SIDE * SIDE);
    }
    specimen_close(&specimen);
    return ok;
}

/* Slides spread over the list; one that cannot be read is left to the run itself to record. */
static bool sample_cohort(struct sampler *s, const struct ctx *ctx, struct err *err)
{
    const struct predict *predict = s->predict;
    size_t n = predict->slides->n, used = n < MAX_SLIDES ? n : MAX_SLIDES;
    int64_t squares = ceil_div(predict->options->check_windows, SIDE * SIDE);
    struct err why = { 0 };
    for (size_t i = 0; i < used; i++) {
        int64_t share =
            squares * (int64_t)(i + 1) / (int64_t)used - squares * (int64_t)i / (int64_t)used;
        if (!sample_slide(s, i * n / used, share, ctx, &why) && why.kind == ERR_STOPPED) {
            *err = why;
            return false;
        }
    }
    if (s->judged.n > 0 && (s->fit.n > 0 || !s->fits))
        return true;
    if (s->fit.n > 0)
        return err_set(err, ERR_MISSING,
                       "--calibrate: the fit and its evaluation need separate windows, but only "
                       "%lld were found; pass a larger --check-windows",
                       (long long)s->fit.n);
    return err_set(err, ERR_MISSING, "no window found to compare dense and window scores%s%.900s",
                   why.text[0] ? ": " : "", why.text);
}

static bool measure(struct predict *predict, const struct ctx *ctx, struct err *err)
{
    struct ensemble *e = &predict->ensemble;
    struct check_sample none = { .n_models = e->n,
                                 .n_symmetries = scorer_symmetries(e),
                                 .n_classes = e->n_classes };
    struct sampler s = { .predict = predict,
                         .scorer = scorer_new(e),
                         .fits = predict->options->calibration == CALIBRATE_AFFINE,
                         .fit = none,
                         .judged = none,
                         .ways = e->n * none.n_symmetries };
    s.logits = malloc((size_t)(2 * s.ways * (SIDE * SIDE + 1) * e->n_classes) * sizeof *s.logits);
    bool ok = (s.scorer && s.logits) || err_memory(err, "the check");
    console_begin(ctx->console, "check", predict->options->check_windows, "windows");
    ok = ok && sample_cohort(&s, ctx, err);
    console_end(ctx->console);
    ok = ok && check_measure(&s.judged, e, &predict->check, err);
    if (ok && s.fits) {
        predict->raw = predict->check;
        ok = check_calibrate(&s.fit, e, err) && check_measure(&s.judged, e, &predict->check, err);
        predict->check.fitted_on = s.fit.n;
    }
    check_sample_free(&s.fit);
    check_sample_free(&s.judged);
    scorer_free(s.scorer);
    free(s.logits);
    return ok;
}

static void put_calibration(struct json_out *json, const struct ensemble *e)
{
    json_out_array(json, "calibration"); /* [models, classes, 2]: gain and offset of dense logits */
    for (int i = 0; i < e->n && e->models[i].gain; i++) {
        json_out_array_line(json, NULL);
        for (int64_t c = 0; c < e->n_classes; c++) {
            json_out_array_line(json, NULL);
            json_out_real(json, NULL, e->models[i].gain[c]);
            json_out_real(json, NULL, e->models[i].offset[c]);
            json_out_close_array(json);
        }
        json_out_close_array(json);
    }
    json_out_close_array(json);
}

/* "slides=N:HASH" of the slides that the check is measured on. */
static void sampled_inputs(const struct predict *predict, char out[INPUTS_ROOM])
{
    size_t n = predict->slides->n, used = n < MAX_SLIDES ? n : MAX_SLIDES;
    struct identity all = { .hash = IDENTITY_HASH_BEGIN };
    for (size_t i = 0; i < used; i++) {
        char line[INPUTS_ROOM];
        if (!predict_inputs(predict, i * n / used, line, NULL))
            continue; /* not part of the check either */
        all.hash = identity_hash(all.hash, line, strlen(line) + 1);
        all.bytes += strtoll(strchr(line, '=') + 1, NULL, 10);
    }
    out[0] = 0;
    inputs_add(out, "cohort", &all);
}

static bool save(const struct predict *predict, const char *path, struct err *err)
{
    struct file_out out;
    struct json_out json;
    char inputs[INPUTS_ROOM];
    sampled_inputs(predict, inputs);
    if (!file_out_open(&out, path, err))
        return false;
    json_out_begin(&json, out.stream);
    json_out_object(&json, NULL);
    json_out_text(&json, "options", predict->options_text);
    json_out_text(&json, "cohort", predict->cohort_hash);
    json_out_text(&json, "inputs", inputs);
    heatmap_json_put_check(&json, "check", &predict->check);
    heatmap_json_put_check(&json, "raw_check", &predict->raw);
    put_calibration(&json, &predict->ensemble);
    json_out_close_object(&json);
    json_out_end(&json);
    return file_out_commit(&out, err);
}

static bool get_calibration(const json_t *list, struct ensemble *e)
{
    bool ok = json_array_size(list) == (size_t)e->n;
    for (int i = 0; ok && i < e->n; i++) {
        struct ensemble_model *m = &e->models[i];
        const json_t *classes = json_array_get(list, (size_t)i);
        ok = json_array_size(classes) == (size_t)e->n_classes &&
             (m->gain = calloc((size_t)e->n_classes, sizeof *m->gain)) &&
             (m->offset = calloc((size_t)e->n_classes, sizeof *m->offset));
        for (int64_t c = 0; ok && c < e->n_classes; c++) {
            const json_t *pair = json_array_get(classes, (size_t)c);
            ok = json_is_number(json_array_get(pair, 0)) && json_is_number(json_array_get(pair, 1));
            m->gain[c] = json_number_value(json_array_get(pair, 0));
            m->offset[c] = json_number_value(json_array_get(pair, 1));
        }
    }
    return ok;
}

static bool says(const json_t *object, const char *key, const char *text)
{
    const char *found = json_string_value(json_object_get(object, key));
    return found && strcmp(found, text) == 0;
}

/* A check that was made with the same options on the same cohort; *found: whether there is one. */
static bool load(struct predict *predict, const char *path, bool *found, struct err *err)
{
    json_t *object = NULL;
    *found = false;
    if (!file_exists(path))
        return true;
    if (!heatmap_json_load(path, &object, err))
        return false;
    bool ok = true;
    if (says(object, "options", predict->options_text) &&
        says(object, "cohort", predict->cohort_hash)) {
        ok = heatmap_json_get_check(object, "check", &predict->check) &&
             heatmap_json_get_check(object, "raw_check", &predict->raw) &&
             (predict->options->calibration == CALIBRATE_NONE ||
              get_calibration(json_object_get(object, "calibration"), &predict->ensemble));
        const char *inputs = json_string_value(json_object_get(object, "inputs"));
        snprintf(predict->check_inputs, sizeof predict->check_inputs, "%s", inputs ? inputs : "");
        *found = ok;
        if (!ok)
            err_set(err, ERR_FORMAT, "%s: is damaged; remove it", path);
    }
    json_decref(object);
    return ok;
}

static void tell(const struct predict *predict, const struct ctx *ctx)
{
    const struct heatmap_check *c = &predict->check, *raw = &predict->raw;
    if (raw->windows > 0)
        console_note(ctx->console,
                     "before calibration: r %.4f, mean |dp| %.4f, 95 %% %.4f, max %.4f, flipped at "
                     "0.5: %.2f %%",
                     raw->r, raw->mean, raw->p95, raw->max, 100 * raw->flipped);
    char fitted[80] = "";
    if (c->fitted_on > 0)
        snprintf(fitted, sizeof fitted, " (calibrated on %lld others)", (long long)c->fitted_on);
    console_note(ctx->console,
                 "dense compared with window scores on %lld random windows%s%s: r %.4f, mean |dp| "
                 "%.4f, 95 %% "
                 "%.4f, max %.4f, flipped at 0.5: %.2f %%",
                 (long long)c->windows, fitted, predict->ensemble.tta ? ", in 8 symmetries" : "",
                 c->r, c->mean, c->p95, c->max, 100 * c->flipped);
    if (raw->windows > 0 && c->mean >= raw->mean)
        console_warn(ctx->console, "the calibration does not bring dense scores closer to window "
                                   "scores; omit --calibrate, use --mode window, or use a model "
                                   "trained with 'microtome train --distill-dense'");
}

static void forget_calibration(struct ensemble *e)
{
    for (int i = 0; i < e->n; i++) {
        free(e->models[i].gain);
        free(e->models[i].offset);
        e->models[i].gain = e->models[i].offset = NULL;
    }
}

void predict_forget_check(struct predict *predict)
{
    file_remove_in(predict->folder, "check.json");
    forget_calibration(&predict->ensemble);
    predict->checked = false;
}

bool predict_same_check(const struct predict *predict, struct err *err)
{
    char now[INPUTS_ROOM], *path = text_format("%s/check.json", predict->folder);
    bool ok = path || err_memory(err, predict->folder);
    if (ok && predict->checked && predict->options->calibration != CALIBRATE_NONE) {
        sampled_inputs(predict, now);
        ok = inputs_check(path, predict->check_inputs, now, err);
    }
    free(path);
    return ok;
}

bool predict_check(struct predict *predict, bool measures, const struct ctx *ctx, struct err *err)
{
    const char *reason;
    if (!predict->ensemble.dense || ensemble_exact(&predict->ensemble, &reason) || predict->checked)
        return true;
    char *path = text_format("%s/check.json", predict->folder);
    bool ok = path ? load(predict, path, &predict->checked, err) : err_memory(err, predict->folder);
    if (ok && measures && !predict->checked) {
        ok = measure(predict, ctx, err) && save(predict, path, err);
        forget_calibration(&predict->ensemble);
        /* What was saved is what is used: numbers go through the file once. */
        ok = ok && load(predict, path, &predict->checked, err);
    }
    if (ok && predict->checked)
        tell(predict, ctx);
    free(path);
    return ok;
}
