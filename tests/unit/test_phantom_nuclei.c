/* test_phantom_nuclei.c: the truth of nuclei: outlines and labels agree with each other and with
 * what is painted; and pen marks on tumour alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/pool.h"
#include "phantom/phantom_draw.h"
#include "phantom/phantom_nuclei.h"
#include "phantom/phantom_pen.h"
#include "tests/unit/support/paths.h"

enum { SIZE = 1024 };

static int32_t *labels_of(const struct phantom_scene *scene, int64_t x, int64_t y, int64_t width,
                          int64_t height)
{
    struct err err = { 0 };
    int32_t *labels = malloc((size_t)(width * height) * sizeof *labels);
    assert_true(phantom_nuclei_labels(scene, x, y, width, height, labels, &err));
    return labels;
}

static void any_rectangle_shows_the_same_nuclei(void **state)
{
    (void)state;
    static const int64_t rects[][4] = { { 300, 400, 200, 150 },
                                        { 0, 0, 1024, 1 },
                                        { 511, 0, 2, 1024 } };
    struct phantom_scene scene;
    phantom_scene_make(3, 0, SIZE, 0, &scene);
    int32_t *whole = labels_of(&scene, 0, 0, SIZE, SIZE);
    for (size_t k = 0; k < sizeof rects / sizeof *rects; k++) {
        const int64_t *r = rects[k];
        int32_t *part = labels_of(&scene, r[0], r[1], r[2], r[3]);
        for (int64_t y = 0; y < r[3]; y++)
            assert_memory_equal(part + y * r[2], whole + (r[1] + y) * SIZE + r[0],
                                (size_t)r[2] * sizeof *part);
        free(part);
    }
    free(whole);
}

/* Crossings of a row of pixel centres by a ring flip what is to their right. */
static void flip_ring(const double *x, const double *y, int n, uint8_t *mask)
{
    for (int i = 0; i + 1 < n; i++)
        if (x[i] == x[i + 1])
            for (int row = (int)fmin(y[i], y[i + 1]); row < (int)fmax(y[i], y[i + 1]); row++)
                for (int column = (int)x[i]; column < SIZE; column++)
                    mask[row * SIZE + column] ^= 1;
}

/* Reads the rings of one line of the file; the outlines are along the edges of pixels. */
static int flip_feature(const char *line, uint8_t *mask)
{
    static double x[4096], y[4096];
    const char *at = strstr(line, "\"coordinates\":");
    int n_rings = 0;
    assert_non_null(at);
    at = strchr(at, '[') + 1;
    while (*at != ']') {
        int n = 0, used = 0;
        at = strchr(at, '[') + 1;
        while (sscanf(at, " [%lf, %lf]%n", &x[n], &y[n], &used) == 2) {
            at += used + (at[used] == ',');
            n++;
        }
        assert_true(n > 4 && x[0] == x[n - 1] && y[0] == y[n - 1]);
        flip_ring(x, y, n, mask);
        at = strchr(at, ']') + 1;
        at += *at == ',';
        n_rings++;
    }
    return n_rings;
}

static char *written(const struct phantom_scene *scene, int threads)
{
    struct ctx ctx = { .pool = pool_new(threads) };
    struct err err = { 0 };
    char *path = scratch_path("phantom_nuclei.geojson"), *text = NULL;
    size_t size = 0;
    assert_true(phantom_nuclei_write(path, scene, &ctx, &err));
    assert_true(file_read(path, 1 << 26, &text, &size, &err));
    free(path);
    pool_free(ctx.pool);
    return text;
}

static void outlines_are_those_of_the_labels(void **state)
{
    (void)state;
    struct phantom_scene scene;
    phantom_scene_make(3, 0, SIZE, 0, &scene);
    int32_t *labels = labels_of(&scene, 0, 0, SIZE, SIZE);
    char *one = written(&scene, 1), *three = written(&scene, 3);
    assert_string_equal(one, three);
    uint8_t *mask = calloc(SIZE, SIZE), *all = calloc(SIZE, SIZE);
    int n = 0, of_tumor = 0;
    char *next = one;
    for (char *line; (line = strsep(&next, "\n"));) {
        if (!strstr(line, "\"Feature\""))
            continue;
        memset(mask, 0, (size_t)SIZE * SIZE);
        flip_feature(line, mask);
        int32_t id = 0;
        for (int i = 0; i < SIZE * SIZE; i++)
            if (mask[i]) {
                assert_false(all[i]);
                assert_true(labels[i] != 0 && (id == 0 || labels[i] == id));
                id = labels[i], all[i] = 1;
            }
        assert_non_null(strstr(line, phantom_cell_names[phantom_nucleus_cell(id)]));
        of_tumor += phantom_nucleus_cell(id) == CELL_TUMOR;
        n++;
    }
    for (int i = 0; i < SIZE * SIZE; i++)
        assert_int_equal(all[i], labels[i] != 0);
    assert_true(n > 100 && of_tumor > 5);
    free(one), free(three), free(mask), free(all), free(labels);
}

/* Red, which haematoxylin absorbs and eosin hardly. */
static void nuclei_are_dark_and_the_ring_around_them_is_not(void **state)
{
    (void)state;
    enum { SIDE = 256 };
    struct phantom_scene scene;
    struct phantom_painter *painter;
    struct err err = { 0 };
    phantom_scene_make(3, 0, 4096, 0, &scene);
    const struct phantom_curve *c = &scene.lesions[0].outline;
    int64_t x0 = (int64_t)c->x - SIDE / 2, y0 = (int64_t)c->y - SIDE / 2;
    static uint8_t px[SIDE][SIDE][3];
    assert_true(phantom_painter_new(1, &painter, &err));
    phantom_pen_apply(&scene, PEN_NONE);
    phantom_painter_use(painter, &scene);
    phantom_paint(painter, x0, y0, SIDE, SIDE, px[0][0], SIDE * 3, 0);
    int32_t *labels = labels_of(&scene, x0, y0, SIDE, SIDE);
    double inside = 0, ring = 0;
    int n_inside = 0, n_ring = 0;
    for (int y = 4; y < SIDE - 4; y++)
        for (int x = 4; x < SIDE - 4; x++) {
            bool in = labels[y * SIDE + x] != 0, near = false;
            for (int k = 0; k < 81; k++)
                near |= labels[(y + k / 9 - 4) * SIDE + x + k % 9 - 4] != 0;
            if (in)
                inside += px[y][x][0], n_inside++;
            else if (near)
                ring += px[y][x][0], n_ring++;
        }
    assert_true(n_inside > 1000 && n_ring > 1000);
    assert_true(inside / n_inside + 50 < ring / n_ring);
    phantom_painter_free(painter);
    free(labels);
}

/* Of 256-px patches with their centre in a metastasis, or in tissue away from any: the share that
 * looks different without the pen. */
static double share_inked(const struct phantom_scene *scene, bool in_lesion, int *n)
{
    static uint8_t px[256][256][3], plain[256][256][3];
    struct phantom_scene clean = *scene;
    struct phantom_painter *painter;
    struct err err = { 0 };
    int inked = 0;
    phantom_pen_apply(&clean, PEN_NONE);
    assert_true(phantom_painter_new(1, &painter, &err));
    *n = 0;
    for (int64_t y = 0; y + 256 <= scene->size_px; y += 192)
        for (int64_t x = 0; x + 256 <= scene->size_px; x += 192) {
            float cx = (float)x + 128, cy = (float)y + 128, depth = -1e9f;
            for (int i = 0; i < scene->n_lesions; i++)
                depth = fmaxf(depth, phantom_curve_depth(&scene->lesions[i].outline, cx, cy));
            if (in_lesion ? depth < 0 : depth > -400 || phantom_scene_tissue(scene, cx, cy) < 100)
                continue;
            phantom_painter_use(painter, scene);
            phantom_paint(painter, x, y, 256, 256, px[0][0], 768, 0);
            phantom_painter_use(painter, &clean);
            phantom_paint(painter, x, y, 256, 256, plain[0][0], 768, 0);
            inked += memcmp(px, plain, sizeof px) != 0, ++*n;
        }
    phantom_painter_free(painter);
    return *n ? (double)inked / *n : 0;
}

static void ink_is_on_tumour_alone(void **state)
{
    (void)state;
    struct phantom_scene scene;
    int n = 0;
    for (int64_t slide = 0; slide < 2; slide++) {
        phantom_scene_make(3, slide, 4096, 0, &scene);
        phantom_pen_apply(&scene, PEN_TUMOR);
        assert_true((scene.pen.n_points > 0) == scene.tumor);
        if (scene.tumor)
            assert_true(share_inked(&scene, true, &n) > 0.9 && n > 0);
        assert_true(share_inked(&scene, false, &n) == 0 && n > 4);
        phantom_pen_apply(&scene, PEN_NONE);
        assert_int_equal(scene.pen.n_points, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_rectangle_shows_the_same_nuclei),
        cmocka_unit_test(outlines_are_those_of_the_labels),
        cmocka_unit_test(nuclei_are_dark_and_the_ring_around_them_is_not),
        cmocka_unit_test(ink_is_on_tumour_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
