/* outlines.c: see outlines.h. */
#include "nuclei/outlines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"

#define MOST_NUCLEI ((int64_t)1 << 30)
/* An edge this near to the centre of a pixel runs through it: rounding, which depends on where the
 * window begins, must not decide. */
#define TIE_PX 1e-6

void outlines_free(struct nuclei_outlines *o)
{
    for (int64_t i = 0; i < o->n_kinds; i++)
        free(o->kinds[i]);
    free(o->xy), free(o->rings), free(o->items), free(o->kinds), free(o->by_top);
    *o = (struct nuclei_outlines){ 0 };
}

bool outlines_add(struct nuclei_outlines *o, bool annotation, struct err *err)
{
    if (o->n == MOST_NUCLEI)
        return err_set(err, ERR_FORMAT, "more than %lld nuclei", (long long)MOST_NUCLEI);
    if (!array_grow(&o->items, &o->room, o->n + 1, sizeof *o->items, "the outlines", err))
        return false;
    o->items[o->n++] = (struct nucleus_outline){ .first = o->n_rings,
                                                 .x0 = INFINITY,
                                                 .y0 = INFINITY,
                                                 .x1 = -INFINITY,
                                                 .y1 = -INFINITY,
                                                 .kind = -1,
                                                 .annotation = annotation };
    return true;
}

bool outlines_ring(struct nuclei_outlines *o, struct err *err)
{
    if (!array_grow(&o->rings, &o->room_rings, o->n_rings + 1, sizeof *o->rings, "the outlines",
                    err))
        return false;
    o->rings[o->n_rings++] = (struct nucleus_ring){ .first = o->n_points };
    o->items[o->n - 1].n++;
    return true;
}

bool outlines_point(struct nuclei_outlines *o, double x, double y, struct err *err)
{
    if (!array_grow(&o->xy, &o->room_points, o->n_points + 1, 2 * sizeof *o->xy, "the outlines",
                    err))
        return false;
    o->xy[2 * o->n_points] = (float)x, o->xy[2 * o->n_points + 1] = (float)y;
    o->n_points++;
    o->rings[o->n_rings - 1].n++;
    return true;
}

bool outlines_kind(struct nuclei_outlines *o, const char *name, size_t length, struct err *err)
{
    int64_t k = 0;
    while (k < o->n_kinds &&
           (strlen(o->kinds[k]) != length || memcmp(o->kinds[k], name, length) != 0))
        k++;
    if (k == 1024)
        return true; /* these are not classes; the nucleus remains without one */
    if (k == o->n_kinds) {
        if (!array_grow(&o->kinds, &o->room_kinds, k + 1, sizeof *o->kinds, "the classes", err))
            return false;
        o->kinds[k] = strndup(name, length);
        if (!o->kinds[k])
            return err_memory(err, "the classes");
        for (char *c = o->kinds[k]; *c; c++) /* shown in tables and on a terminal */
            *c = (unsigned char)*c < ' ' || *c == 127 ? '?' : *c;
        o->n_kinds++;
    }
    o->items[o->n - 1].kind = (int32_t)k;
    return true;
}

void outlines_undo(struct nuclei_outlines *o)
{
    const struct nucleus_outline *last = &o->items[o->n - 1];
    if (last->n > 0)
        o->n_points = o->rings[last->first].first;
    o->n_rings = last->first;
    o->n--;
}

static void find_box(struct nuclei_outlines *o, struct nucleus_outline *item)
{
    for (int64_t r = item->first; r < item->first + item->n; r++)
        for (int64_t i = o->rings[r].first; i < o->rings[r].first + o->rings[r].n; i++) {
            item->x0 = fminf(item->x0, o->xy[2 * i]), item->x1 = fmaxf(item->x1, o->xy[2 * i]);
            item->y0 = fminf(item->y0, o->xy[2 * i + 1]);
            item->y1 = fmaxf(item->y1, o->xy[2 * i + 1]);
        }
}

static int compare_tops(const void *a, const void *b, void *arg)
{
    const struct nucleus_outline *items = arg;
    int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    if (items[i].y0 != items[j].y0)
        return items[i].y0 < items[j].y0 ? -1 : 1;
    return i < j ? -1 : i > j;
}

/* Annotations beside detections are regions that somebody drew. */
static void drop_annotations(struct nuclei_outlines *o)
{
    int64_t detections = 0, kept = 0;
    for (int64_t i = 0; i < o->n; i++)
        detections += !o->items[i].annotation;
    for (int64_t i = 0; i < o->n; i++)
        if (detections == 0 || !o->items[i].annotation)
            o->items[kept++] = o->items[i];
    o->n = kept;
}

bool outlines_index(struct nuclei_outlines *o, double factor, struct err *err)
{
    drop_annotations(o);
    o->pixel_l0 = factor;
    for (int64_t i = 0; i < 2 * o->n_points; i++)
        o->xy[i] = (float)((o->xy[i] + (o->centres ? 0.5 : 0)) * factor);
    o->by_top = malloc((size_t)(o->n + 1) * sizeof *o->by_top);
    if (!o->by_top)
        return err_memory(err, "the outlines");
    for (int64_t i = 0; i < o->n; i++) {
        find_box(o, &o->items[i]);
        o->tallest = fmaxf(o->tallest, o->items[i].y1 - o->items[i].y0);
        o->by_top[i] = i;
    }
    qsort_r(o->by_top, (size_t)o->n, sizeof *o->by_top, compare_tops, o->items);
    return true;
}

/* A window while it is drawn. */
struct drawing_window {
    double x_l0, y_l0, step_l0;
    int64_t width, height;
    int32_t *px;
    double *crossings; /* [room] */
    int64_t room;
};

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Where the rings cross a height, in order. A point on a left or top edge is inside. */
static bool find_crossings(const struct nuclei_outlines *o, const struct nucleus_outline *item,
                           double y, struct drawing_window *w, int64_t *n, struct err *err)
{
    *n = 0;
    for (int64_t r = item->first; r < item->first + item->n; r++) {
        const struct nucleus_ring *ring = &o->rings[r];
        const float *xy = o->xy + 2 * ring->first;
        for (int64_t i = 0; i < ring->n; i++) {
            int64_t j = i + 1 < ring->n ? i + 1 : 0;
            double ax = xy[2 * i], ay = xy[2 * i + 1], bx = xy[2 * j], by = xy[2 * j + 1];
            if ((ay <= y) == (by <= y))
                continue;
            if (!array_grow(&w->crossings, &w->room, *n + 1, sizeof *w->crossings, "the outlines",
                            err))
                return false;
            w->crossings[(*n)++] = ax + (y - ay) / (by - ay) * (bx - ax);
        }
    }
    if (*n > 1)
        qsort(w->crossings, (size_t)*n, sizeof *w->crossings, ascending);
    return true;
}

/* The first pixel of a row or column whose centre is at or beyond a position, within 0 to end. */
static int64_t first_px(double at_l0, double origin_l0, double step_l0, int64_t end)
{
    double px = ceil((at_l0 - origin_l0) / step_l0 - 0.5 - TIE_PX);
    return px < 0 ? 0 : px > (double)end ? end : (int64_t)px;
}

/* The pixels that a contour runs through: one step for each pixel of the image it was found in. */
static void draw_contour(const struct nuclei_outlines *o, const struct nucleus_outline *item,
                         int32_t label, struct drawing_window *w)
{
    for (int64_t r = item->first; r < item->first + item->n; r++) {
        const struct nucleus_ring *ring = &o->rings[r];
        const float *xy = o->xy + 2 * ring->first;
        for (int64_t i = 0; i < ring->n; i++) {
            int64_t j = i + 1 < ring->n ? i + 1 : 0;
            double ax = xy[2 * i], ay = xy[2 * i + 1], dx = xy[2 * j] - ax, dy = xy[2 * j + 1] - ay;
            double steps = fmin(fmax(fabs(dx), fabs(dy)) / o->pixel_l0 + 0.5, 1e5);
            for (int64_t k = 0; k < (int64_t)steps; k++) {
                double share = (double)k / floor(steps);
                double x = floor((ax + share * dx - w->x_l0) / w->step_l0 + TIE_PX);
                double y = floor((ay + share * dy - w->y_l0) / w->step_l0 + TIE_PX);
                if (x >= 0 && y >= 0 && x < (double)w->width && y < (double)w->height)
                    w->px[(int64_t)y * w->width + (int64_t)x] = label;
            }
        }
    }
}

static bool draw_item(const struct nuclei_outlines *o, int64_t index, struct drawing_window *w,
                      struct err *err)
{
    const struct nucleus_outline *item = &o->items[index];
    int64_t top = first_px(item->y0, w->y_l0, w->step_l0, w->height);
    int64_t bottom = first_px(item->y1, w->y_l0, w->step_l0, w->height);
    int32_t label = (int32_t)(index + 1);
    for (int64_t row = top; row < bottom; row++) {
        double y = w->y_l0 + ((double)row + 0.5) * w->step_l0;
        int64_t n = 0;
        if (!find_crossings(o, item, y, w, &n, err))
            return false;
        for (int64_t k = 0; k + 1 < n; k += 2) {
            int64_t from = first_px(w->crossings[k], w->x_l0, w->step_l0, w->width);
            int64_t to = first_px(w->crossings[k + 1], w->x_l0, w->step_l0, w->width);
            for (int64_t x = from; x < to; x++)
                w->px[row * w->width + x] = label;
        }
    }
    if (o->centres)
        draw_contour(o, item, label, w);
    return true;
}

static int compare_numbers(const void *a, const void *b)
{
    int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    return i < j ? -1 : i > j;
}

/* The first place in by_top whose item begins at or below y. */
static int64_t first_at(const struct nuclei_outlines *o, double y)
{
    int64_t low = 0, high = o->n;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (o->items[o->by_top[middle]].y0 < y)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool outlines_draw(const struct nuclei_outlines *o, double x_l0, double y_l0, double step_l0,
                   int64_t width, int64_t height, int32_t *px, struct err *err)
{
    struct drawing_window w = { x_l0, y_l0, step_l0, width, height, px, NULL, 0 };
    double right = x_l0 + (double)width * step_l0, bottom = y_l0 + (double)height * step_l0;
    double room = o->centres ? o->pixel_l0 : 0;
    int64_t *near = NULL, n = 0, room_near = 0;
    bool ok = true;
    for (int64_t k = first_at(o, y_l0 - o->tallest - room - 1);
         ok && k < o->n && o->items[o->by_top[k]].y0 <= bottom + room; k++) {
        const struct nucleus_outline *item = &o->items[o->by_top[k]];
        if (item->x1 < x_l0 - room || item->x0 > right + room || item->y1 < y_l0 - room)
            continue;
        ok = array_grow(&near, &room_near, n + 1, sizeof *near, "the outlines", err);
        if (ok)
            near[n++] = o->by_top[k];
    }
    if (n > 1)
        qsort(near, (size_t)n, sizeof *near, compare_numbers); /* the order of the file */
    for (int64_t k = 0; ok && k < n; k++)
        ok = draw_item(o, near[k], &w, err);
    free(near), free(w.crossings);
    return ok;
}
