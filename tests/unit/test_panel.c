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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(areas_have_a_line_and_single_pixels_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
