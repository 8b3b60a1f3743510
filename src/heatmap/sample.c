/* sample.c: see sample.h. */
#include "heatmap/sample.h"

#include <stdlib.h>
#include "heatmap/blocks.h"

static void keep_score(const struct heatmap_picture *picture, int64_t at, const float *scores,
                       int64_t n_classes)
{
    int64_t class = picture->class_index;
    if (picture->winners)
        class = picture->winners[at] = (int32_t)heatmap_winner(scores, n_classes);
    picture->scores[at] = scores[class];
}

bool heatmap_sample(const struct heatmap *heatmap, const struct heatmap_picture *picture,
                    const struct ctx *ctx, struct err *err)
{
    const struct heatmap_info *info = heatmap_info(heatmap);
    int64_t width = picture->width, height = picture->height;
    double px_x = (double)info->width_l0 / (double)width;
    double px_y = (double)info->height_l0 / (double)height;
    double cell = info->downsample * (double)info->stride;
    int64_t side = px_x >= 2 * cell ? (int64_t)(px_x / cell) : 1;
    struct blocks blocks;
    if (!blocks_open(&blocks, heatmap, side, picture->memory_bytes, err))
        return false;
    float *row = malloc((size_t)(blocks.across * info->n_classes) * sizeof *row);
    bool ok = row || err_memory(err, "a picture of a heatmap");
    int64_t held = -1;
    for (int64_t y = 0; ok && y < height; y++) {
        int64_t wanted = (int64_t)(((double)y + 0.5) * px_y / (cell * (double)side));
        wanted = wanted < blocks.down ? wanted : blocks.down - 1;
        if (wanted != held)
            ok = !ctx_stopped(ctx) ? blocks_read(&blocks, wanted, row, err) : err_stopped(err);
        held = wanted;
        for (int64_t x = 0; ok && x < width; x++) {
            int64_t column = (int64_t)(((double)x + 0.5) * px_x / (cell * (double)side));
            column = column < blocks.across ? column : blocks.across - 1;
            keep_score(picture, y * width + x, row + column * info->n_classes, info->n_classes);
        }
    }
    free(row);
    blocks_close(&blocks);
    return ok;
}
