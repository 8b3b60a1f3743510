/* test_drawn_image.c: a drawn image is the same in whatever regions it is read; arrays written part
 * by part; the memory of the process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/npy.h"
#include "base/room.h"
#include "net/model/drawn_image.h"
#include "support/paths.h"

#define CHANNELS 6
#define HEIGHT 19
#define WIDTH 23

static void regions_agree(void **state)
{
    (void)state;
    struct drawn_image image = { .seed = 3, .channels = CHANNELS };
    struct plan_source source = drawn_image_source(&image);
    static float whole[CHANNELS * HEIGHT * WIDTH], part[CHANNELS * HEIGHT * WIDTH];
    struct err err = { 0 };
    drawn_image_read(&image, 40000, 70001, HEIGHT, WIDTH, whole);
    for (int64_t y = 0; y < HEIGHT; y += 5)
        for (int64_t x = 0; x < WIDTH; x += 3) {
            int64_t h = HEIGHT - y < 7 ? HEIGHT - y : 7, w = WIDTH - x < 10 ? WIDTH - x : 10;
            assert_true(source.read(source.arg, 40000 + y, 70001 + x, h, w, part, &err));
            for (int64_t c = 0; c < CHANNELS; c++)
                for (int64_t i = 0; i < h; i++)
                    assert_memory_equal(part + (c * h + i) * w,
                                        whole + (c * HEIGHT + y + i) * WIDTH + x,
                                        (size_t)w * sizeof *part);
        }
}

/* Noise: from -1 to 1, evenly, no two channels or places alike. */
static void it_is_noise(void **state)
{
    (void)state;
    struct drawn_image image = { .seed = 3, .channels = CHANNELS }, other = image;
    static float a[CHANNELS * 64 * 64], b[CHANNELS * 64 * 64];
    const int64_t n = CHANNELS * 64 * 64, plane = 64 * 64;
    other.seed = 4;
    drawn_image_read(&image, 0, 0, 64, 64, a);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        assert_true(fabs((double)a[i]) <= 1);
        sum += (double)a[i], squares += (double)a[i] * (double)a[i];
    }
    assert_true(fabs(sum / (double)n) < 0.02);
    assert_true(fabs(squares / (double)n - 1.0 / 3) < 0.02);
    for (int64_t c = 1; c < CHANNELS; c++)
        assert_memory_not_equal(a, a + c * plane, (size_t)plane * sizeof *a);
    drawn_image_read(&other, 0, 0, 64, 64, b);
    assert_memory_not_equal(a, b, sizeof a);
    drawn_image_read(&image, 64, 0, 64, 64, b);
    assert_memory_not_equal(a, b, sizeof a);
}

static void arrays_in_parts(void **state)
{
    (void)state;
    const float want[6] = { 1, 2, 3, 4, 5, 6 };
    char *path = scratch_path("parts.npy");
    struct npy_out out;
    struct err err = { 0 };
    float *values = NULL;
    int64_t height = 0, width = 0;
    assert_true(npy_out_open(&out, path, (int64_t[]){ 2, 3 }, 2, &err));
    assert_true(npy_out_put(&out, 3, want + 3, 3, &err));
    assert_true(npy_out_put(&out, 0, want, 3, &err));
    assert_true(npy_out_commit(&out, &err));
    npy_out_discard(&out);
    assert_true(npy_read(path, &values, &height, &width, &err));
    assert_int_equal(height, 2);
    assert_int_equal(width, 3);
    assert_memory_equal(values, want, sizeof want);
    free(values);

    /* one that is abandoned leaves the file as it was */
    assert_true(npy_out_open(&out, path, (int64_t[]){ 4, 3 }, 2, &err));
    npy_out_discard(&out);
    assert_true(npy_read(path, &values, &height, &width, &err));
    assert_int_equal(height, 2);
    free(values);
    free(path);
}

static void memory_that_is_used_counts(void **state)
{
    (void)state;
    const size_t bytes = (size_t)64 << 20;
    size_t before = room_resident();
    char *memory = malloc(bytes);
    assert_non_null(memory);
    memset(memory, 1, bytes);
    assert_true(before > 0 && room_resident() >= before + bytes / 2);
    assert_true(memory[bytes / 3] == 1);
    free(memory);
    assert_true(room_peak() >= before + bytes / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_agree),
        cmocka_unit_test(it_is_noise),
        cmocka_unit_test(arrays_in_parts),
        cmocka_unit_test(memory_that_is_used_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
