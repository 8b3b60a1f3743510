/* test_tissue_outlines.c: outlines of masks are valid polygons that hold all pixels, and the tracer
 * measures pieces within its memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <geos_c.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "tests/unit/support/golden_image.h"
#include "tests/unit/support/paths.h"
#include "tissue/morphology.h"
#include "base/outline.h"

/* The outline of a piece in GEOS, the caller's. */
static GEOSGeometry *polygon_of(GEOSContextHandle_t geos, const struct outline *outline,
                                int32_t piece)
{
    GEOSGeometry *shell = NULL, **holes = calloc((size_t)outline->n_rings, sizeof(void *));
    unsigned n_holes = 0;
    for (int64_t r = 0; r < outline->n_rings; r++) {
        const struct outline_ring *ring = &outline->rings[r];
        if (ring->piece != piece)
            continue;
        GEOSCoordSequence *line = GEOSCoordSeq_create_r(geos, (unsigned)ring->n + 1, 2);
        for (int64_t i = 0; i <= ring->n; i++) {
            struct outline_point at = outline->points[ring->first + i % ring->n];
            GEOSCoordSeq_setXY_r(geos, line, (unsigned)i, at.x, at.y);
        }
        GEOSGeometry *closed = GEOSGeom_createLinearRing_r(geos, line);
        if (ring->hole) {
            holes[n_holes++] = closed;
        } else {
            assert_null(shell);
            shell = closed;
        }
    }
    assert_non_null(shell);
    GEOSGeometry *polygon = GEOSGeom_createPolygon_r(geos, shell, holes, n_holes);
    free(holes);
    return polygon;
}

/* Valid polygons whose area is the number of pixels and that hold the centres of all of them. */
static void assert_outline(const struct image *mask)
{
    struct outline outline;
    GEOSContextHandle_t geos = GEOS_init_r();
    assert_true(outline_trace(mask, &outline, NULL));
    double area = 0;
    int64_t pixels = 0;
    for (int32_t piece = 0; piece < outline.n_pieces; piece++) {
        GEOSGeometry *polygon = polygon_of(geos, &outline, piece);
        double part = 0;
        assert_int_equal(GEOSisValid_r(geos, polygon), 1);
        assert_int_equal(GEOSArea_r(geos, polygon, &part), 1);
        area += part;
        GEOSGeom_destroy_r(geos, polygon);
    }
    for (size_t i = 0; i < image_bytes(mask); i++)
        pixels += mask->px[i] != 0;
    assert_true(area == (double)pixels);
    for (int64_t r = 0; r < outline.n_rings; r++) /* every point is a turn */
        for (int64_t i = 0; i < outline.rings[r].n; i++) {
            const struct outline_point *points = outline.points + outline.rings[r].first;
            int64_t n = outline.rings[r].n;
            struct outline_point a = points[i], b = points[(i + 1) % n], c = points[(i + 2) % n];
            assert_true((a.x == b.x) != (a.y == b.y) && (b.x == c.x) != (a.x == b.x));
        }
    outline_free(&outline);
    GEOS_finish_r(geos);
}

static void outlines_are_valid_polygons(void **state)
{
    (void)state;
    static const char *const names[] = { "blobs", "fda", "ncrf", "process" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct image mask = golden_image("tissue", names[i], 1);
        assert_outline(&mask);
        image_free(&mask);
    }
}

/* Noise is all corners, touching pieces and nested holes. */
static void outlines_of_noise_are_valid_polygons(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct rng rng = rng_new(seed, 0, 0);
        struct image mask;
        double share = 0.3 + 0.01 * (double)seed;
        assert_true(image_new(&mask, 1 + (int64_t)rng_below(&rng, 40),
                              1 + (int64_t)rng_below(&rng, 40), 1, NULL));
        for (size_t i = 0; i < image_bytes(&mask); i++)
            mask.px[i] = rng_uniform(&rng) < share ? 255 : 0;
        assert_outline(&mask);
        image_free(&mask);
    }
}

/* Pieces as the tracer hands them over, against labels of the whole mask. */
struct measured {
    const int32_t *labels;
    const float *values;
    int64_t width, height, pieces;
};

static bool measure_piece(void *arg, const struct outline_piece *piece, struct err *err)
{
    (void)err;
    struct measured *all = arg;
    int32_t label = all->labels[piece->first_px.y * all->width + piece->first_px.x];
    int64_t n = 0, first = -1;
    double sum = 0;
    float max = 0;
    for (int64_t i = 0; i < all->width * all->height; i++)
        if (all->labels[i] == label) {
            first = first < 0 ? i : first;
            n++, sum += (double)all->values[i];
            max = all->values[i] > max ? all->values[i] : max;
        }
    assert_true(label > 0);
    assert_int_equal(first, piece->first_px.y * all->width + piece->first_px.x);
    assert_int_equal(piece->n_px, n);
    assert_true(fabs(piece->value_sum - sum) <= 1e-9 * sum);
    assert_true(piece->value_max == max);
    assert_false(piece->rings[0].hole);
    for (int64_t r = 1; r < piece->n_rings; r++)
        assert_true(piece->rings[r].hole);
    all->pieces++;
    return true;
}

static void traced_pieces_are_measured(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct rng rng = rng_new(seed, 1, 0);
        struct image mask;
        int32_t *labels, n;
        assert_true(image_new(&mask, 50, 37, 1, NULL));
        float *values = malloc(image_bytes(&mask) * sizeof *values);
        for (size_t i = 0; i < image_bytes(&mask); i++) {
            mask.px[i] = rng_uniform(&rng) < 0.35 + 0.02 * (double)seed ? 255 : 0;
            values[i] = (float)rng_uniform(&rng);
        }
        assert_true(morphology_label(&mask, false, &labels, &n, NULL));
        struct measured all = { labels, values, mask.width, mask.height, 0 };
        struct outline_tracer *tracer;
        assert_true(outline_tracer_new(50, 0, measure_piece, &all, &tracer, NULL));
        for (int64_t y = 0; y < mask.height; y++)
            assert_true(outline_tracer_row(tracer, image_at(&mask, 0, y), values + y * 50, NULL));
        assert_true(outline_tracer_end(tracer, NULL));
        assert_int_equal(all.pieces, n);
        outline_tracer_free(tracer);
        image_free(&mask), free(values), free(labels);
    }
}

static bool ignore_piece(void *arg, const struct outline_piece *piece, struct err *err)
{
    (void)arg, (void)piece, (void)err;
    return true;
}

/* Pieces that are done give their corners back: a thousand rows of pieces pass through room for
 * two; a comb that never ends does not. */
static void tracer_keeps_within_its_limit(void **state)
{
    (void)state;
    uint8_t teeth[64], full[64], none[64] = { 0 };
    struct outline_tracer *tracer;
    struct err err;
    for (int i = 0; i < 64; i++)
        teeth[i] = i % 2 ? 255 : 0, full[i] = 255;
    assert_true(outline_tracer_new(64, 300, ignore_piece, NULL, &tracer, NULL));
    for (int y = 0; y < 1000; y++)
        assert_true(outline_tracer_row(tracer, y % 2 ? teeth : none, NULL, NULL));
    assert_true(outline_tracer_end(tracer, NULL));
    assert_false(outline_tracer_full(tracer));
    outline_tracer_free(tracer);
    bool ok = true;
    assert_true(outline_tracer_new(64, 300, ignore_piece, NULL, &tracer, NULL));
    for (int y = 0; y < 1000 && ok; y++)
        ok = outline_tracer_row(tracer, y % 2 ? teeth : full, NULL, &err);
    assert_false(ok);
    assert_int_equal(err.kind, ERR_MEMORY);
    assert_true(outline_tracer_full(tracer));
    outline_tracer_free(tracer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outlines_are_valid_polygons),
        cmocka_unit_test(outlines_of_noise_are_valid_polygons),
        cmocka_unit_test(traced_pieces_are_measured),
        cmocka_unit_test(tracer_keeps_within_its_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
