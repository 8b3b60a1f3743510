/* check.c: see check.h. */
#include "heatmap/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int64_t floats_of_window(const struct check_sample *sample)
{
    return sample->n_models * sample->n_symmetries * sample->n_classes;
}

bool check_sample_add(struct check_sample *sample, const float *dense, const float *window,
                      struct err *err)
{
    size_t each = (size_t)floats_of_window(sample);
    if (sample->n == sample->room) {
        int64_t room = sample->room ? 2 * sample->room : 256;
        size_t bytes = (size_t)room * each * sizeof(float);
        float *more = realloc(sample->dense, bytes);
        sample->dense = more ? more : sample->dense;
        float *more_windows = more ? realloc(sample->window, bytes) : NULL;
        if (!more_windows)
            return err_memory(err, "windows to compare");
        sample->window = more_windows;
        sample->room = room;
    }
    memcpy(sample->dense + (size_t)sample->n * each, dense, each * sizeof *dense);
    memcpy(sample->window + (size_t)sample->n * each, window, each * sizeof *window);
    sample->n++;
    return true;
}

void check_sample_free(struct check_sample *sample)
{
    free(sample->dense);
    free(sample->window);
    *sample = (struct check_sample){ 0 };
}

static int64_t logit_at(const struct check_sample *sample, int64_t window, int64_t model,
                        int64_t symmetry, int64_t class_index)
{
    int64_t way = model * sample->n_symmetries + symmetry;
    return window * floats_of_window(sample) + way * sample->n_classes + class_index;
}

/* The line that gives dense logits the mean and the spread of the windows', over windows and
 * symmetries alike. (Least squares would shrink the spread by the correlation: with one of 0.7
 * hardly a score would come up to a threshold any more.) */
static void fit_line(const struct check_sample *sample, int model, int64_t class_index,
                     double *gain, double *offset)
{
    int64_t symmetries = sample->n_symmetries, n = sample->n * symmetries;
    double mean_x = 0, mean_y = 0, xx = 0, yy = 0, xy = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = logit_at(sample, i / symmetries, model, i % symmetries, class_index);
        mean_x += sample->dense[at] / (double)n;
        mean_y += sample->window[at] / (double)n;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t at = logit_at(sample, i / symmetries, model, i % symmetries, class_index);
        double x = sample->dense[at] - mean_x, y = sample->window[at] - mean_y;
        xx += x * x;
        yy += y * y;
        xy += x * y;
    }
    bool varies = xx > 1e-12 * (double)n && xy > 0; /* if not: only an offset */
    *gain = varies ? sqrt(yy / xx) : 1;
    *offset = mean_y - *gain * mean_x;
}

bool check_calibrate(const struct check_sample *sample, struct ensemble *ensemble, struct err *err)
{
    for (int i = 0; i < ensemble->n; i++) {
        struct ensemble_model *m = &ensemble->models[i];
        m->gain = calloc((size_t)ensemble->n_classes, sizeof *m->gain);
        m->offset = calloc((size_t)ensemble->n_classes, sizeof *m->offset);
        if (!m->gain || !m->offset)
            return err_memory(err, "the calibration");
        for (int64_t c = 0; c < ensemble->n_classes; c++)
            fit_line(sample, i, c, &m->gain[c], &m->offset[c]);
    }
    return true;
}

/* The mean over models and symmetries of one window's scores: out [classes]. */
static bool scores_of(const struct ensemble *e, int n_symmetries, const float *logits, bool dense,
                      float *scratch, double *p, double *out, struct err *err)
{
    int64_t n = e->n_classes, ways = e->n * n_symmetries;
    memset(out, 0, (size_t)n * sizeof *out);
    for (int64_t i = 0; i < ways; i++) {
        const struct ensemble_model *m = &e->models[i / n_symmetries];
        for (int64_t c = 0; c < n; c++) {
            double z = logits[i * n + c];
            scratch[c] = (float)(dense && m->gain ? m->gain[c] * z + m->offset[c] : z);
        }
        if (!model_score(m->model, scratch, p, err))
            return false;
        for (int64_t c = 0; c < n; c++)
            out[c] += p[c] / (double)ways;
    }
    return true;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Pairs of probabilities [n] -> the summary. `gap` [n] is scratch. */
static void summarise(const double *x, const double *y, double *gap, int64_t n,
                      struct heatmap_check *out)
{
    double mean_x = 0, mean_y = 0, xx = 0, yy = 0, xy = 0;
    for (int64_t i = 0; i < n; i++) {
        gap[i] = fabs(x[i] - y[i]);
        mean_x += x[i] / (double)n;
        mean_y += y[i] / (double)n;
        out->mean += gap[i] / (double)n;
        out->flipped += ((x[i] >= 0.5) != (y[i] >= 0.5)) / (double)n;
    }
    for (int64_t i = 0; i < n; i++) {
        xx += (x[i] - mean_x) * (x[i] - mean_x);
        yy += (y[i] - mean_y) * (y[i] - mean_y);
        xy += (x[i] - mean_x) * (y[i] - mean_y);
    }
    qsort(gap, (size_t)n, sizeof *gap, ascending);
    out->r = xx > 0 && yy > 0 ? fmax(-1, fmin(1, xy / sqrt(xx * yy))) : NAN;
    out->p95 = gap[(int64_t)ceil(0.95 * (double)n) - 1];
    out->max = gap[n - 1];
}

/* A number's place in its range, within it; probabilities are that already. */
static double share_of_range(const struct ensemble *ensemble, double value)
{
    const struct model *model = ensemble->models[0].model;
    const struct model_target *target = &model->config.target;
    if (!model_predicts_number(model))
        return value;
    return fmin(fmax((value - target->min) / (target->max - target->min), 0), 1);
}

bool check_measure(const struct check_sample *sample, const struct ensemble *ensemble,
                   struct heatmap_check *out, struct err *err)
{
    int64_t classes = ensemble->n_classes, first = classes > 1, each = floats_of_window(sample);
    int64_t n = sample->n * (classes - first), k = 0;
    *out = (struct heatmap_check){ .windows = sample->n };
    double *all = malloc(((size_t)n * 3 + (size_t)classes * 3 + 1) * sizeof *all);
    float *scratch = malloc((size_t)classes * sizeof *scratch);
    bool ok = (all && scratch) || err_memory(err, "windows to compare");
    double *x = all, *y = ok ? x + n : NULL, *gap = ok ? y + n : NULL, *p = ok ? gap + n : NULL;
    double *dense = ok ? p + classes : NULL, *window = ok ? dense + classes : NULL;
    for (int64_t i = 0; ok && i < sample->n; i++) {
        ok = scores_of(ensemble, sample->n_symmetries, sample->dense + i * each, true, scratch, p,
                       dense, err) &&
             scores_of(ensemble, sample->n_symmetries, sample->window + i * each, false, scratch, p,
                       window, err);
        for (int64_t c = first; ok && c < classes; c++, k++) {
            x[k] = share_of_range(ensemble, dense[c]);
            y[k] = share_of_range(ensemble, window[c]);
        }
    }
    if (ok)
        summarise(x, y, gap, n, out);
    free(all);
    free(scratch);
    return ok;
}
