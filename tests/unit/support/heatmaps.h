/* heatmaps.h: heatmaps for tests, written to SCRATCH. */
#ifndef TESTS_UNIT_SUPPORT_HEATMAPS_H
#define TESTS_UNIT_SUPPORT_HEATMAPS_H
#include "heatmap/heatmap.h"

/* The scores [classes] of a cell; NaN in the first: no tissue. */
typedef void (*heatmaps_score)(int64_t column, int64_t row, float *scores);

/* Facts of a heatmap of a slide of this size at stride 16 on level 0 (0.25 um/px), classes "Normal"
 * and "Tumor" (or only "Tumor"). Points to static texts: not to be freed. */
struct heatmap_info heatmaps_facts(const char *name, int64_t width_l0, int64_t height_l0,
                                   int64_t n_classes);
/* Writes SCRATCH/name and opens it; the caller's. */
struct heatmap *heatmaps_make(const struct heatmap_info *info, heatmaps_score score);
/* SCRATCH/name/file, the caller's. */
char *heatmaps_path(const char *name, const char *file);
#endif
