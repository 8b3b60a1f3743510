/* heatmaps.c: see heatmaps.h. */
#include "support/heatmaps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include "support/paths.h"
#include "base/text.h"

static char normal[] = "Normal", tumor[] = "Tumor", window[] = "window",
            hash[] = "0123456789abcdef";
static char models[] = "test", nothing[] = "";
static char *both[] = { normal, tumor }, *one[] = { tumor };

struct heatmap_info heatmaps_facts(const char *name, int64_t width_l0, int64_t height_l0,
                                   int64_t n_classes)
{
    return (struct heatmap_info){ .slide = (char *)(uintptr_t)name,
                                  .path = (char *)(uintptr_t)name,
                                  .width_l0 = width_l0,
                                  .height_l0 = height_l0,
                                  .mpp_l0 = 0.25,
                                  .mpp = 0.25,
                                  .downsample = 1,
                                  .stride = 16,
                                  .origin_x = 8,
                                  .origin_y = 8,
                                  .window = 64,
                                  .width = (width_l0 + 15) / 16,
                                  .height = (height_l0 + 15) / 16,
                                  .n_classes = n_classes,
                                  .class_names = n_classes == 1 ? one : both,
                                  .mode = window,
                                  .models = models,
                                  .model_hash = hash,
                                  .options = nothing };
}

char *heatmaps_path(const char *name, const char *file)
{
    char *folder = scratch_path(name), *path = text_format("%s/%s", folder, file);
    free(folder);
    return path;
}

struct heatmap *heatmaps_make(const struct heatmap_info *info, heatmaps_score score)
{
    struct heatmap_writer *writer;
    struct heatmap *heatmap = NULL;
    struct err err = { 0 };
    char *folder = heatmaps_path(info->slide, "");
    float *row = malloc((size_t)(info->width * info->n_classes) * sizeof *row);
    bool ok = heatmap_create(folder, info, &writer, &err);
    for (int64_t y = 0; ok && y < info->height; y++) {
        for (int64_t x = 0; x < info->width; x++)
            score(x, y, row + x * info->n_classes);
        ok = heatmap_write_rows(writer, row, 1, &err);
    }
    ok = ok && heatmap_commit(writer, &err) && heatmap_open(folder, &heatmap, &err);
    if (!ok)
        fail_msg("%s", err.text);
    free(row);
    free(folder);
    return heatmap;
}
