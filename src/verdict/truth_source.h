/* truth_source.h: the truth of one slide, for the cells of its heatmap or for tiles. */
#ifndef VERDICT_TRUTH_SOURCE_H
#define VERDICT_TRUTH_SOURCE_H
#include "annotation/annotation.h"
#include "heatmap/heatmap.h"
#include "verdict/truth_mask.h"

#define TRUTH_NONE                                                                                 \
    255 /* no class: excluded, or not drawn and tissue without a label is omitted                  \
         */

struct truth_source {
    struct annotation *annotation; /* rasterised row by row; or */
    struct truth_mask mask;        /* sampled; neither: nothing is drawn */
    double downsample;
    const struct class_map *class_map;
};

/* path: an annotation or a mask (truth_mask.h, with `downsample`); NULL: nothing is drawn. If the
 * class map has other classes than normal and tumor, images are read as annotations. class_map may
 * be NULL; the caller keeps it. *out is the caller's; close with truth_source_close. */
bool truth_source_open(const char *path, const struct annotation_slide *slide,
                       const struct class_map *class_map, double downsample,
                       struct truth_source *out, struct err *err);
void truth_source_close(struct truth_source *source);

/* rows [n, width] of the heatmap from `row` on: 255 where the centre of the cell is tumour (the
 * positive class). The caller owns *rows. */
bool truth_source_positive(const struct truth_source *source, const struct heatmap_info *info,
                           int64_t row, int64_t n, struct image *rows, struct err *err);
/* The same with the place of the class of the cell's centre, or TRUTH_NONE. */
bool truth_source_classes(const struct truth_source *source, const struct heatmap_info *info,
                          int64_t row, int64_t n, struct image *rows, struct err *err);

/* The class of a tile: that of its centre, or the one that covers most of it (of 32 x 32 points;
 * the first of equals; TRUTH_NONE if most of it has none). */
enum tile_rule { TILE_CENTRE, TILE_MAJORITY };
extern const char *const tile_rule_names[]; /* NULL-terminated, in the order of the enum */
int truth_source_tile(const struct truth_source *source, double x_l0, double y_l0, double width_l0,
                      double height_l0, enum tile_rule rule);
#endif
