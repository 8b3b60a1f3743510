/* evaluate_page.c: an evaluation as a page to read, and the picture of patches in it (evaluate.h).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/html.h"
#include "base/text.h"
#include "base/version.h"
#include "likeness/evaluate.h"
#include "report/figure.h"
#include "report/page_style.h"

#define N_FIGURES 6
#define N_BINS 40
#define COLUMNS 6 /* of patches of each kind */
#define GAP_PX 12

/* --- picture --- */

static void put_patch(const struct image *patch, int64_t left, int64_t top, struct image *onto)
{
    for (int64_t y = 0; y < patch->height; y++)
        memcpy(image_at(onto, left, top + y), image_at(patch, 0, y), (size_t)patch->width * 3);
}

bool evaluate_write_grid(const struct evaluation *evaluation, const char *folder, struct err *err)
{
    static const int shown[] = { SET_REAL, SET_SYNTHETIC };
    const struct patch_set *real = &evaluation->sets[SET_REAL];
    int64_t width = real->width + 1, height = real->height + 1, rows = PATCH_SET_SHOWN / COLUMNS;
    struct image grid = { 0 };
    char *path = text_format("%s/evaluate.png", folder);
    bool ok = path ? image_new(&grid, 2 * COLUMNS * width + GAP_PX, rows * height, 3, err)
                   : err_memory(err, "a picture");
    if (ok)
        memset(grid.px, 255, image_bytes(&grid));
    for (int k = 0; ok && k < 2; k++) {
        const struct patch_set *set = &evaluation->sets[shown[k]];
        for (int64_t i = 0; i < set->n_shown; i++)
            if (set->shown[i].width == real->width && set->shown[i].height == real->height)
                put_patch(&set->shown[i], k * (COLUMNS * width + GAP_PX) + i % COLUMNS * width,
                          i / COLUMNS * height, &grid);
    }
    ok = ok && image_write_png(path, &grid, err);
    image_free(&grid);
    free(path);
    return ok;
}

/* --- distributions --- */

static void histogram(const struct rows *set, int64_t column, double low, double high,
                      double *shares)
{
    memset(shares, 0, N_BINS * sizeof *shares);
    for (int64_t i = 0; i < set->n; i++) {
        double at = (set->values[i * set->d + column] - low) / (high - low) * N_BINS;
        int bin = at < 0 ? 0 : at >= N_BINS ? N_BINS - 1 : (int)at;
        shares[bin] += 100 / (double)set->n;
    }
}

static void put_figure(FILE *out, const struct evaluate_request *request,
                       const struct evaluation *evaluation, const struct feature_shift *shift)
{
    char text[64];
    double low = INFINITY, high = -INFINITY, x[N_BINS], y[2][N_BINS];
    for (int k = 0; k < 2; k++) {
        low = fmin(low, shift->mean[k] - 3 * shift->std[k]);
        high = fmax(high, shift->mean[k] + 3 * shift->std[k]);
    }
    if (!(high > low))
        high = low + 1;
    for (int i = 0; i < N_BINS; i++)
        x[i] = low + (high - low) * (i + 0.5) / N_BINS;
    struct rows real = patch_set_rows(&evaluation->sets[SET_REAL]);
    histogram(&real, shift->column, low, high, y[0]);
    histogram(&evaluation->matched, shift->column, low, high, y[1]);
    const char *name = evaluate_feature(request, shift->column, text);
    struct figure figure = {
        .title = name,
        .x_label = request->model_name ? "activation" : "standard deviations of real tissue",
        .y_label = "% of patches",
        .lines = { { .name = "real", .x = x, .y = y[0], .n = N_BINS },
                   { .name = "synthetic", .x = x, .y = y[1], .n = N_BINS } },
        .n_lines = 2,
        .mark = NAN,
        .summary = "How a feature is distributed in real and in synthetic patches",
    };
    figure_write(out, &figure);
}

/* --- tables --- */

static void put_number(FILE *out, double value, int decimals)
{
    if (isnan(value))
        html_put(out, "<td class=\"n\">–</td>");
    else
        html_put(out, "<td class=\"n\">%.*f</td>", decimals, value);
}

static void put_headings(FILE *out, const char *const *names, int n)
{
    html_put(out, "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>");
    for (int i = 0; i < n; i++)
        html_put(out, "<th scope=\"col\">%s</th>", names[i]);
    html_put(out, "</tr></thead><tbody>\n");
}

static void put_comparisons(FILE *out, const struct evaluation *evaluation)
{
    static const char *const names[] = { "comparison",  "class",    "patches",        "Fréchet",
                                         "at infinity", "kernel",   "precision",      "recall",
                                         "density",     "coverage", "two-sample AUC", "p" };
    put_headings(out, names, 12);
    for (int64_t i = 0; i < evaluation->n; i++) {
        const struct set_comparison *row = &evaluation->comparisons[i];
        html_put(out, "<tr><td>%s</td><td><bdi>%s</bdi></td><td class=\"n\">%lld, %lld</td>",
                 comparison_title(row->kind),
                 row->class_index < 0 ? "all" : evaluation->classes[row->class_index],
                 (long long)row->n[0], (long long)row->n[1]);
        put_number(out, row->frechet, 2);
        put_number(out, row->frechet_infinity, 2);
        put_number(out, row->kernel.mean, 4);
        put_number(out, row->neighbours.precision, 3);
        put_number(out, row->neighbours.recall, 3);
        put_number(out, row->neighbours.density, 3);
        put_number(out, row->neighbours.coverage, 3);
        put_number(out, row->two_sample.auc, 3);
        html_put(out, "<td class=\"n\">%.2g</td></tr>\n", row->two_sample.p);
    }
    html_put(out, "</tbody></table></div>\n");
}

static void put_nuclei(FILE *out, const struct evaluation *evaluation)
{
    static const char *const names[] = { "", "synthetic", "", "real", "" };
    const struct patch_nuclei *a = &evaluation->sets[SET_SYNTHETIC].nuclei;
    const struct patch_nuclei *b = &evaluation->sets[SET_REAL].nuclei;
    html_put(out, "<h2>Nuclei</h2>\n");
    if (a->why_not || b->why_not) {
        html_put(out, "<p>Not compared: %s.</p>\n", b->why_not ? b->why_not : a->why_not);
        return;
    }
    html_put(out,
             "<p>%lld nuclei of %lld synthetic and %lld of %lld real patches that are not cut "
             "off by the border; mean and standard deviation.</p>\n",
             (long long)a->nuclei, (long long)a->patches, (long long)b->nuclei,
             (long long)b->patches);
    put_headings(out, names, 5);
    html_put(out, "<tr><td>per mm²</td>");
    put_number(out, a->per_mm2, 0);
    html_put(out, "<td></td>");
    put_number(out, b->per_mm2, 0);
    html_put(out, "<td></td></tr>\n");
    for (int f = 0; f < NUCLEUS_FEATURES; f++) {
        html_put(out, "<tr><td>%s</td>", nucleus_features[f].column);
        put_number(out, a->mean[f], 3);
        put_number(out, a->std[f], 3);
        put_number(out, b->mean[f], 3);
        put_number(out, b->std[f], 3);
        html_put(out, "</tr>\n");
    }
    html_put(out, "</tbody></table></div>\n");
}

static void put_transfer(FILE *out, const struct evaluation *evaluation)
{
    if (!isnan(evaluation->transfer[0]))
        html_put(out,
                 "<p>A logistic regression trained on the synthetic patches alone tells the "
                 "classes of the real ones apart with an AUC of %.3f",
                 evaluation->transfer[0]);
    if (!isnan(evaluation->transfer[0]) && !isnan(evaluation->transfer[1]))
        html_put(out, "; trained on the training patches with %.3f", evaluation->transfer[1]);
    if (!isnan(evaluation->transfer[0]))
        html_put(out, ".</p>\n");
}

static void put_head(FILE *out, const struct evaluate_request *request,
                     const struct evaluation *evaluation)
{
    html_put(out,
             "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src "
             "'self' file: data:; style-src 'unsafe-inline'\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
             "<meta name=\"generator\" content=\"microtome %s\">\n"
             "<title>Synthetic and real patches</title>\n<style>\n",
             MICROTOME_VERSION);
    fputs(page_style, out);
    html_put(out,
             ".pixels{image-rendering:pixelated;width:100%%;max-width:1100px}\n"
             "</style>\n</head>\n<body>\n<header><h1>Synthetic and real patches</h1>\n"
             "<p>%s: %lld features of patches of %lld x %lld px.</p></header>\n<main>\n",
             request->model_name ? request->model_name : "Hand-made",
             (long long)evaluation->sets[SET_REAL].d, (long long)evaluation->sets[SET_REAL].width,
             (long long)evaluation->sets[SET_REAL].height);
}

bool evaluate_write_page(const struct evaluate_request *request,
                         const struct evaluation *evaluation, const char *folder, struct err *err)
{
    struct file_out file;
    if (!file_out_open_in(&file, folder, "evaluate.html", err))
        return false;
    FILE *out = file.stream;
    put_head(out, request, evaluation);
    html_put(out,
             "<h2>Distances</h2>\n<p>A distance says little by itself: compare it with that of "
             "two halves of the real patches, which are as alike as can be, and with that of other "
             "patients, if training patches were given. Fréchet's distance is too large for few "
             "patches; \"at infinity\" is what it would be with ever more. Precision: synthetic "
             "patches that look real; recall and coverage: real patches that have a synthetic one "
             "like them. An AUC of 0.5 means that a logistic regression cannot tell the two "
             "apart.</p>\n");
    put_comparisons(out, evaluation);
    put_transfer(out, evaluation);
    html_put(out, "<h2>Patches</h2>\n<figure><img class=\"pixels\" src=\"evaluate.png\" alt=\"real "
                  "and synthetic patches\"><figcaption>Left: real. Right: synthetic.</figcaption>"
                  "</figure>\n<h2>Features that differ most</h2>\n<div class=\"plots\">\n");
    for (int64_t i = 0; i < N_FIGURES && i < evaluation->sets[SET_REAL].d; i++)
        put_figure(out, request, evaluation, &evaluation->shifts[i]);
    html_put(out, "</div>\n");
    put_nuclei(out, evaluation);
    html_put(out, "</main>\n</body>\n</html>\n");
    return file_out_commit(&file, err);
}
