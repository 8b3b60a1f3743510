/* pixels.c: see pixels.h. */
#include "verdict/pixels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "verdict/truth_source.h"

#define BAND_BYTES (INT64_C(16) << 20)
#define DROPPED_BITS 11
#define HALF_BINS ((0x3F000000 >> DROPPED_BITS) + 1) /* 0x3F000000 is 0.5 */
#define BINS (2 * HALF_BINS)

/* The order of bins is that of scores. The width of a bin is a small fraction of the distance to 0
 * or 1, whichever is nearer, since that is where networks put most scores. */
static int64_t bin_of(float score)
{
    const float clipped = score < 0 ? 0 : score > 1 ? 1 : score;
    const float near = fabsf(clipped < 0.5f ? clipped : 1 - clipped); /* never -0 */
    uint32_t bits;
    memcpy(&bits, &near, sizeof bits);
    int64_t bin = bits >> DROPPED_BITS;
    return clipped < 0.5f ? bin : BINS - 1 - bin;
}

bool pixel_counts_new(struct pixel_counts *counts, struct err *err)
{
    *counts = (struct pixel_counts){ .bins = calloc(2 * BINS, sizeof *counts->bins) };
    return counts->bins || err_memory(err, "the counts of scores");
}

void pixel_counts_free(struct pixel_counts *counts)
{
    free(counts->bins);
    *counts = (struct pixel_counts){ 0 };
}

void pixel_counts_clear(struct pixel_counts *counts)
{
    memset(counts->bins, 0, 2 * BINS * sizeof *counts->bins);
    *counts = (struct pixel_counts){ .bins = counts->bins };
}

void pixel_counts_join(struct pixel_counts *all, const struct pixel_counts *one)
{
    for (int64_t i = 0; i < 2 * BINS; i++)
        all->bins[i] += one->bins[i];
    all->scored += one->scored, all->tumour += one->tumour;
    all->hit += one->hit, all->wrong += one->wrong, all->missed += one->missed;
}

static void count(struct pixel_counts *counts, float score, bool tumour, float threshold)
{
    counts->tumour += tumour;
    if (isnan(score)) {
        counts->missed += tumour;
        return;
    }
    bool called = score > threshold;
    counts->scored++;
    counts->bins[(tumour ? BINS : 0) + bin_of(score)]++;
    counts->hit += called && tumour;
    counts->wrong += called && !tumour;
    counts->missed += !called && tumour;
}

enum cell_truth { CELL_OTHER = 0, CELL_UNKNOWN = 1, CELL_TUMOUR = 255 };

/* Classes that are neither normal nor tumor are compared by name. *place: that of the heatmap's
 * class in the truth; -1: tumour against the rest. */
static bool find_place(const struct class_map *class_map, const struct heatmap_info *info,
                       int64_t class_index, int *place, struct err *err)
{
    *place = -1;
    if (class_map_is_plain(class_map))
        return true;
    *place = class_map_place(class_map, info->class_names[class_index]);
    return *place >= 0 ||
           err_set(
               err, ERR_FORMAT,
               "%s: class '%s' of the heatmap is not a class of the truth; map drawn names to it "
               "with --class-map, or choose another one with --class",
               info->slide, info->class_names[class_index]);
}

/* rows [n, width]: what the truth is, as one of enum cell_truth. */
static bool read_truth(const struct truth_source *truth, const struct heatmap_info *info, int place,
                       int64_t row, int64_t n, struct image *rows, struct err *err)
{
    if (place < 0)
        return truth_source_positive(truth, info, row, n, rows, err);
    if (!truth_source_classes(truth, info, row, n, rows, err))
        return false;
    for (int64_t i = 0; i < n * info->width; i++)
        rows->px[i] = rows->px[i] == place        ? CELL_TUMOUR
                      : rows->px[i] == TRUTH_NONE ? CELL_UNKNOWN
                                                  : CELL_OTHER;
    return true;
}

bool pixel_counts_add(const struct heatmap *heatmap, int64_t class_index, const char *truth_path,
                      const struct class_map *class_map, double downsample, double threshold,
                      const struct ctx *ctx, struct pixel_counts *counts, struct err *err)
{
    const struct heatmap_info *info = heatmap_info(heatmap);
    const int64_t band = heatmap_rows_in(info, BAND_BYTES);
    const struct annotation_slide slide = { info->slide, info->width_l0, info->height_l0 };
    struct truth_source truth;
    int place = -1;
    if (!find_place(class_map, info, class_index, &place, err) ||
        !truth_source_open(truth_path, &slide, class_map, downsample, &truth, err))
        return false;
    float *scores = malloc((size_t)(band * info->width * info->n_classes) * sizeof *scores);
    bool ok = scores || err_memory(err, info->slide);
    for (int64_t row = 0; ok && row < info->height; row += band) {
        int64_t n = info->height - row < band ? info->height - row : band;
        struct image rows = { 0 };
        ok = (!ctx_stopped(ctx) || err_stopped(err)) &&
             heatmap_read_rows(heatmap, row, n, scores, err) &&
             read_truth(&truth, info, place, row, n, &rows, err);
        for (int64_t i = 0; ok && i < n * info->width; i++)
            if (rows.px[i] != CELL_UNKNOWN)
                count(counts, scores[i * info->n_classes + class_index], rows.px[i] == CELL_TUMOUR,
                      (float)threshold);
        image_free(&rows);
    }
    free(scores);
    truth_source_close(&truth);
    return ok;
}

struct pixel_measures pixel_measures(const struct pixel_counts *counts)
{
    double below[2] = { 0 }, won = 0, tied = 0;
    for (int64_t i = 0; i < BINS; i++) {
        double negatives = (double)counts->bins[i], positives = (double)counts->bins[BINS + i];
        won += positives * (below[0] + negatives / 2);
        tied += positives * negatives / 2;
        below[0] += negatives, below[1] += positives;
    }
    double pairs = below[0] * below[1];
    double called_or_tumour = (double)(counts->hit + counts->wrong + counts->missed);
    bool any = called_or_tumour > 0;
    return (struct pixel_measures){
        .auc = pairs > 0 ? won / pairs : NAN,
        .auc_error = pairs > 0 ? tied / pairs : 0,
        .dice = any ? 2 * (double)counts->hit / ((double)counts->hit + called_or_tumour) : NAN,
        .iou = any ? (double)counts->hit / called_or_tumour : NAN,
    };
}
