/* drawing.c: growing lists of regions, rings and points; error messages. */
#include "annotation/drawing.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/array.h"

void drawing_free(struct drawing *drawing)
{
    free(drawing->xy);
    free(drawing->rings);
    free(drawing->regions);
    *drawing = (struct drawing){ 0 };
}

/* Makes room for one more item. */
static bool grow(void *items, size_t n, int64_t *room, size_t item_bytes, struct err *err)
{
    return array_grow(items, room, (int64_t)n + 1, item_bytes, "an annotation", err);
}

bool drawing_region(struct drawing *drawing, int meaning, struct file_place place, struct err *err)
{
    bool ok = grow(&drawing->regions, drawing->n_regions, &drawing->room_regions,
                   sizeof *drawing->regions, err);
    if (ok)
        drawing->regions[drawing->n_regions++] =
            (struct region){ .meaning = meaning, .place = place, .first = drawing->n_rings };
    return ok;
}

bool drawing_ring(struct drawing *drawing, struct err *err)
{
    bool ok =
        grow(&drawing->rings, drawing->n_rings, &drawing->room_rings, sizeof *drawing->rings, err);
    if (ok) {
        drawing->rings[drawing->n_rings++] = (struct drawn_ring){ .first = drawing->n_points };
        drawing->regions[drawing->n_regions - 1].n++;
    }
    return ok;
}

bool drawing_point(struct drawing *drawing, double x_l0, double y_l0, struct err *err)
{
    struct file_place place = drawing->regions[drawing->n_regions - 1].place;
    if (!isfinite(x_l0) || !isfinite(y_l0))
        return drawing_refuse(drawing->path, place, err, "a coordinate is not a number");
    if (fabs(x_l0) > DRAWING_LIMIT_PX || fabs(y_l0) > DRAWING_LIMIT_PX)
        return drawing_refuse(drawing->path, place, err,
                              "the point (%g, %g) is beyond the extent of any slide", x_l0, y_l0);
    bool ok =
        grow(&drawing->xy, drawing->n_points, &drawing->room_points, 2 * sizeof *drawing->xy, err);
    if (ok) {
        drawing->xy[2 * drawing->n_points] = x_l0;
        drawing->xy[2 * drawing->n_points + 1] = y_l0;
        drawing->n_points++;
        drawing->rings[drawing->n_rings - 1].n++;
    }
    return ok;
}

void drawing_count_class(struct drawing *drawing, int meaning, const char *name)
{
    bool none = class_is_none(name);
    if (meaning == REGION_UNKNOWN)
        unknown_classes_add(&drawing->unknown, name, 1);
    drawing->left_out += meaning == REGION_IGNORED;
    drawing->without_class += meaning >= 0 && none;
    drawing->named += meaning >= 0 && !none;
}

int drawing_class(struct drawing *drawing, const char *name)
{
    int meaning = class_meaning(drawing->map, name);
    drawing_count_class(drawing, meaning, name);
    return meaning;
}

bool drawing_check(struct drawing *drawing, struct err *err)
{
    if (drawing->without_class > 0 && drawing->named > 0 && !class_map_has_none(drawing->map))
        unknown_classes_add(&drawing->unknown, "", drawing->without_class);
    if (drawing->unknown.n > 0)
        return unknown_classes_refuse(&drawing->unknown, drawing->map, drawing->path, err);
    if (drawing->n_regions == 0 && drawing->ignored > 0 && !drawing->left_out)
        return err_set(err, ERR_FORMAT,
                       "%s: contains no area (objects drawn: %" PRId64
                       ", the first is '%s'); export annotations that are areas, or remove the "
                       "file",
                       drawing->path, drawing->ignored, drawing->ignored_name);
    return true;
}

void drawing_ignore(struct drawing *drawing, const char *name)
{
    if (drawing->ignored++ > 0)
        return;
    size_t n = 0;
    for (; name[n] && n + 1 < sizeof drawing->ignored_name; n++) /* shown on a terminal */
        drawing->ignored_name[n] = (unsigned char)name[n] < ' ' || name[n] == 127 ? '?' : name[n];
    drawing->ignored_name[n] = 0;
}

bool drawing_refuse(const char *path, struct file_place place, struct err *err, const char *format,
                    ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!place.what)
        return err_set(err, ERR_FORMAT, "%s:%" PRId64 ": %s", path, place.number, text);
    return err_set(err, ERR_FORMAT, "%s: %s %" PRId64 ": %s", path, place.what, place.number, text);
}
