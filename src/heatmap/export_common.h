/* export_common.h: what several exporters share. Private to this folder. */
#ifndef HEATMAP_EXPORT_COMMON_H
#define HEATMAP_EXPORT_COMMON_H
#include "heatmap/blocks.h"
#include "heatmap/export.h"

/* A score as the double with the fewest digits that reads back as the same float: 0.1, not
 * 0.10000000149. */
double export_short(float score);

/* The colours of the classes of a heatmap, [classes, 3] (base/class_colour.h). The caller's; NULL
 * if no memory. */
uint8_t (*export_colours(const struct heatmap_info *info))[3];

/* One tile with a score. */
struct export_tile {
    struct heatmap_cell place;
    int64_t number;      /* counted over all tiles, row by row, also those without a score */
    const float *scores; /* [classes] */
};
/* Calls `take` for every tile with a score, row by row. */
bool export_tiles(const struct export_request *request, const struct ctx *ctx,
                  void (*take)(void *arg, const struct export_tile *tile), void *arg,
                  struct err *err);
#endif
