/* pixels.h: heatmaps against the truth, cell by cell, in bounded memory.
 * The area under the ROC curve is over scored cells (tissue). A cell is called tumour above the
 * threshold; cells without a score are not called. A cell is tumour if its centre is. With a class
 * map that has other classes than normal and tumor, "tumour" is the class of the truth that has the
 * name of the heatmap's class, and cells without a true class are not counted. */
#ifndef VERDICT_PIXELS_H
#define VERDICT_PIXELS_H
#include "base/ctx.h"
#include "verdict/heat_field.h"
#include "verdict/truth_list.h"

/* One slide's numbers, or those of all together. */
struct pixel_counts {
    int64_t *bins;          /* [2, pixel_bins]: scored cells without and with tumour, by score */
    int64_t scored, tumour; /* tumour: counts all cells, scored or not */
    int64_t hit, wrong, missed; /* cells called and tumour, called and not, not called but tumour */
};

bool pixel_counts_new(struct pixel_counts *counts, struct err *err);
void pixel_counts_free(struct pixel_counts *counts); /* also fine on a zeroed struct */
void pixel_counts_clear(struct pixel_counts *counts);
void pixel_counts_join(struct pixel_counts *all, const struct pixel_counts *one);

/* truth_path: an annotation or a mask (truth_mask.h, with `class_map` and `downsample`); NULL: no
 * tumour. Adds to *counts. Rows are streamed; a mask image is read whole. */
bool pixel_counts_add(const struct heatmap *heatmap, int64_t class_index, const char *truth_path,
                      const struct class_map *class_map, double downsample, double threshold,
                      const struct ctx *ctx, struct pixel_counts *counts, struct err *err);

struct pixel_measures {
    double auc;       /* NaN if one class is absent */
    double auc_error; /* the area is right to within this: scores are counted in a million bins,
                       * fine near 0 and 1 */
    double dice, iou; /* NaN where nothing is tumour and nothing is called */
};
struct pixel_measures pixel_measures(const struct pixel_counts *counts);
#endif
