/* export_common.c: see export_common.h. */
#include "heatmap/export_common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/class_colour.h"
#include "base/divide.h"

double export_short(float score)
{
    char text[32];
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)score);
        if (strtof(text, NULL) == score)
            break;
    }
    return strtod(text, NULL);
}

uint8_t (*export_colours(const struct heatmap_info *info))[3]
{
    uint8_t(*colours)[3] = malloc((size_t)info->n_classes * sizeof *colours);
    if (colours)
        class_colours(info->class_names, info->n_classes, colours);
    return colours;
}

bool export_tiles(const struct export_request *request, const struct ctx *ctx,
                  void (*take)(void *arg, const struct export_tile *tile), void *arg,
                  struct err *err)
{
    const struct heatmap_info *info = heatmap_info(request->heatmap);
    int64_t side = request->options->tile_px > 0 ? request->options->tile_px : info->window;
    side = side <= info->stride ? 1 : ceil_div(side, info->stride);
    struct blocks blocks;
    if (!blocks_open(&blocks, request->heatmap, side, request->options->memory_bytes / 4, err))
        return false;
    float *row = malloc((size_t)(blocks.across * info->n_classes) * sizeof *row);
    bool ok = row || err_memory(err, "a row of tiles");
    for (int64_t y = 0; ok && y < blocks.down; y++) {
        ok = !ctx_stopped(ctx) || err_stopped(err);
        ok = ok && blocks_read(&blocks, y, row, err);
        for (int64_t x = 0; ok && x < blocks.across; x++) {
            struct export_tile tile = { .place = blocks_place(&blocks, x, y),
                                        .number = y * blocks.across + x,
                                        .scores = row + x * info->n_classes };
            bool empty =
                isnan(tile.scores[0]) || tile.place.width_l0 < 1 || tile.place.height_l0 < 1;
            if (!empty)
                take(arg, &tile);
        }
    }
    free(row);
    blocks_close(&blocks);
    return ok;
}
