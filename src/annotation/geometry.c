/* geometry.c: regions as drawn -> one valid shape, with GEOS: check, repair, union, difference. */
#include "annotation/geometry.h"

#include <math.h>
#include <geos_c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"

/* Smaller coordinates become 0: this keeps the products in orient.c from underflowing. */
#define TINY_PX 0x1p-400

struct merger {
    GEOSContextHandle_t geos;
    const struct drawing *drawing;
    char complaint[256]; /* the last message from GEOS */
};

static void on_geos_error(const char *message, void *user)
{
    struct merger *merger = user;
    snprintf(merger->complaint, sizeof merger->complaint, "%s", message);
}

static bool geos_failed(const struct merger *merger, const char *what, struct err *err)
{
    return err_set(err, ERR_FORMAT, "%s: the regions cannot be %s: %s", merger->drawing->path, what,
                   merger->complaint[0] ? merger->complaint : "GEOS gave no reason");
}

static bool refuse(const struct merger *merger, const struct region *region, const char *fact,
                   struct err *err)
{
    return drawing_refuse(merger->drawing->path, region->place, err,
                          "%s; correct or remove it in the program used to draw it", fact);
}

/* Points of a ring without repeats, closed: [*n, 2], owned by the caller. NULL and *err set if
 * fewer than three are distinct. */
static double *closed_ring(const struct merger *merger, const struct region *region,
                           const struct drawn_ring *ring, size_t *n, struct err *err)
{
    if (ring->n < 3) {
        refuse(merger, region, "a polygon has fewer than 3 distinct points", err);
        return NULL;
    }
    const double *from = merger->drawing->xy + 2 * ring->first;
    double *to = calloc(ring->n + 1, 2 * sizeof *to);
    if (!to) {
        err_memory(err, "an annotation");
        return NULL;
    }
    size_t kept = 0, others = 0;
    const double *second = NULL; /* the first point that is not the first */
    for (size_t i = 0; i < ring->n; i++, from += 2) {
        if (kept > 0 && to[2 * kept - 2] == from[0] && to[2 * kept - 1] == from[1])
            continue;
        to[2 * kept] = from[0], to[2 * kept + 1] = from[1];
        kept++;
        if (from[0] == to[0] && from[1] == to[1])
            continue;
        if (!second)
            second = from;
        else if (from[0] != second[0] || from[1] != second[1])
            others++;
    }
    if (others == 0) {
        refuse(merger, region, "a polygon has fewer than 3 distinct points", err);
        free(to);
        return NULL;
    }
    if (to[0] != to[2 * kept - 2] || to[1] != to[2 * kept - 1]) {
        to[2 * kept] = to[0], to[2 * kept + 1] = to[1];
        kept++;
    }
    *n = kept;
    return to;
}

/* A closed ring for GEOS; NULL and *err set on failure. */
static GEOSGeometry *make_ring(const struct merger *merger, const struct region *region,
                               const struct drawn_ring *ring, struct err *err)
{
    size_t n = 0;
    double *xy = closed_ring(merger, region, ring, &n, err);
    if (!xy)
        return NULL;
    GEOSCoordSequence *points =
        GEOSCoordSeq_copyFromBuffer_r(merger->geos, xy, (unsigned)n, false, false);
    free(xy);
    GEOSGeometry *made = points ? GEOSGeom_createLinearRing_r(merger->geos, points) : NULL;
    if (!made)
        refuse(merger, region, "a polygon is not a closed line", err);
    return made;
}

/* The region as one geometry, valid or not; NULL and *err set on failure. */
static GEOSGeometry *make_polygon(const struct merger *merger, const struct region *region,
                                  struct err *err)
{
    const struct drawn_ring *rings = merger->drawing->rings + region->first;
    GEOSGeometry *made = NULL, *shell = make_ring(merger, region, &rings[0], err);
    GEOSGeometry **holes = calloc(region->n, sizeof *holes);
    size_t n_holes = 0;
    if (!holes)
        err_memory(err, "an annotation");
    if (!shell || !holes)
        goto done;
    for (; n_holes + 1 < region->n; n_holes++) {
        holes[n_holes] = make_ring(merger, region, &rings[n_holes + 1], err);
        if (!holes[n_holes])
            goto done;
    }
    /* takes the rings, also when it fails */
    made = GEOSGeom_createPolygon_r(merger->geos, shell, holes, (unsigned)n_holes);
    shell = NULL, n_holes = 0;
    if (!made)
        geos_failed(merger, "made into polygons", err);
done:
    for (size_t i = 0; i < n_holes; i++)
        GEOSGeom_destroy_r(merger->geos, holes[i]);
    if (shell)
        GEOSGeom_destroy_r(merger->geos, shell);
    free(holes);
    return made;
}

/* Everything the outline encloses, once or twice, in either direction. */
static GEOSGeometry *repair(const struct merger *merger, const GEOSGeometry *broken)
{
    GEOSMakeValidParams *how = GEOSMakeValidParams_create_r(merger->geos);
    GEOSGeometry *made = NULL;
    if (how && GEOSMakeValidParams_setMethod_r(merger->geos, how, GEOS_MAKE_VALID_STRUCTURE) &&
        GEOSMakeValidParams_setKeepCollapsed_r(merger->geos, how, 0))
        made = GEOSMakeValidWithParams_r(merger->geos, broken, how);
    if (how)
        GEOSMakeValidParams_destroy_r(merger->geos, how);
    return made;
}

/* One region as a valid geometry with an area; NULL and *err set on failure. */
static GEOSGeometry *valid_region(const struct merger *merger, const struct region *region,
                                  int64_t *repaired, struct err *err)
{
    if (region->n == 0) {
        refuse(merger, region, "a polygon has no points", err);
        return NULL;
    }
    GEOSGeometry *made = make_polygon(merger, region, err);
    if (!made)
        return NULL;
    if (GEOSisValid_r(merger->geos, made) != 1) {
        GEOSGeometry *mended = repair(merger, made);
        GEOSGeom_destroy_r(merger->geos, made);
        made = mended;
        ++*repaired;
    }
    double area = 0;
    if (!made || !GEOSArea_r(merger->geos, made, &area) || !(area > 0)) {
        refuse(merger, region, "a polygon has no area", err);
        if (made)
            GEOSGeom_destroy_r(merger->geos, made);
        return NULL;
    }
    return made;
}

/* The union of all regions of one meaning (empty if there are none); NULL and *err set on
 * failure. */
static GEOSGeometry *unite(const struct merger *merger, int meaning, int64_t *repaired,
                           struct err *err)
{
    const struct drawing *drawing = merger->drawing;
    GEOSGeometry **parts = calloc(drawing->n_regions + 1, sizeof *parts);
    GEOSGeometry *all = NULL, *merged = NULL;
    unsigned n = 0;
    if (!parts) {
        err_memory(err, "an annotation");
        return NULL;
    }
    for (size_t i = 0; i < drawing->n_regions; i++) {
        if (drawing->regions[i].meaning != meaning)
            continue;
        parts[n] = valid_region(merger, &drawing->regions[i], repaired, err);
        if (!parts[n])
            goto done;
        n++;
    }
    /* takes the parts, also when it fails */
    all = GEOSGeom_createCollection_r(merger->geos, GEOS_GEOMETRYCOLLECTION, parts, n);
    n = 0;
    merged = all ? GEOSUnaryUnion_r(merger->geos, all) : NULL;
    if (!merged)
        geos_failed(merger, "merged", err);
done:
    for (unsigned i = 0; i < n; i++)
        GEOSGeom_destroy_r(merger->geos, parts[i]);
    if (all)
        GEOSGeom_destroy_r(merger->geos, all);
    free(parts);
    return merged;
}

static double flushed(double value)
{
    return fabs(value) < TINY_PX ? 0 : value;
}

static void add_edge(struct merged_region *shape, const double *from, const double *to, int sign)
{
    double x0 = flushed(from[0]), y0 = flushed(from[1]);
    double x1 = flushed(to[0]), y1 = flushed(to[1]);
    if (y0 == y1)
        return;
    /* a ring that turns counter-clockwise (y up) has the shape on the right of its falling edges */
    shape->edges[shape->n_edges++] =
        y0 < y1 ? (struct edge){ x0, y0, x1, y1, -sign } : (struct edge){ x1, y1, x0, y0, sign };
}

static bool add_ring(const struct merger *merger, const GEOSGeometry *ring, bool hole,
                     struct merged_region *shape, struct err *err)
{
    const GEOSCoordSequence *points = GEOSGeom_getCoordSeq_r(merger->geos, ring);
    unsigned n = 0;
    char counter_clockwise = 0;
    if (!points || !GEOSCoordSeq_getSize_r(merger->geos, points, &n) || n < 4 ||
        !GEOSCoordSeq_isCCW_r(merger->geos, points, &counter_clockwise))
        return geos_failed(merger, "read back", err);
    if (!array_grow(&shape->edges, &shape->room_edges, (int64_t)(shape->n_edges + n),
                    sizeof *shape->edges, "an annotation", err))
        return false;
    double *xy = calloc(n, 2 * sizeof *xy);
    if (!xy)
        return err_memory(err, "an annotation");
    bool ok = GEOSCoordSeq_copyToBuffer_r(merger->geos, points, xy, false, false);
    int sign = (counter_clockwise == 1) == !hole ? 1 : -1;
    for (size_t i = 0; ok && i + 1 < n; i++)
        add_edge(shape, xy + 2 * i, xy + 2 * i + 2, sign);
    free(xy);
    return ok || geos_failed(merger, "read back", err);
}

static bool add_polygon(const struct merger *merger, const GEOSGeometry *polygon,
                        struct merged_region *shape, struct err *err)
{
    if (!add_ring(merger, GEOSGetExteriorRing_r(merger->geos, polygon), false, shape, err))
        return false;
    int n_holes = GEOSGetNumInteriorRings_r(merger->geos, polygon);
    for (int i = 0; i < n_holes; i++)
        if (!add_ring(merger, GEOSGetInteriorRingN_r(merger->geos, polygon, i), true, shape, err))
            return false;
    shape->polygons++;
    return n_holes >= 0 || geos_failed(merger, "read back", err);
}

/* Edges, area and bounds of the merged geometry; lines and points left by touching regions are not
 * areas. */
static bool flatten(const struct merger *merger, const GEOSGeometry *merged,
                    struct merged_region *shape, struct err *err)
{
    GEOSContextHandle_t geos = merger->geos;
    if (GEOSisEmpty_r(geos, merged) == 1)
        return true;
    if (GEOSisValid_r(geos, merged) != 1)
        return geos_failed(merger, "merged into a valid shape", err);
    int n = GEOSGetNumGeometries_r(geos, merged);
    for (int i = 0; i < n; i++) {
        const GEOSGeometry *part = GEOSGetGeometryN_r(geos, merged, i);
        if (GEOSGeomTypeId_r(geos, part) == GEOS_POLYGON && GEOSisEmpty_r(geos, part) == 0 &&
            !add_polygon(merger, part, shape, err))
            return false;
    }
    return (GEOSArea_r(geos, merged, &shape->area_px) &&
            GEOSGeom_getExtent_r(geos, merged, &shape->x0, &shape->y0, &shape->x1, &shape->y1)) ||
           geos_failed(merger, "measured", err);
}

bool geometry_merge(const struct drawing *drawing, int meaning, int minus,
                    struct merged_region *out, struct err *err)
{
    if (drawing->disjoint)
        return geometry_collect(drawing, meaning, out, err);
    bool ok = false;
    struct merged_region shape = { 0 };
    struct merger merger = { .geos = GEOS_init_r(), .drawing = drawing };
    GEOSGeometry *all = NULL, *hole = NULL, *merged = NULL;
    if (!merger.geos)
        return err_memory(err, "an annotation");
    GEOSContext_setErrorMessageHandler_r(merger.geos, on_geos_error, &merger);
    all = unite(&merger, meaning, &shape.repaired, err);
    if (!all)
        goto done;
    if (minus != REGION_UNKNOWN) {
        hole = unite(&merger, minus, &shape.repaired, err);
        merged = hole ? GEOSDifference_r(merger.geos, all, hole) : NULL;
        if (hole && !merged)
            geos_failed(&merger, "cut out", err);
        if (!merged)
            goto done;
    }
    ok = flatten(&merger, merged ? merged : all, &shape, err);
    if (ok)
        *out = shape, shape = (struct merged_region){ 0 };
done:
    if (all)
        GEOSGeom_destroy_r(merger.geos, all);
    if (hole)
        GEOSGeom_destroy_r(merger.geos, hole);
    if (merged)
        GEOSGeom_destroy_r(merger.geos, merged);
    GEOS_finish_r(merger.geos);
    merged_region_free(&shape);
    return ok;
}

void merged_region_free(struct merged_region *shape)
{
    free(shape->edges);
    *shape = (struct merged_region){ 0 };
}
