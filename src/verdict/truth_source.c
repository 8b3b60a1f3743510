/* truth_source.c: see truth_source.h. */
#include "verdict/truth_source.h"

#include <string.h>
#include "verdict/truth_list.h"

#define TILE_POINTS 32 /* along a side of a tile */

const char *const tile_rule_names[] = { "centre", "majority", NULL };

bool truth_source_open(const char *path, const struct annotation_slide *slide,
                       const struct class_map *class_map, double downsample,
                       struct truth_source *out, struct err *err)
{
    *out = (struct truth_source){ .downsample = downsample, .class_map = class_map };
    if (!path)
        return true;
    if (truth_is_mask(path) && class_map_is_plain(class_map))
        return truth_mask_read(path, slide ? slide->name : NULL, class_map, downsample, 0,
                               &out->mask, err);
    return annotation_read(path, slide, class_map, &out->annotation, err);
}

void truth_source_close(struct truth_source *source)
{
    annotation_free(source->annotation);
    image_free(&source->mask.mask);
    *source = (struct truth_source){ 0 };
}

static bool in_mask(const struct truth_source *source, double x_l0, double y_l0)
{
    const struct image *mask = &source->mask.mask;
    double x = x_l0 / source->downsample, y = y_l0 / source->downsample;
    return mask->px && x >= 0 && y >= 0 && x < (double)mask->width && y < (double)mask->height &&
           *image_at(mask, (int64_t)x, (int64_t)y) != 0;
}

/* `inside` where the centre of a cell is in the mask, `outside` elsewhere. */
static bool mask_rows(const struct truth_source *source, const struct heatmap_info *info,
                      int64_t row, int64_t n, uint8_t inside, uint8_t outside, struct image *rows,
                      struct err *err)
{
    const double cell = info->downsample * (double)info->stride;
    if (!image_new(rows, info->width, n, 1, err))
        return false;
    memset(rows->px, outside, (size_t)(info->width * n));
    for (int64_t y = 0; source->mask.mask.px && y < n; y++)
        for (int64_t x = 0; x < info->width; x++)
            if (in_mask(source, ((double)x + 0.5) * cell, ((double)(row + y) + 0.5) * cell))
                *image_at(rows, x, y) = inside;
    return true;
}

bool truth_source_positive(const struct truth_source *source, const struct heatmap_info *info,
                           int64_t row, int64_t n, struct image *rows, struct err *err)
{
    const double cell = info->downsample * (double)info->stride;
    if (source->annotation)
        return annotation_mask(source->annotation, 0, (double)row * cell, cell, info->width, n,
                               rows, err);
    return mask_rows(source, info, row, n, 255, 0, rows, err);
}

/* The class of what nobody drew on. */
static int undrawn_class(const struct truth_source *source)
{
    int place = class_map_unlabelled(source->class_map);
    return place < 0 ? TRUTH_NONE : place;
}

bool truth_source_classes(const struct truth_source *source, const struct heatmap_info *info,
                          int64_t row, int64_t n, struct image *rows, struct err *err)
{
    const double cell = info->downsample * (double)info->stride;
    const uint8_t undrawn = (uint8_t)undrawn_class(source);
    if (!source->annotation)
        return mask_rows(source, info, row, n, (uint8_t)class_map_positive(source->class_map),
                         undrawn, rows, err);
    if (!annotation_class_mask(source->annotation, 0, (double)row * cell, cell, info->width, n,
                               rows, err))
        return false;
    for (int64_t i = 0; i < info->width * n; i++)
        rows->px[i] = rows->px[i] == 255 ? undrawn : rows->px[i] == 254 ? TRUTH_NONE : rows->px[i];
    return true;
}

static int class_at(const struct truth_source *source, double x_l0, double y_l0)
{
    if (!source->annotation)
        return in_mask(source, x_l0, y_l0) ? class_map_positive(source->class_map)
                                           : undrawn_class(source);
    int place = annotation_class_at(source->annotation, x_l0, y_l0);
    return place == ANNOTATION_UNDRAWN    ? undrawn_class(source)
           : place == ANNOTATION_EXCLUDED ? TRUTH_NONE
                                          : place;
}

int truth_source_tile(const struct truth_source *source, double x_l0, double y_l0, double width_l0,
                      double height_l0, enum tile_rule rule)
{
    int counts[TRUTH_NONE + 1] = { 0 }, best = 0;
    if (rule == TILE_CENTRE)
        return class_at(source, x_l0 + width_l0 / 2, y_l0 + height_l0 / 2);
    for (int j = 0; j < TILE_POINTS; j++)
        for (int i = 0; i < TILE_POINTS; i++)
            counts[class_at(source, x_l0 + (i + 0.5) * width_l0 / TILE_POINTS,
                            y_l0 + (j + 0.5) * height_l0 / TILE_POINTS)]++;
    for (int k = 0; k <= TRUTH_NONE; k++)
        best = counts[k] > counts[best] ? k : best;
    return best;
}
