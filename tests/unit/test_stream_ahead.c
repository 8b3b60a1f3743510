/* test_stream_ahead.c: the parts of a pass come in order and stay until the call after the next; a
 * pass may be abandoned anywhere; the source is never called twice at once; an error comes with
 * the part that has it; skipped parts cost nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "net/stream/ahead.h"

#define N 40
#define CHANNELS 3
#define MOST (CHANNELS * 64 * 64)

struct picture {
    atomic_int inside, reads;
    int64_t bad_y; /* parts there cannot be read; -1: none */
    long nanoseconds;
};

static float pixel(int64_t channel, int64_t y, int64_t x)
{
    return (float)(channel * 1000000 + y * 1000 + x);
}

static bool read_picture(void *arg, int64_t y, int64_t x, int64_t h, int64_t w, float *out,
                         struct err *err)
{
    struct picture *picture = arg;
    if (atomic_fetch_add(&picture->inside, 1) != 0)
        return err_set(err, ERR_USAGE, "called twice at once");
    atomic_fetch_add(&picture->reads, 1);
    nanosleep(&(struct timespec){ .tv_nsec = picture->nanoseconds }, NULL);
    for (int64_t c = 0; c < CHANNELS; c++)
        for (int64_t row = 0; row < h; row++)
            for (int64_t column = 0; column < w; column++)
                *out++ = pixel(c, y + row, x + column);
    atomic_fetch_sub(&picture->inside, 1);
    return y == picture->bad_y ? err_set(err, ERR_IO, "row %d is torn", (int)y) : true;
}

static void parts_of(struct ahead_part parts[N], int64_t from)
{
    for (int64_t i = 0; i < N; i++)
        parts[i] = (struct ahead_part){ from + i, 2 * i, 1 + i % 64, 64 - i % 30 };
}

static void check(const float *pixels, const struct ahead_part *part)
{
    for (int64_t c = 0; c < CHANNELS; c++)
        for (int64_t row = 0; row < part->h; row++)
            for (int64_t column = 0; column < part->w; column++)
                assert_true(*pixels++ == pixel(c, part->y + row, part->x + column));
}

static struct ahead *ahead_of(struct picture *picture)
{
    struct plan_source source = { .arg = picture, .read = read_picture };
    struct ahead *ahead;
    struct err err;
    assert_true(ahead_new(&source, CHANNELS, MOST, &ahead, &err));
    return ahead;
}

static void next(struct ahead *ahead, const struct ahead_part *part)
{
    const float *pixels;
    struct err err;
    if (!ahead_next(ahead, &pixels, &err))
        fail_msg("%s", err.text);
    check(pixels, part);
    nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
    check(pixels, part); /* the reader is somewhere else */
}

static void passes(void **state)
{
    (void)state;
    for (long pace = 0; pace < 3; pace++) { /* who is faster? */
        struct picture picture = { .bad_y = -1, .nanoseconds = pace * 100000 };
        struct ahead *ahead = ahead_of(&picture);
        struct ahead_part parts[N];
        for (int pass = 0; pass < 3; pass++) {
            parts_of(parts, pass * 7);
            ahead_begin(ahead, parts, N);
            for (int64_t i = 0; i < N; i++)
                next(ahead, &parts[i]);
        }
        assert_int_equal(picture.reads, 3 * N);
        assert_true(ahead_waited_s(ahead) >= 0);
        ahead_free(ahead);
    }
    assert_int_equal(ahead_bytes(MOST, N), 2 * MOST * sizeof(float));
    assert_int_equal(ahead_bytes(MOST, 1), MOST * sizeof(float));
}

static void abandoned(void **state)
{
    (void)state;
    struct picture picture = { .bad_y = -1, .nanoseconds = 200000 };
    struct ahead_part parts[2][N];
    parts_of(parts[0], 0), parts_of(parts[1], 500);
    for (int64_t upto = 0; upto < 6; upto++) {
        struct ahead *ahead = ahead_of(&picture);
        for (int turn = 0; turn < 6; turn++) {
            ahead_begin(ahead, parts[turn % 2], N);
            for (int64_t i = 0; i < upto; i++)
                next(ahead, &parts[turn % 2][i]);
        }
        ahead_free(ahead);
    }
    ahead_free(ahead_of(&picture));
}

static void errors(void **state)
{
    (void)state;
    struct picture picture = { .bad_y = 5 };
    struct ahead *ahead = ahead_of(&picture);
    struct ahead_part parts[N];
    const float *pixels;
    struct err err;
    parts_of(parts, 0);
    for (int pass = 0; pass < 2; pass++) {
        ahead_begin(ahead, parts, N);
        for (int64_t i = 0; i < 5; i++)
            next(ahead, &parts[i]);
        for (int again = 0; again < 2; again++) {
            assert_false(ahead_next(ahead, &pixels, &err));
            assert_string_equal(err.text, "row 5 is torn");
        }
    }
    ahead_begin(ahead, parts, N);
    for (int64_t i = 0; i < N; i++) /* nobody needs row 5 */
        if (i == 5)
            ahead_skip(ahead);
        else
            next(ahead, &parts[i]);
    parts[0].w = 65, parts[0].h = 64;
    ahead_begin(ahead, parts, N);
    assert_false(ahead_next(ahead, &pixels, &err));
    assert_non_null(strstr(err.text, "65 x 64 px"));
    ahead_free(ahead);
}

static void skipped(void **state)
{
    (void)state;
    struct picture picture = { .bad_y = -1, .nanoseconds = 1000000 };
    struct ahead *ahead = ahead_of(&picture);
    struct ahead_part parts[N];
    parts_of(parts, 0);
    for (int64_t step = 1; step < 9; step++) {
        picture.reads = 0;
        ahead_begin(ahead, parts, N);
        for (int64_t i = 0; i < N; i++)
            if (i % step == 0)
                next(ahead, &parts[i]);
            else
                ahead_skip(ahead);
        if (step == 8) /* 5 were needed, and at most 2 were being read when they were skipped */
            assert_true(picture.reads <= 15);
    }
    ahead_free(ahead);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes),
        cmocka_unit_test(abandoned),
        cmocka_unit_test(errors),
        cmocka_unit_test(skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
