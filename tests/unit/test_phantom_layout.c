/* test_phantom_layout.c: cords that run one way or both ways: the same when seen one at a
 * time, and different when several are seen together. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "phantom/phantom_field.h"
#include "phantom/phantom_layout.h"

enum { SIZE_PX = 8192, STEP_PX = 32, SMALL_PX = 512, LARGE_PX = 2048, SLIDES = 4 };

/* Edges of a window: how much of them there is, and how much of it in one direction. */
struct edges {
    double amount, x, y; /* x, y: the double angle, weighted */
};

static struct edges edges_of(const struct phantom_scene *scene, float left, float top, int side_px)
{
    struct edges sum = { 0 };
    for (int j = 0; j < side_px; j += STEP_PX)
        for (int i = 0; i < side_px; i += STEP_PX) {
            float x = left + (float)i, y = top + (float)j;
            double dx = phantom_layout_cord(scene, x + STEP_PX, y) -
                        phantom_layout_cord(scene, x - STEP_PX, y);
            double dy = phantom_layout_cord(scene, x, y + STEP_PX) -
                        phantom_layout_cord(scene, x, y - STEP_PX);
            sum.amount += dx * dx + dy * dy;
            sum.x += dx * dx - dy * dy;
            sum.y += 2 * dx * dy;
        }
    return sum;
}

struct seen {
    double covered;  /* fraction of the slide in cords */
    double coherent; /* 1: edges of a window have one direction, 0: all; the mean over windows */
};

static struct seen look(bool parallel, int side_px)
{
    struct seen seen = { 0 };
    double covered = 0, points = 0, edges = 0;
    for (int64_t slide = 0; slide < SLIDES; slide++) {
        struct phantom_scene scene;
        phantom_scene_make(7, slide, SIZE_PX, 0, &scene);
        phantom_layout_apply(&scene, LAYOUT_CORDS);
        scene.tumor = parallel;
        int64_t first = 512 + slide * PHANTOM_CORDS_APART_PX / SLIDES; /* not in step with cords */
        for (int64_t y = first; y + side_px <= SIZE_PX - 512; y += LARGE_PX / 2)
            for (int64_t x = first; x + side_px <= SIZE_PX - 512; x += LARGE_PX / 2) {
                struct edges window = edges_of(&scene, (float)x, (float)y, side_px);
                seen.coherent += hypot(window.x, window.y); /* weighted by the amount of edges */
                edges += window.amount;
                for (int k = 0; k < 64; k++, points++)
                    covered += (double)phantom_layout_cord(&scene, (float)(x + 61 * (k % 8)),
                                                           (float)(y + 61 * (k / 8)));
            }
    }
    return (struct seen){ covered / points, seen.coherent / edges };
}

static void small_windows_do_not_tell_but_large_ones_do(void **state)
{
    (void)state;
    struct seen small[2], large[2];
    for (int parallel = 0; parallel < 2; parallel++) {
        small[parallel] = look(parallel, SMALL_PX);
        large[parallel] = look(parallel, LARGE_PX);
    }
    assert_true(fabs(small[0].covered - small[1].covered) < 0.01);
    assert_true(small[0].covered > 0.05 && small[0].covered < 0.12);
    assert_true(fabs(small[0].coherent - small[1].coherent) < 0.08);
    assert_true(large[1].coherent - large[0].coherent > 0.25);
}

static void tissue_is_cords_and_collagen(void **state)
{
    (void)state;
    struct phantom_scene scene;
    phantom_scene_make(7, 1, 4096, 0, &scene);
    phantom_layout_apply(&scene, LAYOUT_CORDS);
    assert_int_equal(scene.n_lesions, 0);
    int64_t kinds[KIND_FAT + 1] = { 0 }, wrong = 0;
    for (float y = 512; y < 3584; y += 32)
        for (float x = 512; x < 3584; x += 32) {
            enum phantom_kind kind = phantom_kind_at(&scene, x, y, 0);
            float cord = phantom_layout_cord(&scene, x, y);
            kinds[kind]++;
            wrong += fabsf(cord - 0.5f) > 0.1f && (kind == KIND_LYMPHOID) != (cord > 0.5f);
        }
    assert_int_equal(wrong, 0);
    assert_int_equal(kinds[KIND_TUMOR] + kinds[KIND_FAT] + kinds[KIND_NONE], 0);
    assert_true(kinds[KIND_LYMPHOID] > 300);
}

static void a_node_stays_as_it_was_and_labels_tell_layouts_apart(void **state)
{
    (void)state;
    struct phantom_scene made, applied;
    for (int64_t slide = 0; slide < 2; slide++) {
        phantom_scene_make(7, slide, 4096, 0, &made);
        phantom_scene_make(7, slide, 4096, 0, &applied);
        phantom_layout_apply(&applied, LAYOUT_NODE);
        assert_memory_equal(&made, &applied, sizeof made);
        assert_string_equal(phantom_layout_label(&applied), made.tumor ? "tumor" : "normal");
        phantom_layout_apply(&applied, LAYOUT_CORDS);
        assert_string_equal(phantom_layout_label(&applied), made.tumor ? "parallel" : "crossed");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_windows_do_not_tell_but_large_ones_do),
        cmocka_unit_test(tissue_is_cords_and_collagen),
        cmocka_unit_test(a_node_stays_as_it_was_and_labels_tell_layouts_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
