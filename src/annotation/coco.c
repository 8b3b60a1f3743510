/* coco.c: COCO JSON -> regions.
 * {"images": [{"id", "file_name", "width", "height"}], "categories": [{"id", "name"}],
 * "annotations": [{"image_id", "category_id", "segmentation", "bbox"}]}. The image is the one whose
 * file name, without folder and extension, is the slide's name; coordinates are in its pixels, and
 * scaled if its size is a fraction of the slide's. A segmentation is a list of polygons [x1, y1,
 * x2, y2, ...] or a mask in run lengths; without one the box [x, y, width, height] counts. The
 * class is the name of the category. */
#include "annotation/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "annotation/coco_rle.h"
#include "annotation/json_text.h"
#include "base/file.h"

struct reading {
    struct drawing *drawing;
    const struct annotation_slide *slide;
    const json_t *categories;
    const json_t *image;
    double scale;
    struct file_place place;
    int meaning;
};

static bool claims(const struct parsed_file *file)
{
    return json_is_array(json_object_get(file->json, "images")) &&
           json_is_array(json_object_get(file->json, "annotations"));
}

/* "folder/a.svs" and "a.svs" are both slide a; so is "a". */
static bool names_slide(const json_t *image, const char *slide)
{
    const char *file = json_text_of(image, "file_name"), *base = file;
    for (const char *at = file; *at; at++)
        if (*at == '/' || *at == '\\')
            base = at + 1;
    char *stem = file_stem(base);
    bool same = stem && (!strcmp(stem, slide) || !strcmp(base, slide));
    free(stem);
    return same;
}

static bool refuse_images(const char *path, const json_t *images, const char *slide,
                          struct err *err)
{
    char list[400] = "";
    size_t n = json_array_size(images), used = 0;
    for (size_t i = 0; i < n; i++) {
        const char *name = json_text_of(json_array_get(images, i), "file_name");
        if (used + strlen(name) + 30 > sizeof list) {
            snprintf(list + used, sizeof list - used, " and %zu more", n - i);
            break;
        }
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%s'%s'", i > 0 ? ", " : "", name);
    }
    return err_set(err, ERR_FORMAT,
                   "%s: none of its images is named after the slide '%s'; it has %s%s", path,
                   slide ? slide : "", n > 0 ? list : "no images",
                   slide ? "" : "; which of them is meant is unknown");
}

static bool find_image(const struct parsed_file *file, const json_t **out, struct err *err)
{
    const json_t *images = json_object_get(file->json, "images"), *found = NULL;
    const char *slide = file->slide.name;
    size_t n = json_array_size(images);
    if (!slide && n == 1)
        found = json_array_get(images, 0);
    for (size_t i = 0; slide && i < n; i++) {
        const json_t *image = json_array_get(images, i);
        if (!names_slide(image, slide))
            continue;
        if (found)
            return err_set(err, ERR_FORMAT,
                           "%s: two images are named after the slide '%s': '%s' and '%s'; remove "
                           "one",
                           file->path, slide, json_text_of(found, "file_name"),
                           json_text_of(image, "file_name"));
        found = image;
    }
    if (!found)
        return refuse_images(file->path, images, slide, err);
    *out = found;
    return json_object_get(found, "id") || err_set(err, ERR_FORMAT, "%s: the image '%s' has no id",
                                                   file->path, json_text_of(found, "file_name"));
}

static bool find_scale(const struct parsed_file *file, const json_t *image, double *out,
                       struct err *err)
{
    json_int_t width = json_integer_value(json_object_get(image, "width"));
    json_int_t height = json_integer_value(json_object_get(image, "height"));
    *out = 1;
    if (width <= 0 || height <= 0)
        return true;
    return raster_scale(file->path, width, height, &file->slide, out, err);
}

/* The category's name; its number if the file has no list of categories. */
static bool class_name(const struct reading *reading, const json_t *annotation,
                       char out[DRAWING_NAME], struct err *err)
{
    const json_t *id = json_object_get(annotation, "category_id");
    for (size_t i = 0; i < json_array_size(reading->categories); i++) {
        const json_t *category = json_array_get(reading->categories, i);
        if (!json_equal(json_object_get(category, "id"), id))
            continue;
        snprintf(out, DRAWING_NAME, "%s", json_text_of(category, "name"));
        return true;
    }
    snprintf(out, DRAWING_NAME, "%s", json_is_string(id) ? json_string_value(id) : "");
    if (json_is_integer(id))
        snprintf(out, DRAWING_NAME, "%" JSON_INTEGER_FORMAT, json_integer_value(id));
    return !id || !json_array_size(reading->categories) ||
           drawing_refuse(reading->drawing->path, reading->place, err,
                          "category_id %s is not in the list of categories", *out ? out : "?");
}

static bool add_point(const struct reading *reading, double x, double y, struct err *err)
{
    return drawing_point(reading->drawing, x * reading->scale, y * reading->scale, err);
}

static bool begin_polygon(const struct reading *reading, struct err *err)
{
    return drawing_region(reading->drawing, reading->meaning, reading->place, err) &&
           drawing_ring(reading->drawing, err);
}

static bool read_polygon(const struct reading *reading, const json_t *numbers, struct err *err)
{
    size_t n = json_array_size(numbers);
    if (n < 6 || n % 2 != 0)
        return drawing_refuse(reading->drawing->path, reading->place, err,
                              "a polygon of the segmentation is not [x1, y1, x2, y2, x3, y3, ...]");
    if (!begin_polygon(reading, err))
        return false;
    for (size_t i = 0; i < n; i += 2) {
        const json_t *x = json_array_get(numbers, i), *y = json_array_get(numbers, i + 1);
        if (!json_is_number(x) || !json_is_number(y))
            return drawing_refuse(reading->drawing->path, reading->place, err,
                                  "coordinates %zu and %zu of a polygon are not numbers", i + 1,
                                  i + 2);
        if (!add_point(reading, json_number_value(x), json_number_value(y), err))
            return false;
    }
    return true;
}

static bool read_box(const struct reading *reading, const json_t *box, struct err *err)
{
    double x = json_number_value(json_array_get(box, 0));
    double y = json_number_value(json_array_get(box, 1));
    double width = json_number_value(json_array_get(box, 2));
    double height = json_number_value(json_array_get(box, 3));
    if (json_array_size(box) != 4 || !(width > 0) || !(height > 0))
        return drawing_refuse(reading->drawing->path, reading->place, err,
                              "the bbox is not [x, y, width, height]");
    return begin_polygon(reading, err) && add_point(reading, x, y, err) &&
           add_point(reading, x + width, y, err) &&
           add_point(reading, x + width, y + height, err) && add_point(reading, x, y + height, err);
}

/* The mask has the size of the image, or tells it. */
static bool read_mask(const struct reading *reading, const json_t *rle, struct err *err)
{
    struct raster_shape shape = { .drawing = reading->drawing,
                                  .meaning = reading->meaning,
                                  .place = reading->place,
                                  .scale = reading->scale };
    json_int_t width = json_integer_value(json_object_get(reading->image, "width"));
    json_int_t height = json_integer_value(json_object_get(reading->image, "height"));
    int64_t mask_width, mask_height;
    bool any = false;
    if (width > 0 && height > 0 && coco_rle_size(rle, &mask_width, &mask_height) &&
        (mask_width != width || mask_height != height))
        return drawing_refuse(reading->drawing->path, reading->place, err,
                              "the mask is %lld x %lld px, but the image is %lld x %lld px",
                              (long long)mask_width, (long long)mask_height, (long long)width,
                              (long long)height);
    if ((width <= 0 || height <= 0) && coco_rle_size(rle, &mask_width, &mask_height) &&
        !raster_scale(reading->drawing->path, mask_width, mask_height, reading->slide, &shape.scale,
                      err))
        return false;
    if (!coco_rle_read(rle, &shape, &any, err))
        return false;
    if (!any)
        drawing_ignore(reading->drawing, "mask without pixels");
    return true;
}

static bool read_area(const struct reading *reading, const json_t *annotation, struct err *err)
{
    const json_t *segmentation = json_object_get(annotation, "segmentation");
    if (json_is_object(segmentation))
        return read_mask(reading, segmentation, err);
    if (json_array_size(segmentation) == 0)
        return read_box(reading, json_object_get(annotation, "bbox"), err);
    if (json_is_number(json_array_get(segmentation, 0)))
        return read_polygon(reading, segmentation, err);
    for (size_t i = 0; i < json_array_size(segmentation); i++)
        if (!read_polygon(reading, json_array_get(segmentation, i), err))
            return false;
    return true;
}

static bool has_area(const json_t *annotation)
{
    const json_t *segmentation = json_object_get(annotation, "segmentation");
    return json_is_object(segmentation) || json_array_size(segmentation) > 0 ||
           json_array_size(json_object_get(annotation, "bbox")) > 0;
}

static bool read_annotation(struct reading *reading, const json_t *annotation, struct err *err)
{
    char name[DRAWING_NAME];
    const json_t *image_id = json_object_get(annotation, "image_id");
    if (!image_id)
        return drawing_refuse(reading->drawing->path, reading->place, err, "has no image_id");
    if (!json_equal(image_id, json_object_get(reading->image, "id")))
        return true;
    if (!has_area(annotation)) {
        drawing_ignore(reading->drawing, "annotation without segmentation and bbox");
        return true;
    }
    if (!class_name(reading, annotation, name, err))
        return false;
    reading->meaning = drawing_class(reading->drawing, name);
    return !region_counts(reading->meaning) || read_area(reading, annotation, err);
}

static bool read_coco(const struct parsed_file *file, struct drawing *drawing, struct err *err)
{
    struct reading reading = { .drawing = drawing,
                               .slide = &file->slide,
                               .categories = json_object_get(file->json, "categories") };
    const json_t *annotations = json_object_get(file->json, "annotations");
    if (!find_image(file, &reading.image, err) ||
        !find_scale(file, reading.image, &reading.scale, err))
        return false;
    for (size_t i = 0; i < json_array_size(annotations); i++) {
        reading.place = (struct file_place){ "annotation", (int64_t)i + 1 };
        if (!read_annotation(&reading, json_array_get(annotations, i), err))
            return false;
    }
    return true;
}

const struct format format_coco = { "COCO", claims, read_coco };
