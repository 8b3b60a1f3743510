/* phantom_classes.c: see phantom_classes.h. */
#include "phantom/phantom_classes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/class_colour.h"
#include "base/divide.h"
#include "base/file.h"
#include "base/geojson.h"
#include "base/outline.h"
#include "base/rng.h"

enum {
    GRID_STEP_PX = 16,
    GRID_SIDE_MAX = 1024,  /* cells: larger slides are drawn more coarsely, as by hand */
    NEIGHBOURHOOD_PX = 48, /* around a cell, in which most of the tissue must be of its kind */
    LEAST_SIDE_PX = 200    /* of a region, if it were a square */
};

static const double tau = 6.283185307179586;

/* As the structures of the tissue, regions are smaller on very small slides. */
static int64_t scaled_px(const struct phantom_scene *scene, int64_t px)
{
    int64_t small = px * scene->size_px / 4096;
    return small < px ? small : px;
}

static const struct {
    char *name;
    enum phantom_kind kind;
} known[PHANTOM_CLASSES] = {
    { "tumor", KIND_TUMOR },
    { "lymphoid", KIND_LYMPHOID },
    { "stroma", KIND_STROMA },
    { "fat", KIND_FAT },
};

static bool add_class(struct phantom_classes *classes, const char *name, size_t length)
{
    for (int i = 0; i < PHANTOM_CLASSES; i++) {
        if (strlen(known[i].name) != length || strncmp(known[i].name, name, length) != 0)
            continue;
        for (int k = 0; k < classes->n; k++)
            if (classes->kinds[k] == known[i].kind)
                return false;
        classes->names[classes->n] = known[i].name;
        classes->kinds[classes->n++] = known[i].kind;
        return true;
    }
    return false;
}

bool phantom_classes_parse(const char *text, struct phantom_classes *out, struct err *err)
{
    *out = (struct phantom_classes){ 0 };
    if (!text)
        return true;
    bool ok = true;
    for (const char *at = text; ok; at++) {
        size_t length = strcspn(at, ",");
        ok = add_class(out, at, length);
        at += length;
        if (*at == '\0')
            break;
    }
    return (ok && out->n > 1) ||
           err_set(err, ERR_USAGE,
                   "--classes %s: expected two or more of tumor, lymphoid, stroma and fat, "
                   "separated by commas",
                   text);
}

void phantom_classes_text(const struct phantom_classes *classes, const char *between, char *out)
{
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < classes->n; i++)
        used += (size_t)snprintf(out + used, PHANTOM_CLASSES_ROOM - used, "%s%s",
                                 i > 0 ? between : "", classes->names[i]);
}

/* A cell keeps its kind if at least two thirds of what is around it are of the same one. */
static void leave_mixed(const uint8_t *kinds, int64_t n, int64_t reach, uint8_t *out)
{
    for (int64_t y = 0; y < n; y++)
        for (int64_t x = 0; x < n; x++) {
            uint8_t kind = kinds[y * n + x];
            int64_t same = 0, all = 0;
            for (int64_t j = y - reach; kind != KIND_NONE && j <= y + reach; j++)
                for (int64_t i = x - reach; i <= x + reach; i++) {
                    bool inside = i >= 0 && j >= 0 && i < n && j < n;
                    all++;
                    same += inside && kinds[j * n + i] == kind;
                }
            out[y * n + x] = 3 * same >= 2 * all ? kind : KIND_NONE;
        }
}

uint8_t *phantom_classes_grid(const struct phantom_scene *scene, int64_t *n, int64_t *step_px)
{
    int64_t step = GRID_STEP_PX;
    while (ceil_div(scene->size_px, step) > GRID_SIDE_MAX)
        step *= 2;
    int64_t side = ceil_div(scene->size_px, step),
            reach = scaled_px(scene, NEIGHBOURHOOD_PX) / step;
    uint8_t *kinds = malloc((size_t)(side * side)), *clear = malloc((size_t)(side * side));
    for (int64_t i = 0; kinds && clear && i < side * side; i++)
        kinds[i] = (uint8_t)phantom_kind_at(scene, ((float)(i % side) + 0.5f) * (float)step,
                                            ((float)(i / side) + 0.5f) * (float)step, (float)step);
    if (kinds && clear)
        leave_mixed(kinds, side, reach < 1 ? 1 : reach, clear);
    *n = side, *step_px = step;
    if (!kinds)
        free(clear), clear = NULL;
    free(kinds);
    return clear;
}

struct pen {
    struct json_out json;
    const struct phantom_scene *scene;
    char *class_name;
    const uint8_t *colour;
    int64_t step_px;
    uint64_t n;
};

static void begin_region(struct pen *pen)
{
    geojson_feature(&pen->json, rng_hash(pen->scene->name), pen->n++);
}

static void end_region(struct pen *pen)
{
    geojson_properties(&pen->json, "annotation");
    geojson_classification(&pen->json, pen->class_name, pen->colour);
    geojson_close_feature(&pen->json);
}

/* The middles of the edges of cells: corners are cut, and rings that touched at a corner no longer
 * do. */
static void draw_ring(struct pen *pen, const struct outline_point *points, int64_t n)
{
    double step = (double)pen->step_px, first_x = 0, first_y = 0;
    geojson_ring(&pen->json);
    for (int64_t i = 0; i < n; i++) {
        struct outline_point a = points[i], b = points[(i + 1) % n];
        int32_t length = abs(b.x - a.x) + abs(b.y - a.y);
        double dx = (double)(b.x - a.x) / length, dy = (double)(b.y - a.y) / length;
        double x = (a.x + 0.5 * dx) * step, y = (a.y + 0.5 * dy) * step;
        geojson_point(&pen->json, x, y);
        if (i == 0)
            first_x = x, first_y = y;
        if (length > 1)
            geojson_point(&pen->json, (b.x - 0.5 * dx) * step, (b.y - 0.5 * dy) * step);
    }
    geojson_point(&pen->json, first_x, first_y);
    geojson_close_ring(&pen->json);
}

/* In cells. */
static double ring_area(const struct outline_point *points, int64_t n)
{
    double twice = 0;
    for (int64_t i = 0; i < n; i++) {
        struct outline_point a = points[i], b = points[(i + 1) % n];
        twice += (double)a.x * b.y - (double)b.x * a.y;
    }
    return fabs(twice) / 2;
}

static bool draw_piece(void *arg, const struct outline_piece *piece, struct err *err)
{
    (void)err;
    struct pen *pen = arg;
    double side = (double)scaled_px(pen->scene, LEAST_SIDE_PX) / (double)pen->step_px;
    double least = side * side;
    if ((double)piece->n_px < least)
        return true;
    begin_region(pen);
    for (int64_t r = 0; r < piece->n_rings; r++) {
        const struct outline_point *points = piece->points + piece->rings[r].first;
        if (r == 0 || ring_area(points, piece->rings[r].n) >= least / 4)
            draw_ring(pen, points, piece->rings[r].n);
    }
    end_region(pen);
    return true;
}

static bool draw_kind(struct pen *pen, const uint8_t *grid, int64_t n, enum phantom_kind kind,
                      struct err *err)
{
    struct outline_tracer *tracer = NULL;
    uint8_t row[GRID_SIDE_MAX];
    bool ok = outline_tracer_new((int32_t)n, 0, draw_piece, pen, &tracer, err);
    for (int64_t y = 0; ok && y < n; y++) {
        for (int64_t x = 0; x < n; x++)
            row[x] = grid[y * n + x] == kind;
        ok = outline_tracer_row(tracer, row, NULL, err);
    }
    ok = ok && outline_tracer_end(tracer, err);
    outline_tracer_free(tracer);
    return ok;
}

static void draw_curve(struct pen *pen, const struct phantom_curve *curve)
{
    double around_px = tau * (double)(curve->half_long + curve->half_short) / 2, x, y;
    int n = (int)fmin(fmax(around_px / 30, 24), 800);
    geojson_ring(&pen->json);
    for (int i = 0; i <= n; i++) {
        phantom_curve_point(curve, tau * (i % n) / n, &x, &y);
        geojson_point(&pen->json, x, y);
    }
    geojson_close_ring(&pen->json);
}

static void draw_lesions(struct pen *pen)
{
    for (int i = 0; i < pen->scene->n_lesions; i++) {
        const struct phantom_lesion *lesion = &pen->scene->lesions[i];
        begin_region(pen);
        draw_curve(pen, &lesion->outline);
        if (lesion->has_hole)
            draw_curve(pen, &lesion->hole);
        end_region(pen);
    }
}

bool phantom_classes_write(const char *path, const struct phantom_scene *scene,
                           const struct phantom_classes *classes, struct err *err)
{
    uint8_t colours[PHANTOM_CLASSES][3];
    class_colours(classes->names, classes->n, colours);
    struct pen pen = { .scene = scene };
    struct file_out out;
    int64_t n;
    uint8_t *grid = phantom_classes_grid(scene, &n, &pen.step_px);
    if (!grid)
        return err_memory(err, path);
    bool ok = file_out_open(&out, path, err);
    if (ok) {
        geojson_begin(&pen.json, out.stream);
        for (int i = 0; ok && i < classes->n; i++) {
            pen.class_name = classes->names[i], pen.colour = colours[i];
            if (classes->kinds[i] == KIND_TUMOR)
                draw_lesions(&pen);
            else
                ok = draw_kind(&pen, grid, n, classes->kinds[i], err);
        }
        geojson_end(&pen.json);
        if (ok)
            ok = file_out_commit(&out, err);
        else
            file_out_discard(&out);
    }
    free(grid);
    return ok;
}
