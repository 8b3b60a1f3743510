/* test_export.c: what the exporters write, read back with other means: the CSV line by line,
 * GeoJSON with jansson and GEOS, against the scores that went in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <geos_c.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>
#include <unistd.h>
#include "base/csv.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/rng.h"
#include "heatmap/export.h"
#include "support/heatmaps.h"

/* Noise with a hole of no tissue: everything that can happen to an outline. */
static void noise(int64_t column, int64_t row, float *scores)
{
    struct rng rng = rng_new(3, (uint64_t)row, (uint64_t)column);
    bool outside = column < 2 || (column > 20 && column < 25 && row > 10 && row < 15);
    scores[1] = outside ? NAN : (float)rng_uniform(&rng);
    scores[0] = 1 - scores[1];
}

static const struct exporter *exporter_named(const char *name)
{
    for (size_t i = 0; exporters[i]; i++)
        if (strcmp(exporters[i]->name, name) == 0)
            return exporters[i];
    fail_msg("no exporter %s", name);
    return NULL;
}

/* Writes SCRATCH/<slide>/<file of the exporter>; its path is the caller's. */
static char *export_as(const struct heatmap *heatmap, const char *name,
                       const struct export_options *options)
{
    const struct exporter *exporter = exporter_named(name);
    struct export_request request = { .heatmap = heatmap, .options = options };
    struct ctx ctx = { .pool = pool_new(2) };
    struct err err = { 0 };
    char *path = heatmaps_path(heatmap_info(heatmap)->slide, exporter->file);
    if (!exporter->write(&request, path, &ctx, &err))
        fail_msg("%s", err.text);
    pool_free(ctx.pool);
    return path;
}

static void csv_holds_every_scored_cell(void **state)
{
    (void)state;
    struct heatmap_info info = heatmaps_facts("export_csv", 700, 500, 2); /* ragged edges */
    struct heatmap *heatmap = heatmaps_make(&info, noise);
    struct export_options options = export_defaults();
    options.tile_px = 1; /* a cell */
    char *path = export_as(heatmap, "tiles-csv", &options);
    struct csv csv;
    assert_true(csv_read(path, &csv, NULL));
    static const char *const names[] = { "minx",   "miny",        "width",
                                         "height", "prob_Normal", "prob_Tumor" };
    assert_int_equal(csv.n_columns, 6);
    for (size_t i = 0; i < 6; i++)
        assert_string_equal(csv.names[i], names[i]);
    size_t at = 0;
    for (int64_t row = 0; row < info.height; row++)
        for (int64_t column = 0; column < info.width; column++) {
            float want[2];
            noise(column, row, want);
            if (isnan(want[0]))
                continue;
            assert_true(at < csv.n_rows);
            assert_int_equal(atoll(csv_cell(&csv, at, 0)), 16 * column);
            assert_int_equal(atoll(csv_cell(&csv, at, 1)), 16 * row);
            assert_int_equal(atoll(csv_cell(&csv, at, 2)), column == 43 ? 700 - 43 * 16 : 16);
            assert_int_equal(atoll(csv_cell(&csv, at, 3)), row == 31 ? 500 - 31 * 16 : 16);
            assert_true(strtof(csv_cell(&csv, at, 4), NULL) == want[0]);
            assert_true(strtof(csv_cell(&csv, at, 5), NULL) == want[1]);
            at++;
        }
    assert_int_equal(at, csv.n_rows);
    assert_int_equal(at, heatmap_info(heatmap)->scored);
    csv_free(&csv);
    free(path);
    heatmap_close(heatmap);
}

/* Tiles of 40 px are 3 x 3 cells of 16: their scores are means of the cells that have one. */
static void larger_tiles_are_means(void **state)
{
    (void)state;
    struct heatmap_info info = heatmaps_facts("export_means", 700, 500, 2);
    struct heatmap *heatmap = heatmaps_make(&info, noise);
    struct export_options options = export_defaults();
    options.tile_px = 40;
    char *path = export_as(heatmap, "tiles-csv", &options);
    struct csv csv;
    assert_true(csv_read(path, &csv, NULL));
    assert_in_range(csv.n_rows, 100, 15 * 11);
    for (size_t i = 0; i < csv.n_rows; i++) {
        int64_t x = atoll(csv_cell(&csv, i, 0)) / 16, y = atoll(csv_cell(&csv, i, 1)) / 16, n = 0;
        double sum = 0;
        for (int64_t row = y; row < y + 3 && row < info.height; row++)
            for (int64_t column = x; column < x + 3 && column < info.width; column++) {
                float scores[2];
                noise(column, row, scores);
                n += !isnan(scores[1]);
                sum += isnan(scores[1]) ? 0 : (double)scores[1];
            }
        assert_true(fabs(strtod(csv_cell(&csv, i, 5), NULL) - sum / (double)n) < 1e-6);
        int64_t width = atoll(csv_cell(&csv, i, 2));
        assert_int_equal(width, 16 * x + 48 < 700 ? 48 : 700 - 16 * x);
    }
    csv_free(&csv);
    free(path);
    heatmap_close(heatmap);
}

static json_t *features_of(const char *path, json_t **document)
{
    json_error_t why;
    *document = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    if (!*document)
        fail_msg("%s: %s", path, why.text);
    assert_string_equal(json_string_value(json_object_get(*document, "type")), "FeatureCollection");
    return json_object_get(*document, "features");
}

static GEOSGeometry *ring_of(GEOSContextHandle_t geos, const json_t *points)
{
    size_t n = json_array_size(points);
    GEOSCoordSequence *line = GEOSCoordSeq_create_r(geos, (unsigned)n, 2);
    for (size_t i = 0; i < n; i++) {
        const json_t *at = json_array_get(points, i);
        GEOSCoordSeq_setXY_r(geos, line, (unsigned)i, json_number_value(json_array_get(at, 0)),
                             json_number_value(json_array_get(at, 1)));
    }
    GEOSGeometry *ring = GEOSGeom_createLinearRing_r(geos, line);
    assert_non_null(ring); /* NULL if not closed */
    return ring;
}

/* The polygon of a feature, the caller's; valid. */
static GEOSGeometry *polygon_of(GEOSContextHandle_t geos, const json_t *feature)
{
    const json_t *geometry = json_object_get(feature, "geometry");
    assert_string_equal(json_string_value(json_object_get(geometry, "type")), "Polygon");
    const json_t *rings = json_object_get(geometry, "coordinates");
    size_t n = json_array_size(rings);
    assert_true(n > 0);
    GEOSGeometry **holes = calloc(n, sizeof *holes);
    for (size_t i = 1; i < n; i++)
        holes[i - 1] = ring_of(geos, json_array_get(rings, i));
    GEOSGeometry *shell = ring_of(geos, json_array_get(rings, 0));
    GEOSGeometry *polygon = GEOSGeom_createPolygon_r(geos, shell, holes, (unsigned)n - 1);
    free(holes);
    assert_non_null(polygon);
    assert_int_equal(GEOSisValid_r(geos, polygon), 1);
    return polygon;
}

static const char *class_of(const json_t *properties)
{
    const json_t *class = json_object_get(properties, "classification");
    assert_int_equal(json_array_size(json_object_get(class, "color")), 3);
    return json_string_value(json_object_get(class, "name"));
}

static void tiles_are_objects_of_qupath(void **state)
{
    (void)state;
    struct heatmap_info info = heatmaps_facts("export_geojson", 700, 500, 2);
    struct heatmap *heatmap = heatmaps_make(&info, noise);
    struct export_options options = export_defaults();
    options.tile_px = 1; /* a cell */
    char *path = export_as(heatmap, "tiles-geojson", &options);
    json_t *document, *features = features_of(path, &document);
    GEOSContextHandle_t geos = GEOS_init_r();
    assert_int_equal(json_array_size(features), heatmap_info(heatmap)->scored);
    for (size_t i = 0; i < json_array_size(features); i++) {
        const json_t *feature = json_array_get(features, i);
        const json_t *properties = json_object_get(feature, "properties");
        GEOSGeometry *polygon = polygon_of(geos, feature);
        double x, y;
        float want[2];
        GEOSGeom_getXMin_r(geos, polygon, &x);
        GEOSGeom_getYMin_r(geos, polygon, &y);
        noise((int64_t)x / 16, (int64_t)y / 16, want);
        assert_int_equal(strlen(json_string_value(json_object_get(feature, "id"))), 36);
        assert_string_equal(json_string_value(json_object_get(properties, "objectType")), "tile");
        assert_string_equal(class_of(properties), want[1] > want[0] ? "Tumor" : "Normal");
        const json_t *scores = json_object_get(properties, "measurements");
        double tumor = json_number_value(json_object_get(scores, "prob_Tumor"));
        assert_true((float)tumor == want[1]);
        GEOSGeom_destroy_r(geos, polygon);
    }
    GEOS_finish_r(geos);
    json_decref(document);
    free(path);
    heatmap_close(heatmap);
}

struct region_sums {
    size_t n;
    double area_px, area_um2, score_area;
};

static struct region_sums sum_regions(const char *path)
{
    struct region_sums sums = { 0 };
    json_t *document, *features = features_of(path, &document);
    GEOSContextHandle_t geos = GEOS_init_r();
    sums.n = json_array_size(features);
    for (size_t i = 0; i < sums.n; i++) {
        const json_t *properties = json_object_get(json_array_get(features, i), "properties");
        const json_t *measured = json_object_get(properties, "measurements");
        GEOSGeometry *polygon = polygon_of(geos, json_array_get(features, i));
        double area;
        GEOSArea_r(geos, polygon, &area);
        assert_string_equal(class_of(properties), "Tumor");
        double mean = json_number_value(json_object_get(measured, "prob_Tumor"));
        double max = json_number_value(json_object_get(measured, "prob_Tumor max"));
        assert_true(mean <= max + 1e-6 && mean >= 0.35);
        sums.area_px += area;
        sums.area_um2 += json_number_value(json_object_get(measured, "area_um2"));
        sums.score_area += mean * area;
        GEOSGeom_destroy_r(geos, polygon);
    }
    GEOS_finish_r(geos);
    json_decref(document);
    return sums;
}

static void regions_are_the_cells_above_the_threshold(void **state)
{
    (void)state;
    struct heatmap_info info = heatmaps_facts("export_regions", 800, 640, 2);
    struct heatmap *heatmap = heatmaps_make(&info, noise);
    struct export_options options = export_defaults();
    options.threshold = 0.5;
    char *path = export_as(heatmap, "regions", &options);
    double cells = 0, scores = 0;
    for (int64_t row = 0; row < info.height; row++)
        for (int64_t column = 0; column < info.width; column++) {
            float score[2];
            noise(column, row, score);
            if (score[1] >= 0.5F)
                cells++, scores += (double)score[1];
        }
    struct region_sums sums = sum_regions(path);
    assert_true(sums.n > 20);
    assert_true(sums.area_px == cells * 256);
    assert_true(fabs(sums.area_um2 - cells * 16) < 1e-6);
    assert_true(fabs(sums.score_area - scores * 256) < 1e-3);
    free(path);
    heatmap_close(heatmap);
}

static void three_classes(int64_t column, int64_t row, float *scores)
{
    (void)row;
    for (int64_t c = 0; c < 3; c++)
        scores[c] = column / 10 == c ? 0.8F : 0.1F;
}

/* Stripes of ten cells, one a class. */
static void regions_of_more_than_two_classes(void **state)
{
    (void)state;
    static char names[3][8] = { "a", "b", "c" }, *classes[3] = { names[0], names[1], names[2] };
    struct heatmap_info info = heatmaps_facts("export_classes", 480, 160, 3);
    info.class_names = classes;
    struct heatmap *heatmap = heatmaps_make(&info, three_classes);
    struct export_options options = export_defaults();
    for (int64_t wanted = -1; wanted < 3; wanted++) {
        options.class_name = wanted < 0 ? NULL : wanted == 2 ? "2" : names[wanted];
        char *path = export_as(heatmap, "regions", &options);
        json_t *document, *features = features_of(path, &document);
        assert_int_equal(json_array_size(features), wanted < 0 ? 3 : 1);
        for (size_t i = 0; i < json_array_size(features); i++) {
            const json_t *feature = json_array_get(features, i);
            const json_t *geometry = json_object_get(feature, "geometry");
            const json_t *ring = json_array_get(json_object_get(geometry, "coordinates"), 0);
            size_t c = wanted < 0 ? i : (size_t)wanted;
            assert_string_equal(class_of(json_object_get(feature, "properties")), names[c]);
            assert_int_equal(json_integer_value(json_array_get(json_array_get(ring, 0), 0)),
                             160 * c);
        }
        json_decref(document);
        free(path);
    }
    heatmap_close(heatmap);
}

/* Noise in three classes, no tissue in some places. */
static void three_noises(int64_t column, int64_t row, float *scores)
{
    struct rng rng = rng_new(4, (uint64_t)row, (uint64_t)column);
    float sum = 0;
    for (int64_t c = 0; c < 3; c++)
        sum += scores[c] = (float)rng_uniform(&rng);
    for (int64_t c = 0; c < 3; c++)
        scores[c] = column > 20 && column < 25 ? NAN : scores[c] / sum;
}

/* The area of each class, and that of all regions together. */
static void area_by_class(const char *path, char **names, double areas[3], double *together)
{
    json_t *document, *features = features_of(path, &document);
    GEOSContextHandle_t geos = GEOS_init_r();
    GEOSGeometry *all = GEOSGeom_createEmptyPolygon_r(geos);
    memset(areas, 0, 3 * sizeof *areas);
    for (size_t i = 0; i < json_array_size(features); i++) {
        const char *class = class_of(json_object_get(json_array_get(features, i), "properties"));
        GEOSGeometry *polygon = polygon_of(geos, json_array_get(features, i));
        double area;
        GEOSArea_r(geos, polygon, &area);
        for (int c = 0; c < 3; c++)
            areas[c] += strcmp(class, names[c]) == 0 ? area : 0;
        GEOSGeometry *more = GEOSUnion_r(geos, all, polygon);
        GEOSGeom_destroy_r(geos, all);
        GEOSGeom_destroy_r(geos, polygon);
        all = more;
    }
    GEOSArea_r(geos, all, together);
    GEOSGeom_destroy_r(geos, all);
    GEOS_finish_r(geos);
    json_decref(document);
}

/* Every scored cell lies in one region, that of its highest score; with a threshold of 0.3 regions
 * overlap, with one of 0.6 they do not cover everything. */
static void regions_of_winners_divide_the_tissue(void **state)
{
    (void)state;
    static char names[3][8] = { "a", "b", "c" }, *classes[3] = { names[0], names[1], names[2] };
    struct heatmap_info info = heatmaps_facts("export_winners", 480, 160, 3);
    info.class_names = classes;
    struct heatmap *heatmap = heatmaps_make(&info, three_noises);
    double scored = 256.0 * (double)heatmap_info(heatmap)->scored, want[3] = { 0 };
    for (int64_t i = 0; i < info.width * info.height; i++) {
        float scores[3];
        three_noises(i % info.width, i / info.width, scores);
        for (int c = 0; c < 3; c++)
            want[c] += scores[c] >= fmaxf(fmaxf(scores[0], scores[1]), scores[2]) ? 256 : 0;
    }
    static const enum export_regions_rule rules[] = { REGIONS_AUTO, REGIONS_WINNER,
                                                      REGIONS_THRESHOLD, REGIONS_THRESHOLD };
    for (int i = 0; i < 4; i++) {
        struct export_options options = export_defaults();
        options.regions = rules[i];
        options.threshold = i == 2 ? 0.3 : 0.6;
        double areas[3], together;
        char *path = export_as(heatmap, "regions", &options);
        area_by_class(path, classes, areas, &together);
        for (int c = 0; c < 3 && i < 2; c++)
            assert_true(areas[c] == want[c]);
        assert_true(i >= 2 || together == scored);
        assert_int_equal(areas[0] + areas[1] + areas[2] > together, i == 2);
        assert_true(i != 3 || together < 0.5 * scored);
        free(path);
    }
    heatmap_close(heatmap);
}

/* With too little memory the outlines follow coarser blocks; they are still there and valid. */
static void ragged_regions_become_coarser(void **state)
{
    (void)state;
    struct heatmap_info info = heatmaps_facts("export_ragged", 4096, 4096, 2);
    struct heatmap *heatmap = heatmaps_make(&info, noise);
    struct export_options options = export_defaults();
    options.threshold = 0.35; /* one piece with many holes */
    options.memory_bytes = 1 << 19;
    char *path = export_as(heatmap, "regions", &options);
    json_t *document, *features = features_of(path, &document);
    const json_t *geometry = json_object_get(json_array_get(features, 0), "geometry");
    const json_t *ring = json_array_get(json_object_get(geometry, "coordinates"), 0);
    for (size_t i = 0; i < json_array_size(ring); i++)
        assert_int_equal(json_integer_value(json_array_get(json_array_get(ring, i), 0)) % 32, 0);
    json_decref(document);
    assert_true(sum_regions(path).area_px > 0);
    free(path);
    heatmap_close(heatmap);
}

/* Smooth in one class, with a border of no tissue; tests/heatmap/check_export.py reads the files
 * that are made of it. */
static void waves(int64_t column, int64_t row, float *scores)
{
    double x = (double)column / 90, y = (double)row / 70;
    bool outside = hypot((double)column - 600, (double)row - 500) > 480;
    scores[1] = outside ? NAN : (float)(0.5 + 0.5 * sin(x * x) * cos(y + x));
    scores[0] = 1 - scores[1];
}

struct plane {
    uint32_t width, height;
    float *px; /* [height, width] */
};

/* The directory that is current, tile by tile. */
static struct plane read_plane(TIFF *tiff)
{
    struct plane plane = { 0 };
    uint32_t side = 0;
    uint16_t bits = 0, format = 0;
    TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &plane.width);
    TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &plane.height);
    TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &side);
    TIFFGetField(tiff, TIFFTAG_BITSPERSAMPLE, &bits);
    TIFFGetField(tiff, TIFFTAG_SAMPLEFORMAT, &format);
    assert_int_equal(bits, 32);
    assert_int_equal(format, SAMPLEFORMAT_IEEEFP);
    plane.px = malloc((size_t)plane.width * plane.height * sizeof *plane.px);
    float *tile = malloc((size_t)TIFFTileSize(tiff));
    for (uint32_t y = 0; y < plane.height; y += side)
        for (uint32_t x = 0; x < plane.width; x += side) {
            assert_true(TIFFReadTile(tiff, tile, x, y, 0, 0) > 0);
            for (uint32_t i = 0; i < side && y + i < plane.height; i++)
                for (uint32_t j = 0; j < side && x + j < plane.width; j++)
                    plane.px[(y + i) * plane.width + x + j] = tile[i * side + j];
        }
    free(tile);
    return plane;
}

static void ome_tiff_holds_the_scores_and_their_means(void **state)
{
    (void)state;
    struct heatmap_info info = heatmaps_facts("export_ome", 1201 * 16, 1090 * 16 - 3, 2);
    struct heatmap *heatmap = heatmaps_make(&info, waves);
    struct export_options options = export_defaults();
    char *path = export_as(heatmap, "ome-tiff", &options);
    TIFF *tiff = TIFFOpen(path, "r");
    assert_int_equal(TIFFNumberOfDirectories(tiff), 2);
    for (uint16_t c = 0; c < 2; c++) {
        uint16_t n_smaller = 0;
        uint64_t *smaller = NULL, offsets[2];
        assert_true(TIFFSetDirectory(tiff, c));
        assert_true(TIFFGetField(tiff, TIFFTAG_SUBIFD, &n_smaller, &smaller));
        assert_int_equal(n_smaller, 2); /* 1201, 601, 301 */
        memcpy(offsets, smaller, sizeof offsets);
        struct plane fine = read_plane(tiff);
        assert_int_equal(fine.width, 1201);
        assert_int_equal(fine.height, 1090);
        for (uint32_t i = 0; i < fine.width * fine.height; i++) {
            float want[2];
            waves(i % fine.width, i / fine.width, want);
            assert_true(fine.px[i] == want[c] || (isnan(fine.px[i]) && isnan(want[c])));
        }
        for (int k = 0; k < 2; k++) {
            assert_true(TIFFSetSubDirectory(tiff, offsets[k]));
            struct plane coarse = read_plane(tiff);
            assert_int_equal(coarse.width, (fine.width + 1) / 2);
            assert_int_equal(coarse.height, (fine.height + 1) / 2);
            for (uint32_t i = 0; i < coarse.width * coarse.height; i++) {
                double sum = 0, n = 0;
                for (uint32_t j = 0; j < 4; j++) {
                    uint32_t x = i % coarse.width * 2 + j % 2, y = i / coarse.width * 2 + j / 2;
                    bool in =
                        x < fine.width && y < fine.height && !isnan(fine.px[y * fine.width + x]);
                    sum += in ? (double)fine.px[y * fine.width + x] : 0, n += in;
                }
                assert_true(n > 0 ? fabs(sum / n - (double)coarse.px[i]) < 1e-6
                                  : isnan(coarse.px[i]));
            }
            free(fine.px);
            fine = coarse;
        }
        free(fine.px);
    }
    TIFFClose(tiff);
    free(path);
    heatmap_close(heatmap);
}

static void nothing(int64_t column, int64_t row, float *scores)
{
    (void)column, (void)row;
    scores[0] = NAN;
}

static void a_slide_without_tissue_gives_empty_files(void **state)
{
    (void)state;
    struct heatmap_info info = heatmaps_facts("export_empty", 100, 100, 1);
    struct heatmap *heatmap = heatmaps_make(&info, nothing);
    struct export_options options = export_defaults();
    static const char *const names[] = { "tiles-geojson", "regions" };
    for (size_t i = 0; i < 2; i++) {
        char *path = export_as(heatmap, names[i], &options);
        json_t *document;
        assert_int_equal(json_array_size(features_of(path, &document)), 0);
        json_decref(document);
        free(path);
    }
    heatmap_close(heatmap);
}

static void errors_leave_no_file(void **state)
{
    (void)state;
    struct heatmap_info info = heatmaps_facts("export_errors", 100, 100, 1);
    struct heatmap *heatmap = heatmaps_make(&info, nothing);
    struct export_options options = export_defaults();
    struct export_request request = { .heatmap = heatmap, .options = &options };
    atomic_bool stop = true;
    struct ctx ctx = { .pool = pool_new(1), .stop = &stop };
    for (size_t i = 0; exporters[i]; i++) {
        if (exporters[i]->needs_slide)
            continue;
        struct err err = { 0 };
        char *path = heatmaps_path("export_errors", exporters[i]->file);
        assert_false(exporters[i]->write(&request, path, &ctx, &err));
        assert_int_equal(err.kind, ERR_STOPPED);
        assert_false(file_exists(path));
        assert_false(exporters[i]->write(&request, "/nowhere/at/all", &ctx, &err));
        assert_int_equal(err.kind, ERR_IO);
        free(path);
    }
    options.class_name = "Stroma";
    struct err err = { 0 };
    assert_false(exporter_named("regions")->write(&request, "/nowhere", &ctx, &err));
    assert_int_equal(err.kind, ERR_USAGE);
    assert_non_null(strstr(err.text, "--class may be Tumor"));
    pool_free(ctx.pool);
    heatmap_close(heatmap);
}

static int64_t size_of(const char *path)
{
    char *text;
    size_t size;
    assert_true(file_read(path, 1 << 20, &text, &size, NULL));
    free(text);
    return (int64_t)size;
}

/* What is there is kept; with another threshold it is made anew. */
static void exports_follow_their_options(void **state)
{
    (void)state;
    struct heatmap_info info = heatmaps_facts("export_folder", 700, 500, 2);
    struct heatmap *heatmap = heatmaps_make(&info, noise);
    const struct exporter *list[] = { exporter_named("regions"), exporter_named("overlay"), NULL };
    struct export_options options = export_defaults();
    struct export_request request = { .heatmap = heatmap, .options = &options };
    struct ctx ctx = { .pool = pool_new(1) };
    char *folder = heatmaps_path("export_folder", "");
    char *path = heatmaps_path("export_folder", "regions.geojson");
    exports_remove(folder);
    assert_false(exports_exist(folder, list, false, &options));
    assert_true(exports_write(folder, list, &request, &ctx, NULL)); /* without a slide no overlay */
    assert_true(exports_exist(folder, list, false, &options));
    assert_false(exports_exist(folder, list, true, &options));
    int64_t whole = size_of(path);
    assert_int_equal(truncate(path, 1), 0);
    assert_true(exports_write(folder, list, &request, &ctx, NULL));
    assert_int_equal(size_of(path), 1); /* kept as it was */
    options.threshold = 0.9;
    assert_false(exports_exist(folder, list, false, &options));
    assert_true(exports_write(folder, list, &request, &ctx, NULL));
    assert_true(exports_exist(folder, list, false, &options));
    assert_true(size_of(path) > 1 && size_of(path) < whole);
    exports_remove(folder);
    assert_false(file_exists(path));
    assert_true(exports_exist(folder, list + 2, false, &options)); /* none are wanted */
    pool_free(ctx.pool);
    free(folder), free(path);
    heatmap_close(heatmap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_holds_every_scored_cell),
        cmocka_unit_test(larger_tiles_are_means),
        cmocka_unit_test(tiles_are_objects_of_qupath),
        cmocka_unit_test(regions_are_the_cells_above_the_threshold),
        cmocka_unit_test(regions_of_more_than_two_classes),
        cmocka_unit_test(regions_of_winners_divide_the_tissue),
        cmocka_unit_test(ragged_regions_become_coarser),
        cmocka_unit_test(ome_tiff_holds_the_scores_and_their_means),
        cmocka_unit_test(a_slide_without_tissue_gives_empty_files),
        cmocka_unit_test(errors_leave_no_file),
        cmocka_unit_test(exports_follow_their_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
