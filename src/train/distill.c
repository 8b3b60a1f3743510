/* distill.c: see distill.h. */
#include "train/distill.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/divide.h"
#include "base/file.h"
#include "base/rng.h"
#include "net/model/classifier.h"
#include "net/model/model_run.h"

struct distill {
    const struct train_config *config;
    struct model *student, *teacher; /* the same file; each with floats of its own */
    struct model_run frozen;         /* the teacher on one crop's windows */
    int64_t crop_px, window_px, stride_px, classes;
    int64_t rows, columns; /* of the dense output */
    int64_t first, side;   /* places may be used in rows and columns [first, first + side) */
    int64_t windows;       /* compared in every crop */
    int64_t *places;       /* [side * side]: a permutation; the first `windows` are used */
    float *logits;         /* [batch * windows, classes] */
    int32_t *labels;       /* [batch * windows] */
    int64_t *samples;      /* [batch * windows] */
    double *student_p, *teacher_p; /* [classes] */
    double difference;
    int64_t compared;
};

/* --- what the teacher decides --- */

static bool set_text(char **slot, const char *text, struct err *err)
{
    char *copy = strdup(text);
    if (!copy)
        return err_memory(err, "the config");
    free(*slot);
    *slot = copy;
    return true;
}

static bool adopt_classes(struct train_config *config, const struct model_config *teacher,
                          struct err *err)
{
    struct texts *classes = &config->classes;
    char **items = calloc((size_t)teacher->num_classes, sizeof *items);
    bool ok = items != NULL;
    for (int64_t i = 0; ok && i < teacher->num_classes; i++)
        ok = (items[i] = strdup(teacher->class_names[i])) != NULL;
    struct texts old = *classes;
    *classes = (struct texts){ items, items ? (size_t)teacher->num_classes : 0 };
    for (size_t i = 0; i < old.n; i++)
        free(old.items[i]);
    free(old.items);
    return ok ? true : err_memory(err, "the config");
}

/* The one step that resizes, which must be the first; NULL: there is none. */
static const struct model_sizing *resize_of(const struct model_config *teacher)
{
    const struct model_sizing *first = teacher->n_sizings > 0 ? &teacher->sizings[0] : NULL;
    return first && first->kind != MODEL_CENTER_CROP ? first : NULL;
}

static bool check_steps(const struct model_config *teacher, const char *path, struct err *err)
{
    bool ok = true;
    for (int i = 0; i < teacher->n_sizings; i++)
        ok = ok && (i == 0 || teacher->sizings[i].kind == MODEL_CENTER_CROP) &&
             teacher->sizings[i].height == teacher->sizings[i].width;
    return ok || err_set(err, ERR_USAGE,
                         "%s: only teachers that resize a patch to a square, crop it, or do both "
                         "in this order can be distilled",
                         path);
}

static bool adopt(struct train_config *config, const struct model_config *teacher, struct err *err)
{
    const char *path = config->distill.teacher;
    if (!teacher->network)
        return err_set(err, ERR_USAGE,
                       "%s: not a network of the zoo with its config.json; only those can be "
                       "distilled",
                       path);
    if (teacher->objective == OBJECTIVE_REGRESS)
        return err_set(err, ERR_USAGE,
                       "%s: predicts a number, but distillation needs the scores of a classifier",
                       path);
    if (teacher->num_classes < 2 || teacher->patch_size_pixels <= 0)
        return err_set(err, ERR_USAGE,
                       "%s: config.json must name at least two classes and a patch size", path);
    int64_t patch = teacher->patch_size_pixels, side = 0, height = 0;
    const struct model_sizing *resize = resize_of(teacher);
    if (!check_steps(teacher, path, err) ||
        !model_sized(teacher, teacher->n_sizings, patch, patch, &side, &height, err))
        return false;
    if (resize && resize->height != patch && config->data.resize_px == 0)
        return err_set(err, ERR_USAGE,
                       "%s: expects patches of %lld px resized to %lld; set data.resize_px so that "
                       "the larger patches of the data are resized by the same factor",
                       path, (long long)patch, (long long)resize->height);
    config->network.input_px = side;
    config->network.padding = (int)teacher->padding;
    config->network.head = (int)teacher->head, config->network.norm = (int)teacher->norm;
    config->data.balance = BALANCE_NONE;
    config->train.monitor = MONITOR_LOSS;
    config->data.spacing_um_px = teacher->spacing_um_px;
    for (int c = 0; c < 3; c++) {
        config->data.mean[c] = teacher->mean[c];
        config->data.std[c] = teacher->std[c];
    }
    return set_text(&config->network.name, teacher->network, err) &&
           set_text(&config->network.weights, path, err) && adopt_classes(config, teacher, err);
}

bool distill_adopt(struct train_config *config, struct err *err)
{
    struct model *teacher = NULL;
    if (!config->distill.teacher[0])
        return true;
    if (!model_open(&(struct model_source){ .file = config->distill.teacher }, &teacher, err))
        return false;
    bool ok = adopt(config, &teacher->config, err);
    model_close(teacher);
    return ok;
}

/* --- setting up --- */

static bool build_dense(struct distill *d, struct graph **dense, struct err *err)
{
    struct graph *batched = NULL;
    struct dense_spec spec = { .window = d->window_px,
                               .output_stride = d->stride_px,
                               .height = d->crop_px,
                               .width = d->crop_px };
    bool ok = transform_resize(d->student->graph, config_micro_batch(d->config), d->window_px,
                               d->window_px, &batched, err) &&
              transform_dense(batched, &spec, dense, err);
    graph_free(batched);
    return ok;
}

/* Which places of the grid have a margin around their window. */
static bool choose_places(struct distill *d, const struct graph *dense, struct err *err)
{
    const struct shape *shape = graph_shape(dense, dense->outputs[0].value);
    int64_t margin = d->config->distill.margin_px;
    d->classes = shape->dim[1], d->rows = shape->dim[2], d->columns = shape->dim[3];
    d->first = ceil_div(margin, d->stride_px);
    int64_t last = (d->crop_px - d->window_px - margin) / d->stride_px;
    last = last < d->rows - 1 ? last : d->rows - 1;
    d->side = d->crop_px < d->window_px + margin ? 0 : last - d->first + 1;
    if (d->side < 1)
        return err_set(
            err, ERR_USAGE,
            "crops of %lld px are too small for a window of %lld px with distill.margin_px %lld on "
            "a grid of %lld px; extract larger patches, or lower the margin",
            (long long)d->crop_px, (long long)d->window_px, (long long)margin,
            (long long)d->stride_px);
    int64_t places = d->side * d->side;
    d->windows = d->config->distill.windows < places ? d->config->distill.windows : places;
    return true;
}

static bool allocate(struct distill *d, struct err *err)
{
    size_t n = (size_t)(config_micro_batch(d->config) * d->windows), classes = (size_t)d->classes;
    d->places = calloc((size_t)(d->side * d->side), sizeof *d->places);
    d->logits = calloc(n * classes, sizeof *d->logits);
    d->labels = calloc(n, sizeof *d->labels);
    d->samples = calloc(n, sizeof *d->samples);
    d->student_p = calloc(classes, sizeof *d->student_p);
    d->teacher_p = calloc(classes, sizeof *d->teacher_p);
    return (d->places && d->logits && d->labels && d->samples && d->student_p && d->teacher_p) ||
           err_memory(err, "distillation");
}

/* Student and teacher are compared by the softmax of their logits. */
static bool check_logits(const struct model *teacher, struct err *err)
{
    return teacher->rule == SCORE_SOFTMAX ||
           err_set(err, ERR_USAGE, "%s: a teacher must output logits of two or more classes",
                   teacher->name);
}

bool distill_new(const struct train_config *config, int64_t crop_px, int threads,
                 struct distill **out, struct graph **dense, struct err *err)
{
    struct distill *d = calloc(1, sizeof *d);
    struct model_source source = { .file = config->distill.teacher };
    struct field field;
    if (!d)
        return err_memory(err, "distillation");
    d->config = config;
    d->crop_px = crop_px;
    d->window_px = config->network.input_px;
    bool ok = model_open_classifier(&source, &d->student, err) &&
              model_open_classifier(&source, &d->teacher, err) && check_logits(d->teacher, err) &&
              transform_field(d->student->graph, d->student->graph->outputs[0].value, d->window_px,
                              &field, err);
    d->stride_px = ok ? field.stride_px : 0;
    ok = ok && build_dense(d, dense, err) && choose_places(d, *dense, err) && allocate(d, err) &&
         model_run_new(d->teacher, d->windows, d->window_px, d->window_px, threads, false,
                       &d->frozen, err);
    if (!ok) {
        distill_free(d);
        return false;
    }
    *out = d;
    return true;
}

void distill_free(struct distill *d)
{
    if (!d)
        return;
    model_run_free(&d->frozen);
    model_close(d->student);
    model_close(d->teacher);
    free(d->places);
    free(d->logits);
    free(d->labels);
    free(d->samples);
    free(d->student_p);
    free(d->teacher_p);
    free(d);
}

const struct graph *distill_model(const struct distill *d)
{
    return d->student->graph;
}

const struct model_config *distill_described(const struct distill *d)
{
    return &d->teacher->config;
}

bool distill_check_data(const struct distill *d, const struct dataset *dataset, int64_t patch_px,
                        struct err *err)
{
    const struct model_config *teacher = &d->teacher->config;
    const struct model_sizing *resize = resize_of(teacher);
    const char *path = d->config->distill.teacher;
    int64_t resize_px = d->config->data.resize_px > 0 ? d->config->data.resize_px : patch_px;
    int64_t scaled = resize ? resize->height : teacher->patch_size_pixels;
    struct stain_need need;
    if (resize_px * teacher->patch_size_pixels != patch_px * scaled)
        return err_set(err, ERR_USAGE,
                       "%s: resizes patches of %lld px to %lld, but data.resize_px resizes to %lld "
                       "from %lld px; set it to %lld",
                       path, (long long)teacher->patch_size_pixels, (long long)scaled,
                       (long long)resize_px, (long long)patch_px,
                       (long long)(patch_px * scaled / teacher->patch_size_pixels));
    if (!stain_need_of(teacher, &need, err))
        return false;
    if (need.per_patch)
        return err_set(err, ERR_USAGE,
                       "%s: fits the stains of every patch separately, which crops of another size "
                       "cannot reproduce; distil a model trained on stores from 'extract --stain'",
                       path);
    return stain_need_check(&need, &dataset->stain, path, dataset_origin_path(dataset, 0),
                            "extract it like the teacher's data", err);
}

int64_t distill_windows(const struct distill *d)
{
    return d->windows;
}

bool distill_scores(const struct distill *d, int64_t n, float *scores, struct err *err)
{
    double *one = calloc((size_t)d->classes, sizeof *one);
    if (!one)
        return err_memory(err, "predictions");
    for (int64_t i = 0; i < n; i++) {
        model_scores(d->logits + i * d->classes, d->classes, one);
        for (int64_t c = 0; c < d->classes; c++)
            scores[i * d->classes + c] = (float)one[c];
    }
    free(one);
    return true;
}

const int32_t *distill_labels(const struct distill *d)
{
    return d->labels;
}

const int64_t *distill_samples(const struct distill *d)
{
    return d->samples;
}

void distill_difference(struct distill *d, double *sum, double *n)
{
    *sum = d->difference;
    *n = (double)d->compared;
    d->difference = 0;
    d->compared = 0;
}

/* --- comparing --- */

/* Draws which places of the crop are compared: the first `windows` of a shuffle. */
static void draw_places(struct distill *d, uint64_t epoch, int64_t sample)
{
    struct rng rng =
        rng_new((uint64_t)d->config->seed ^ rng_hash("distill places"), epoch, (uint64_t)sample);
    int64_t n = d->side * d->side;
    for (int64_t i = 0; i < n; i++)
        d->places[i] = (d->first + i / d->side) * d->columns + d->first + i % d->side;
    for (int64_t i = 0; i < d->windows; i++) {
        int64_t j = i + (int64_t)rng_below(&rng, (uint64_t)(n - i)), kept = d->places[i];
        d->places[i] = d->places[j];
        d->places[j] = kept;
    }
}

/* The windows of a crop [3, crop, crop] through the teacher; -> [windows, classes]. */
static const float *teach(struct distill *d, const float *crop, struct err *err)
{
    int64_t side = d->window_px;
    float *to = plan_input(d->frozen.plan, 0);
    for (int64_t i = 0; i < d->windows; i++) {
        int64_t top = d->places[i] / d->columns * d->stride_px;
        int64_t left = d->places[i] % d->columns * d->stride_px;
        for (int64_t c = 0; c < 3; c++)
            for (int64_t y = 0; y < side; y++, to += side)
                memcpy(to, crop + (c * d->crop_px + top + y) * d->crop_px + left,
                       (size_t)side * sizeof *to);
    }
    return plan_forward(d->frozen.plan, err) ? plan_output(d->frozen.plan, 0) : NULL;
}

/* One window: its loss; factor times its gradient by the student's logits to gradient[c * stride],
 * if not NULL. */
static double compare_window(struct distill *d, const float *student, const float *teacher,
                             double factor, float *gradient, int64_t stride)
{
    double loss = 0;
    bool by_logits = d->config->distill.loss == DISTILL_LOGITS;
    model_scores(student, d->classes, d->student_p);
    model_scores(teacher, d->classes, d->teacher_p);
    d->difference += fabs(d->student_p[d->classes - 1] - d->teacher_p[d->classes - 1]);
    d->compared++;
    for (int64_t c = 0; c < d->classes; c++) {
        double p = d->teacher_p[c], q = d->student_p[c];
        double apart = (double)student[c] - (double)teacher[c];
        if (by_logits)
            loss += 0.5 * apart * apart;
        else if (p > 0)
            loss += p * (log(p) - log(fmax(q, 1e-300)));
        if (gradient)
            gradient[c * stride] += (float)(factor * (by_logits ? apart : q - p));
    }
    return isfinite(student[0]) ? loss : NAN;
}

static int32_t highest(const float *logits, int64_t classes)
{
    int32_t best = 0;
    for (int32_t c = 1; c < classes; c++)
        if (logits[c] > logits[best])
            best = c;
    return best;
}

bool distill_compare(struct distill *d, const struct batch *batch, uint64_t epoch,
                     const float *dense, double divisor, double *loss, float *gradient,
                     struct err *err)
{
    int64_t map = d->rows * d->columns, out = d->classes * map;
    const float *pixels = batch_floats(batch, "image");
    const int64_t *samples = batch_int64(batch, "sample");
    double sum = 0, share = 1 / (divisor * (double)d->windows);
    if (gradient)
        memset(gradient, 0, (size_t)(config_micro_batch(d->config) * out) * sizeof *gradient);
    for (int64_t n = 0; n < batch->n; n++) {
        draw_places(d, epoch, samples[n]);
        const float *taught = teach(d, pixels + n * 3 * d->crop_px * d->crop_px, err);
        if (!taught)
            return false;
        for (int64_t i = 0; i < d->windows; i++, taught += d->classes) {
            int64_t at = n * out + d->places[i], row = n * d->windows + i;
            float *logits = d->logits + row * d->classes;
            for (int64_t c = 0; c < d->classes; c++)
                logits[c] = dense[at + c * map];
            d->labels[row] = highest(taught, d->classes);
            d->samples[row] = samples[n];
            sum += compare_window(d, logits, taught, share, gradient ? gradient + at : NULL, map);
        }
    }
    *loss = sum * share;
    return true;
}
