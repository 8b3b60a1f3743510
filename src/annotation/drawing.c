/* drawing.c: growing lists of regions, rings and points; the wording of refusals. */
#include "annotation/drawing.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void drawing_free(struct drawing *drawing)
{
    free(drawing->xy);
    free(drawing->rings);
    free(drawing->regions);
    *drawing = (struct drawing){ 0 };
}

/* Makes place for one more item. */
static bool grow(void **items, size_t n, size_t *room, size_t item_bytes, struct err *err)
{
    if (n < *room)
        return true;
    size_t larger = *room ? 2 * *room : 64;
    void *moved = reallocarray(*items, larger, item_bytes);
    if (!moved)
        return err_memory(err, "an annotation");
    *items = moved, *room = larger;
    return true;
}

bool drawing_region(struct drawing *drawing, enum region_class meaning, struct place place,
                    struct err *err)
{
    void *items = drawing->regions;
    bool ok =
        grow(&items, drawing->n_regions, &drawing->room_regions, sizeof *drawing->regions, err);
    drawing->regions = items;
    if (ok)
        drawing->regions[drawing->n_regions++] =
            (struct region){ .meaning = meaning, .place = place, .first = drawing->n_rings };
    return ok;
}

bool drawing_ring(struct drawing *drawing, struct err *err)
{
    void *items = drawing->rings;
    bool ok = grow(&items, drawing->n_rings, &drawing->room_rings, sizeof *drawing->rings, err);
    drawing->rings = items;
    if (ok) {
        drawing->rings[drawing->n_rings++] = (struct ring){ .first = drawing->n_points };
        drawing->regions[drawing->n_regions - 1].n++;
    }
    return ok;
}

bool drawing_point(struct drawing *drawing, double x_l0, double y_l0, struct err *err)
{
    struct place place = drawing->regions[drawing->n_regions - 1].place;
    if (!isfinite(x_l0) || !isfinite(y_l0))
        return drawing_refuse(drawing->path, place, err, "a coordinate is not a number");
    if (fabs(x_l0) > DRAWING_LIMIT_PX || fabs(y_l0) > DRAWING_LIMIT_PX)
        return drawing_refuse(drawing->path, place, err,
                              "the point (%g, %g) is further out than any slide reaches", x_l0,
                              y_l0);
    void *items = drawing->xy;
    bool ok = grow(&items, drawing->n_points, &drawing->room_points, 2 * sizeof *drawing->xy, err);
    drawing->xy = items;
    if (ok) {
        drawing->xy[2 * drawing->n_points] = x_l0;
        drawing->xy[2 * drawing->n_points + 1] = y_l0;
        drawing->n_points++;
        drawing->rings[drawing->n_rings - 1].n++;
    }
    return ok;
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

bool drawing_refuse(const char *path, struct place place, struct err *err, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return err_set(err, ERR_FORMAT, "%s: %s %" PRId64 ": %s", path, place.what, place.number, text);
}
