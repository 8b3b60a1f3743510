/* slide_truth.c: see slide_truth.h. */
#include "report/slide_truth.h"

#include <stdio.h>
#include <stdlib.h>
#include "annotation/annotation.h"
#include "base/class_colour.h"
#include "base/json.h"
#include "report/picture.h"

/* A map whose classes are those of the heatmap. NULL where they cannot be classes of a drawing:
 * then the names alone decide. The caller's. */
static struct class_map *map_of_heatmap(const struct heatmap_info *info)
{
    char *text = NULL;
    size_t size;
    struct class_map *map = NULL;
    struct json_out json;
    FILE *stream = heatmap_has_winners(info) ? open_memstream(&text, &size) : NULL;
    if (!stream)
        return NULL;
    json_out_begin(&json, stream);
    json_out_object(&json, NULL);
    json_out_array(&json, "classes");
    for (int64_t c = 0; c < info->n_classes; c++)
        json_out_text(&json, NULL, info->class_names[c]);
    json_out_close_array(&json);
    json_out_text(&json, "unlabelled", "omit");
    json_out_close_object(&json);
    json_out_end(&json);
    if (fclose(stream) == 0 && !class_map_parse(text, &map, NULL))
        map = NULL;
    free(text);
    return map;
}

static bool write_tumour(const struct annotation *annotation, const struct slide_truth *truth,
                         const char *path, struct err *err)
{
    double step = (double)truth->info->width_l0 / (double)truth->width;
    struct image mask = { 0 };
    bool ok = annotation_mask(annotation, 0, 0, step, truth->width, truth->height, &mask, err) &&
              picture_write_outline(path, &mask, "#0060ff", err);
    image_free(&mask);
    return ok;
}

static bool write_classes(const struct annotation *annotation, const struct slide_truth *truth,
                          const char *path, struct err *err)
{
    double step = (double)truth->info->width_l0 / (double)truth->width;
    int n = annotation_n_classes(annotation);
    char *names[CLASS_MOST];
    uint8_t colours[CLASS_MOST][3];
    struct image mask = { 0 };
    for (int i = 0; i < n; i++)
        names[i] = (char *)annotation_class_name(annotation, i); /* read only */
    class_colours(names, n, colours);
    bool ok =
        annotation_class_mask(annotation, 0, 0, step, truth->width, truth->height, &mask, err) &&
        picture_write_class_outlines(path, &mask, colours, n, err);
    image_free(&mask);
    return ok;
}

bool slide_truth_write(const struct slide_truth *truth, const char *path, bool *read,
                       struct err *why, struct err *err)
{
    struct class_map *own = truth->class_map ? NULL : map_of_heatmap(truth->info);
    struct annotation *annotation = NULL;
    struct annotation_slide slide = { truth->slide, truth->info->width_l0, truth->info->height_l0 };
    *read =
        annotation_read(truth->annotation, &slide, own ? own : truth->class_map, &annotation, why);
    bool ok = true;
    if (*read)
        ok = annotation_n_classes(annotation) > 2 ? write_classes(annotation, truth, path, err)
                                                  : write_tumour(annotation, truth, path, err);
    annotation_free(annotation);
    class_map_free(own);
    return ok;
}
