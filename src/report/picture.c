/* picture.c: one pass over a heatmap (picture.h). */
#include "report/picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/divide.h"

#define ROWS_BYTES (INT64_C(16) << 20)
#define MOST_BLOCKS (INT64_C(1) << 20)

/* Blocks about the size of a window each keep their highest-scoring cell as a candidate peak. */
struct scan {
    const struct heatmap_info *info;
    int64_t class_index;
    struct heatmap_number range; /* of the colours */
    struct picture *out;
    int64_t *first_x, *last_x; /* [columns]: picture px that a cell covers */
    double px_per_row;
    int64_t block, blocks_wide, blocks_high;
    struct picture_peak *best; /* [blocks_high, blocks_wide]; score -1: nothing scored */
    double sum;
    int64_t scored;
};

/* The px whose centres are in cell i, else the px that contains the middle of the cell. */
static void covered(int64_t i, double px_per_cell, int64_t limit, int64_t *first, int64_t *last)
{
    double from = (double)i * px_per_cell, to = from + px_per_cell;
    *first = (int64_t)ceil(from - 0.5);
    *last = (int64_t)ceil(to - 0.5) - 1;
    if (*last < *first)
        *first = *last = (int64_t)floor((from + to) / 2);
    *first = *first < 0 ? 0 : *first > limit - 1 ? limit - 1 : *first;
    *last = *last < *first ? *first : *last > limit - 1 ? limit - 1 : *last;
}

static bool begin(struct scan *scan, int64_t width, int64_t height, struct err *err)
{
    const struct heatmap_info *info = scan->info;
    double cell_l0 = (double)info->stride * info->downsample;
    double px_per_column = cell_l0 * (double)width / (double)info->width_l0;
    scan->px_per_row = cell_l0 * (double)height / (double)info->height_l0;
    scan->block = info->window / info->stride > 1 ? info->window / info->stride : 1;
    do {
        scan->blocks_wide = ceil_div(info->width, scan->block);
        scan->blocks_high = ceil_div(info->height, scan->block);
    } while (scan->blocks_wide * scan->blocks_high > MOST_BLOCKS && (scan->block *= 2));
    size_t blocks = (size_t)(scan->blocks_wide * scan->blocks_high);
    scan->best = malloc((blocks + 1) * sizeof *scan->best);
    scan->first_x = malloc(2 * (size_t)info->width * sizeof *scan->first_x + 1);
    if (!scan->best || !scan->first_x)
        return err_memory(err, info->slide);
    scan->last_x = scan->first_x + info->width;
    for (size_t i = 0; i < blocks; i++)
        scan->best[i].score = -INFINITY;
    for (int64_t c = 0; c < info->width; c++)
        covered(c, px_per_column, width, &scan->first_x[c], &scan->last_x[c]);
    return true;
}

static void take_cell(struct scan *scan, int64_t column, int64_t row, double score, int64_t y0,
                      int64_t y1)
{
    struct image *heat = &scan->out->heat;
    double share = (score - scan->range.min) / (scan->range.max - scan->range.min);
    double bounded = share < 0 ? 0 : share > 1 ? 1 : share;
    uint8_t value = (uint8_t)(1 + lround(254 * bounded));
    for (int64_t y = y0; y <= y1; y++)
        for (int64_t x = scan->first_x[column]; x <= scan->last_x[column]; x++) {
            uint8_t *px = image_at(heat, x, y);
            *px = value > *px ? value : *px;
        }
    struct picture_peak *best =
        &scan->best[row / scan->block * scan->blocks_wide + column / scan->block];
    if (score > best->score)
        *best = (struct picture_peak){ column, row, score };
    scan->sum += score;
    scan->scored++;
    if (!(scan->out->max >= score))
        scan->out->max = score;
}

static bool take_rows(struct scan *scan, const struct heatmap *heatmap, const struct ctx *ctx,
                      struct err *err)
{
    const struct heatmap_info *info = scan->info;
    int64_t at_once = heatmap_rows_in(info, ROWS_BYTES);
    at_once = at_once > info->height ? info->height : at_once;
    float *rows = malloc((size_t)(at_once * info->width * info->n_classes) * sizeof *rows + 1);
    bool ok = rows || err_memory(err, info->slide);
    for (int64_t row = 0; ok && row < info->height; row += at_once) {
        int64_t n = info->height - row < at_once ? info->height - row : at_once;
        ok = ctx_stopped(ctx) ? err_stopped(err) : heatmap_read_rows(heatmap, row, n, rows, err);
        for (int64_t i = 0; ok && i < n; i++) {
            int64_t y0, y1;
            covered(row + i, scan->px_per_row, scan->out->heat.height, &y0, &y1);
            const float *cells = rows + i * info->width * info->n_classes + scan->class_index;
            for (int64_t c = 0; c < info->width; c++)
                if (isfinite(cells[c * info->n_classes]))
                    take_cell(scan, c, row + i, cells[c * info->n_classes], y0, y1);
        }
    }
    free(rows);
    return ok;
}

/* Two windows closer than three quarters of their side show the same thing. */
static bool is_near(const struct scan *scan, const struct picture_peak *a,
                    const struct picture_peak *b)
{
    double least = 0.75 * (double)scan->info->window / (double)scan->info->stride;
    return fabs((double)(a->column - b->column)) < least && fabs((double)(a->row - b->row)) < least;
}

static void choose_peaks(struct scan *scan)
{
    struct picture *out = scan->out;
    while (out->n_peaks < PICTURE_PEAKS) {
        const struct picture_peak *strongest = NULL;
        for (int64_t i = 0; i < scan->blocks_wide * scan->blocks_high; i++) {
            const struct picture_peak *peak = &scan->best[i];
            bool taken = isinf(peak->score);
            for (int k = 0; k < out->n_peaks && !taken; k++)
                taken = is_near(scan, peak, &out->peaks[k]);
            if (!taken && (!strongest || peak->score > strongest->score))
                strongest = peak;
        }
        if (!strongest)
            return;
        out->peaks[out->n_peaks++] = *strongest;
    }
}

bool picture_scan(const struct heatmap *heatmap, int64_t class_index, int64_t width, int64_t height,
                  const struct ctx *ctx, struct picture *out, struct err *err)
{
    *out = (struct picture){ .mean = NAN, .max = NAN };
    struct scan scan = { .info = heatmap_info(heatmap),
                         .class_index = class_index,
                         .range = heatmap_range(heatmap_info(heatmap)),
                         .out = out };
    bool ok = image_new(&out->heat, width, height, 1, err) && begin(&scan, width, height, err) &&
              take_rows(&scan, heatmap, ctx, err);
    if (ok) {
        choose_peaks(&scan);
        out->mean = scan.scored > 0 ? scan.sum / (double)scan.scored : NAN;
    } else {
        picture_free(out);
    }
    free(scan.best);
    free(scan.first_x);
    return ok;
}

void picture_free(struct picture *picture)
{
    image_free(&picture->heat);
    *picture = (struct picture){ 0 };
}
