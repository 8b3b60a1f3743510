/* explain_occlusion.c: occlusion (Zeiler & Fergus 2014): a square of the image's mean colour moves
 * over it; the map is, at every pixel, the drop of the score, averaged over the squares that cover
 * it. */
#include <stdlib.h>
#include <string.h>
#include "explain/perturb.h"
#include "base/divide.h"

/* Squares begin at multiples of the stride; the last may reach over the edge. */
struct windows {
    const float *input; /* [3, height, width] */
    float mean[3];
    int64_t height, width, side, stride, rows, columns;
};

struct box {
    int64_t x0, y0, x1, y1;
};

static struct box box_of(const struct windows *w, int64_t i)
{
    int64_t y = i / w->columns * w->stride, x = i % w->columns * w->stride;
    return (struct box){ x, y, smaller_of(x + w->side, w->width),
                         smaller_of(y + w->side, w->height) };
}

static void write_occluded(const void *arg, int64_t i, float *out)
{
    const struct windows *w = arg;
    const int64_t plane = w->height * w->width;
    struct box box = box_of(w, i);
    memcpy(out, w->input, (size_t)(3 * plane) * sizeof *out);
    for (int c = 0; c < 3; c++)
        for (int64_t y = box.y0; y < box.y1; y++)
            for (int64_t x = box.x0; x < box.x1; x++)
                out[c * plane + y * w->width + x] = w->mean[c];
}

static int64_t side_of(const struct explain_settings *settings)
{
    int64_t side = smaller_of(settings->height, settings->width) / 8;
    side = side > 1 ? side : 1;
    return settings->occlusion_px ? settings->occlusion_px : side;
}

static int64_t stride_of(const struct explain_settings *settings)
{
    int64_t half = side_of(settings) / 2;
    half = half > 1 ? half : 1;
    return settings->occlusion_stride_px ? settings->occlusion_stride_px : half;
}

/* Along one side of the image, so that every pixel is covered. */
static int64_t windows_along(int64_t length, int64_t side, int64_t stride)
{
    return (length - side + stride - 1) / stride + 1;
}

static struct windows windows_of(const struct explain_settings *settings,
                                 const struct explain_view *view)
{
    struct windows w = { .input = view->input,
                         .height = settings->height,
                         .width = settings->width };
    const int64_t plane = w.height * w.width;
    w.side = side_of(settings), w.stride = stride_of(settings);
    w.rows = windows_along(w.height, w.side, w.stride);
    w.columns = windows_along(w.width, w.side, w.stride);
    for (int c = 0; c < 3; c++) {
        double sum = 0;
        for (int64_t i = 0; i < plane; i++)
            sum += (double)view->input[c * plane + i];
        w.mean[c] = (float)(sum / (double)plane);
    }
    return w;
}

static bool check(const struct explain_settings *settings, const struct probe *probe, int layer,
                  struct err *err)
{
    (void)probe, (void)layer;
    int64_t side = side_of(settings), stride = stride_of(settings);
    int64_t most = smaller_of(settings->height, settings->width);
    if (side < 1 || side > most)
        return err_set(err, ERR_USAGE,
                       "occlusion by squares of %lld px: the input of the network "
                       "allows 1 to %lld px",
                       (long long)side, (long long)most);
    if (stride < 1 || stride > side)
        return err_set(err, ERR_USAGE,
                       "occlusion in steps of %lld px by squares of %lld px: steps "
                       "of 1 to %lld px leave no gaps",
                       (long long)stride, (long long)side, (long long)side);
    return true;
}

/* values: the mean of score - scores[i] over the squares that cover a pixel. */
static bool average(const struct windows *w, double score, const double *scores, float *values,
                    struct err *err)
{
    const int64_t plane = w->height * w->width;
    double *sum = calloc((size_t)plane, sizeof *sum);
    int32_t *n = calloc((size_t)plane, sizeof *n);
    bool ok = (sum && n) || err_memory(err, "a map");
    for (int64_t i = 0; ok && i < w->rows * w->columns; i++) {
        struct box box = box_of(w, i);
        for (int64_t y = box.y0; y < box.y1; y++)
            for (int64_t x = box.x0; x < box.x1; x++) {
                sum[y * w->width + x] += score - scores[i];
                n[y * w->width + x]++;
            }
    }
    for (int64_t i = 0; ok && i < plane; i++)
        values[i] = (float)(sum[i] / n[i]);
    free(sum);
    free(n);
    return ok;
}

static bool explain(const struct explain_settings *settings, struct probe *probe, int layer,
                    const struct explain_view *view, const struct ctx *ctx, struct attribution *out,
                    struct err *err)
{
    if (!check(settings, probe, layer, err)) /* images differ in size */
        return false;
    struct windows w = windows_of(settings, view);
    struct perturbation copies = { .n = w.rows * w.columns, .write = write_occluded, .arg = &w };
    double *scores = malloc((size_t)copies.n * sizeof *scores);
    if (!scores)
        return err_memory(err, "scores of occluded images");
    bool ok = perturb(settings, probe, view, &copies, ctx, scores, err) &&
              attribution_new(settings->height, settings->width, out, err);
    if (ok && !average(&w, view->score, scores, out->values, err)) {
        attribution_free(out);
        ok = false;
    }
    free(scores);
    return ok;
}

extern const struct explainer explainer_occlusion;
const struct explainer explainer_occlusion = {
    .name = "occlusion",
    .title = "Occlusion",
    .help = "drop of the score where a square of the mean colour covers the image",
    .maps = MAPS_INPUT,
    .positive = false,
    .forward_only = true,
    .check = check,
    .explain = explain,
};
