/* picture_winners.c: which class has the highest score, as a picture and as areas (picture.h). */
#include <math.h>
#include <stdlib.h>
#include "base/class_colour.h"
#include "heatmap/sample.h"
#include "report/picture.h"

#define ROWS_BYTES (INT64_C(8) << 20)
#define SHEER_ALPHA 150 /* of 255: the tissue under a class must be seen */
#define LAST_INDEX 255

bool picture_winners(const struct heatmap *heatmap, int64_t width, int64_t height,
                     const struct ctx *ctx, struct image *out, struct err *err)
{
    size_t n = (size_t)(width * height);
    struct heatmap_picture picture = { .width = width,
                                       .height = height,
                                       .memory_bytes = ROWS_BYTES,
                                       .scores = malloc(n * sizeof *picture.scores),
                                       .winners = malloc(n * sizeof *picture.winners) };
    bool ok = (picture.scores && picture.winners) || err_memory(err, "a picture of classes");
    ok = ok && heatmap_sample(heatmap, &picture, ctx, err) && image_new(out, width, height, 1, err);
    for (size_t i = 0; ok && i < n; i++) {
        int32_t index = 1 + picture.winners[i];
        out->px[i] = isnan(picture.scores[i]) ? 0
                     : index < LAST_INDEX     ? (uint8_t)index
                                              : LAST_INDEX;
    }
    free(picture.scores);
    free(picture.winners);
    return ok;
}

bool picture_count_winners(const struct heatmap *heatmap, const struct ctx *ctx, int64_t *won,
                           struct err *err)
{
    const struct heatmap_info *info = heatmap_info(heatmap);
    int64_t at_once = heatmap_rows_in(info, ROWS_BYTES), classes = info->n_classes;
    at_once = at_once > info->height ? info->height : at_once;
    float *rows = malloc((size_t)(at_once * info->width * classes) * sizeof *rows + 1);
    bool ok = rows || err_memory(err, info->slide);
    for (int64_t c = 0; c < classes; c++)
        won[c] = 0;
    for (int64_t row = 0; ok && row < info->height; row += at_once) {
        int64_t n = info->height - row < at_once ? info->height - row : at_once;
        ok = ctx_stopped(ctx) ? err_stopped(err) : heatmap_read_rows(heatmap, row, n, rows, err);
        for (int64_t i = 0; ok && i < n * info->width; i++)
            if (!isnan(rows[i * classes]))
                won[heatmap_winner(rows + i * classes, classes)]++;
    }
    free(rows);
    return ok;
}

bool picture_write_winners(const char *path, const struct image *winners,
                           const struct heatmap_info *info, bool sheer, struct err *err)
{
    struct image_colour colours[256] = { { 0 } };
    uint8_t(*rgb)[3] = malloc((size_t)info->n_classes * sizeof *rgb);
    if (!rgb)
        return err_memory(err, path);
    class_colours(info->class_names, info->n_classes, rgb);
    for (int64_t c = 0; c < info->n_classes && c < LAST_INDEX; c++)
        colours[1 + c] =
            (struct image_colour){ rgb[c][0], rgb[c][1], rgb[c][2], sheer ? SHEER_ALPHA : 255 };
    free(rgb);
    return image_write_png_palette(path, winners, colours, err);
}
