/* test_panel.c: a map over its image: colours, the line around the hottest areas, unseen pixels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "explain/panel.h"
#include "tests/unit/support/paths.h"

enum { SIDE = PANEL_LEAST_PX };

/* The pixel of the right half, which has the map. */
static const uint8_t *over(const struct image *panel, int64_t x, int64_t y)
{
    return image_at(panel, SIDE + PANEL_GAP_PX + x, y);
}

static bool is_dark(const uint8_t *px)
{
    return px[0] < 30 && px[1] < 30 && px[2] < 30;
}

static void areas_have_a_line_and_single_pixels_none(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct image image = { 0 }, panel = { 0 };
    float *map = calloc((size_t)SIDE * SIDE, sizeof *map);
    char *path = scratch_path("panel.png");
    assert_non_null(map);
    assert_true(image_new(&image, SIDE, SIDE, 3, &err));
    memset(image.px, 200, image_bytes(&image));
    for (int y = 50; y < 55; y++)
        for (int x = 50; x < 55; x++)
            map[y * SIDE + x] = 1;
    map[100 * SIDE + 100] = 1;
    map[150 * SIDE + 150] = -1;
    map[0] = NAN;
    struct panel wanted = { .image = &image, .map = map, .positive = false, .hot = 0.5 };
    assert_true(panel_write(path, &wanted, &err));
    assert_true(image_read_png(path, 3, &panel, &err));
    assert_int_equal(panel.width, 2 * SIDE + PANEL_GAP_PX);
    assert_int_equal(*image_at(&panel, 52, 52), 200); /* the image itself is on the left */
    assert_true(is_dark(over(&panel, 49, 52)));
    assert_true(is_dark(over(&panel, 52, 55)));
    assert_false(is_dark(over(&panel, 99, 100)));
    const uint8_t *hot = over(&panel, 100, 100), *cold = over(&panel, 150, 150);
    assert_true(hot[0] > 200 && hot[1] > 200 && hot[2] < 60);
    assert_true(cold[2] > 150 && cold[0] < 60);
    assert_int_equal(over(&panel, 20, 20)[0], 200);
    assert_true(over(&panel, 0, 0)[0] > 220); /* not seen: paler */
    image_free(&panel);
    image_free(&image);
    free(map);
    free(path);
}

/* One pixel that is ten times the others must not make them invisible. */
static void a_single_pixel_does_not_hide_the_others(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct image image = { 0 }, panel = { 0 };
    float *map = calloc((size_t)SIDE * SIDE, sizeof *map);
    char *path = scratch_path("panel-single.png");
    assert_non_null(map);
    assert_true(image_new(&image, SIDE, SIDE, 3, &err));
    memset(image.px, 200, image_bytes(&image));
    for (int i = 0; i < SIDE; i++)
        map[10 * SIDE + i] = 0.1f;
    map[100 * SIDE + 100] = 1;
    struct panel wanted = { .image = &image, .map = map, .positive = true, .hot = 0.5 };
    assert_true(panel_write(path, &wanted, &err));
    assert_true(image_read_png(path, 3, &panel, &err));
    assert_true(over(&panel, 50, 10)[2] < 60);
    assert_true(over(&panel, 100, 100)[2] < 60);
    image_free(&panel);
    image_free(&image);
    free(map);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(areas_have_a_line_and_single_pixels_none),
        cmocka_unit_test(a_single_pixel_does_not_hide_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
