/* annotation.c: a file -> its format by content -> regions -> shapes -> answers. */
#include "annotation/annotation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "annotation/drawing.h"
#include "annotation/format.h"
#include "annotation/json_text.h"
#include "annotation/layers.h"
#include "annotation/tangle.h"
#include "base/xml.h"
#include "base/file.h"
#include "base/text.h"

#define MAX_BYTES ((size_t)256 << 20)

struct annotation {
    const struct format *format;
    struct layers layers;
    char *names[CLASS_MOST]; /* of the classes */
    int n_classes, positive, unlabelled;
    int64_t ignored;
    char ignored_name[DRAWING_NAME];
};

/* In the order in which they are tried. */
static const struct format *const formats[] = { &format_asap,    &format_halo, &format_imagescope,
                                                &format_geojson, &format_ncrf, &format_coco,
                                                &format_labels };

/* XML begins with "<", or is UTF-16. */
static bool looks_like_xml(const char *text, size_t size)
{
    return size > 1 &&
           (text[0] == '<' || !memcmp(text, "\xff\xfe", 2) || !memcmp(text, "\xfe\xff", 2) ||
            !memcmp(text, "<\0", 2) || !memcmp(text, "\0<", 2));
}

static const struct format *find_format(const struct parsed_file *file, struct err *err)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i]->claims(file))
            return formats[i];
    if (file->json)
        err_set(err, ERR_FORMAT,
                "%s: this JSON is not an annotation: it has neither GeoJSON features (QuPath), nor "
                "\"images\" and \"annotations\" (COCO), nor \"positive\" and \"negative\" regions "
                "(NCRF)",
                file->path);
    else
        err_set(
            err, ERR_FORMAT,
            "%s: this XML is not an annotation: its root is <%s>, not <ASAP_Annotations> (ASAP) or "
            "<Annotations> (ImageScope, HALO)",
            file->path, file->xml_root);
    return NULL;
}

/* jansson does not support it. */
static void skip_byte_order_mark(struct parsed_file *file)
{
    if (file->size >= 3 && !memcmp(file->text, "\xef\xbb\xbf", 3))
        file->text += 3, file->size -= 3;
}

static bool read_drawing(struct parsed_file *file, struct drawing *drawing,
                         const struct format **format, struct err *err)
{
    skip_byte_order_mark(file);
    const char *first = file->text;
    const char *end = file->text + file->size;
    while (first < end && strchr(" \t\r\n", *first) && *first)
        first++;
    if (first == end)
        return err_set(err, ERR_FORMAT, "%s: the file is empty", file->path);
    json_t *json = NULL;
    bool ok = false;
    if (looks_like_xml(first, (size_t)(end - first)))
        ok = xml_root(file->text, file->size, file->path, file->xml_root, sizeof file->xml_root,
                      err);
    else if (*first == '{' || *first == '[')
        ok = json_text_parse(file->text, file->size, file->path, &json, err);
    else if (format_labels.claims(file))
        ok = true;
    else
        err_set(err, ERR_FORMAT,
                "%s: not an annotation: neither XML (ASAP, ImageScope, HALO), nor JSON (QuPath, "
                "COCO, NCRF), nor a PNG (label image)",
                file->path);
    file->json = json;
    *format = ok ? find_format(file, err) : NULL;
    ok = *format && (*format)->read(file, drawing, err);
    json_decref(json);
    return ok;
}

/* The map may be gone before the annotation is. */
static bool copy_classes(struct annotation *annotation, const struct class_map *map,
                         struct err *err)
{
    annotation->positive = class_map_positive(map);
    annotation->unlabelled = class_map_unlabelled(map);
    for (; annotation->n_classes < class_map_n(map); annotation->n_classes++) {
        char *name = strdup(class_map_class(map, annotation->n_classes));
        if (!name)
            return err_memory(err, "an annotation");
        annotation->names[annotation->n_classes] = name;
    }
    return true;
}

bool annotation_parse(const char *text, size_t size, const char *path,
                      const struct annotation_slide *slide, const struct class_map *map,
                      struct annotation **out, struct err *err)
{
    struct parsed_file file = { .path = path, .text = text, .size = size };
    if (slide)
        file.slide = *slide;
    struct drawing drawing = { .path = path, .map = map };
    struct annotation *made = calloc(1, sizeof *made);
    bool ok = false;
    if (!made) {
        err_memory(err, path);
        goto done;
    }
    if (!read_drawing(&file, &drawing, &made->format, err) || !drawing_check(&drawing, err) ||
        !tangle_check(&drawing, err) || !copy_classes(made, map, err) ||
        !layers_new(&made->layers, &drawing, err))
        goto done;
    made->ignored = drawing.ignored;
    memcpy(made->ignored_name, drawing.ignored_name, sizeof made->ignored_name);
    *out = made, made = NULL, ok = true;
done:
    annotation_free(made);
    drawing_free(&drawing);
    return ok;
}

/* Adds the classes of one file that have no known meaning; an unreadable file adds none. */
static void look_at_classes(const struct annotation_file *from, const struct class_map *map,
                            struct unknown_classes *unknown)
{
    struct parsed_file file = { .path = from->path,
                                .slide = { .name = from->slide },
                                .classes_only = true };
    struct drawing drawing = { .path = from->path, .map = map };
    const struct format *format = NULL;
    char *text = NULL;
    if (file_read(from->path, MAX_BYTES, &text, &file.size, NULL)) {
        file.text = text;
        if (read_drawing(&file, &drawing, &format, NULL))
            drawing_check(&drawing, NULL);
        unknown_classes_join(unknown, &drawing.unknown);
    }
    free(text);
    drawing_free(&drawing);
}

bool annotation_check_classes(const struct annotation_file *from, size_t n,
                              const struct class_map *map, struct err *err)
{
    struct unknown_classes unknown = { 0 };
    const char *first = NULL;
    size_t files = 0;
    for (size_t i = 0; i < n; i++) {
        struct unknown_classes one = { 0 };
        look_at_classes(&from[i], map, &one);
        unknown_classes_join(&unknown, &one);
        files += one.n > 0;
        first = one.n > 0 && !first ? from[i].path : first;
    }
    if (files == 0)
        return true;
    char *where = files > 1 ? text_format("%s and %zu more", first, files - 1) : strdup(first);
    unknown_classes_refuse(&unknown, map, where ? where : first, err);
    free(where);
    return false;
}

bool annotation_names_slides(const char *path)
{
    struct parsed_file file = { .path = path };
    char *text = NULL;
    json_t *json = NULL;
    if (!file_read(path, MAX_BYTES, &text, &file.size, NULL))
        return false;
    file.text = text;
    skip_byte_order_mark(&file);
    bool many = json_text_parse(file.text, file.size, path, &json, NULL);
    file.json = json;
    many = many && format_coco.claims(&file);
    json_decref(json);
    free(text);
    return many;
}

bool annotation_read(const char *path, const struct annotation_slide *slide,
                     const struct class_map *map, struct annotation **out, struct err *err)
{
    char *text = NULL;
    size_t size = 0;
    if (!file_read(path, MAX_BYTES, &text, &size, err))
        return false;
    bool ok = annotation_parse(text, size, path, slide, map, out, err);
    free(text);
    return ok;
}

void annotation_free(struct annotation *annotation)
{
    if (!annotation)
        return;
    layers_free(&annotation->layers);
    for (int i = 0; i < annotation->n_classes; i++)
        free(annotation->names[i]);
    free(annotation);
}

const char *annotation_format(const struct annotation *annotation)
{
    return annotation->format->name;
}

/* The shape of layer i, or NULL if it is not one of a class. */
static const struct merged_region *class_shape(const struct annotation *annotation, int i)
{
    const struct layer *layer = &annotation->layers.items[i];
    return layer->label == LAYER_EXCLUDED ? NULL : &layer->shape;
}

int64_t annotation_regions(const struct annotation *annotation)
{
    int64_t n = 0;
    for (int i = 0; i < annotation->layers.n; i++)
        n += class_shape(annotation, i) ? class_shape(annotation, i)->polygons : 0;
    return n;
}

int64_t annotation_repaired(const struct annotation *annotation)
{
    return annotation->layers.repaired;
}

int64_t annotation_ignored(const struct annotation *annotation, const char **first_name)
{
    if (first_name)
        *first_name = annotation->ignored_name;
    return annotation->ignored;
}

double annotation_area_px(const struct annotation *annotation)
{
    double area = 0;
    for (int i = 0; i < annotation->layers.n; i++)
        area += class_shape(annotation, i) ? class_shape(annotation, i)->area_px : 0;
    return area;
}

bool annotation_bounds(const struct annotation *annotation, double *x0, double *y0, double *x1,
                       double *y1)
{
    bool any = false;
    for (int i = 0; i < annotation->layers.n; i++) {
        const struct merged_region *shape = class_shape(annotation, i);
        if (!shape || shape->polygons == 0)
            continue;
        *x0 = any ? fmin(*x0, shape->x0) : shape->x0;
        *y0 = any ? fmin(*y0, shape->y0) : shape->y0;
        *x1 = any ? fmax(*x1, shape->x1) : shape->x1;
        *y1 = any ? fmax(*y1, shape->y1) : shape->y1;
        any = true;
    }
    return any;
}

bool annotation_class_bounds(const struct annotation *annotation, int place, double *x0, double *y0,
                             double *x1, double *y1)
{
    for (int i = 0; i < annotation->layers.n; i++) {
        const struct merged_region *shape = &annotation->layers.items[i].shape;
        if (annotation->layers.items[i].label != place || shape->polygons == 0)
            continue;
        *x0 = shape->x0, *y0 = shape->y0, *x1 = shape->x1, *y1 = shape->y1;
        return true;
    }
    return false;
}

int annotation_n_classes(const struct annotation *annotation)
{
    return annotation->n_classes;
}

const char *annotation_class_name(const struct annotation *annotation, int place)
{
    return annotation->names[place];
}

int annotation_positive(const struct annotation *annotation)
{
    return annotation->positive;
}

int annotation_unlabelled(const struct annotation *annotation)
{
    return annotation->unlabelled;
}

int annotation_class_at(const struct annotation *annotation, double x_l0, double y_l0)
{
    int label = layers_at(&annotation->layers, x_l0, y_l0);
    return label == LAYER_NONE       ? ANNOTATION_UNDRAWN
           : label == LAYER_EXCLUDED ? ANNOTATION_EXCLUDED
                                     : label;
}

bool annotation_contains(const struct annotation *annotation, double x_l0, double y_l0)
{
    return layers_at(&annotation->layers, x_l0, y_l0) == annotation->positive;
}

static bool window_is_sound(const struct window *window)
{
    return isfinite(window->x_l0) && isfinite(window->y_l0) && isfinite(window->step_l0) &&
           window->step_l0 > 0 && window->width > 0 && window->height > 0;
}

static bool new_mask(const struct window *window, struct image *out, struct err *err)
{
    struct image mask;
    if (!window_is_sound(window))
        return err_set(err, ERR_USAGE, "a mask needs a size and a step above 0");
    if (!image_new(&mask, window->width, window->height, 1, err))
        return false;
    *out = mask;
    return true;
}

bool annotation_class_mask(const struct annotation *annotation, double x_l0, double y_l0,
                           double step_l0, int64_t width, int64_t height, struct image *out,
                           struct err *err)
{
    struct window window = { x_l0, y_l0, step_l0, width, height, 0, 0 };
    if (!new_mask(&window, out, err))
        return false;
    layers_fill(&annotation->layers, &window, out->px);
    return true;
}

bool annotation_mask(const struct annotation *annotation, double x_l0, double y_l0, double step_l0,
                     int64_t width, int64_t height, struct image *out, struct err *err)
{
    struct window window = { x_l0, y_l0, step_l0, width, height, 0, 0 };
    const struct layers *layers = &annotation->layers;
    if (!new_mask(&window, out, err))
        return false;
    if (layers->n == 1 && layers->items[0].label == annotation->positive) {
        scan_fill(&layers->items[0].scan, &window, out->px);
        return true;
    }
    layers_fill(layers, &window, out->px);
    for (int64_t i = 0; i < width * height; i++)
        out->px[i] = out->px[i] == annotation->positive ? 255 : 0;
    return true;
}

int64_t annotation_class_counts(const struct annotation *annotation, double x_l0, double y_l0,
                                double step_l0, int64_t width, int64_t height, int64_t *counts)
{
    struct window window = { x_l0, y_l0, step_l0, width, height, 0, 0 };
    memset(counts, 0, (size_t)annotation->n_classes * sizeof *counts);
    return window_is_sound(&window)
               ? layers_count(&annotation->layers, &window, annotation->n_classes, counts)
               : 0;
}

int64_t annotation_count(const struct annotation *annotation, double x_l0, double y_l0,
                         double step_l0, int64_t width, int64_t height)
{
    int64_t counts[CLASS_MOST];
    annotation_class_counts(annotation, x_l0, y_l0, step_l0, width, height, counts);
    return counts[annotation->positive];
}
