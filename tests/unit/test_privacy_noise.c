/* test_privacy_noise.c: the key of private training, its cipher against RFC 8439, normal noise and
 * Poisson sampling against their distributions. Keys are fixed, so that results are the same every
 * time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "privacy/noise.h"
#include "privacy/poisson.h"

static struct secret fixed_key(void)
{
    struct secret secret;
    for (int i = 0; i < SECRET_BYTES; i++)
        secret.key[i] = (uint8_t)i;
    return secret;
}

static void cipher_is_that_of_the_rfc(void **state)
{
    /* RFC 8439, 2.3.2: key 00 01 .. 1f, nonce 00 00 00 09 00 00 00 4a 00 00 00 00, block 1 */
    static const uint8_t expected[64] = {
        0x10, 0xf1, 0xe7, 0xe4, 0xd1, 0x3b, 0x59, 0x15, 0x50, 0x0f, 0xdd, 0x1f, 0xa3,
        0x20, 0x71, 0xc4, 0xc7, 0xd1, 0xf4, 0xc7, 0x33, 0xc0, 0x68, 0x03, 0x04, 0x22,
        0xaa, 0x9a, 0xc3, 0xd4, 0x6c, 0x4e, 0xd2, 0x82, 0x64, 0x46, 0x07, 0x9f, 0xaa,
        0x09, 0x14, 0xc2, 0xd7, 0x05, 0xd9, 0x8b, 0x02, 0xa2, 0xb5, 0x12, 0x9c, 0xd1,
        0xde, 0x16, 0x4e, 0xb9, 0xcb, 0xd0, 0x83, 0xe8, 0xa2, 0x50, 0x3c, 0x4e
    };
    struct secret secret = fixed_key();
    uint64_t words[2 * CIPHER_WORDS], second[CIPHER_WORDS];
    (void)state;
    cipher_words(&secret, 0x09000000u, 0x4a000000u, 1, 2, words);
    for (int i = 0; i < 64; i++)
        assert_int_equal((words[i / 8] >> (8 * (i % 8))) & 0xff, expected[i]);
    cipher_words(&secret, 0x09000000u, 0x4a000000u, 2, 1, second);
    assert_memory_equal(second, words + CIPHER_WORDS, sizeof second);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

#define MANY 400000

/* The words of the cipher by the functions of the C library. */
static void noise_is_that_of_box_and_muller(void **state)
{
    struct secret secret = { { 5, 6 } };
    static uint64_t words[500 * CIPHER_WORDS];
    static double values[500 * CIPHER_WORDS];
    double worst = 0;
    (void)state;
    cipher_words(&secret, CIPHER_NOISE, 9, 0, 500, words);
    noise_normals(&secret, 9, 0, 500 * CIPHER_WORDS, values);
    for (size_t i = 0; i < 500 * CIPHER_WORDS; i += 2) {
        double radius = sqrt(-2 * log((double)((words[i] >> 11) + 1) * 0x1p-53));
        double angle = 2 * M_PI * ((double)(words[i + 1] >> 11) * 0x1p-53);
        worst = fmax(worst, fabs(values[i] - radius * cos(angle)));
        worst = fmax(worst, fabs(values[i + 1] - radius * sin(angle)));
    }
    print_message("off by %.1e\n", worst);
    assert_true(worst < 1e-14);
}

static void noise_is_normal(void **state)
{
    struct secret secret = fixed_key();
    double *values = malloc(MANY * sizeof *values), sum[5] = { 0 }, furthest = 0, lag = 0;
    (void)state;
    noise_normals(&secret, 7, 0, MANY, values);
    for (int i = 0; i < MANY; i++) {
        double power = 1;
        for (int k = 1; k <= 4; k++)
            sum[k] += power *= values[i];
        lag += i > 0 ? values[i] * values[i - 1] : 0;
    }
    /* five standard errors of each moment */
    assert_true(fabs(sum[1] / MANY) < 5 / sqrt(MANY));
    assert_true(fabs(sum[2] / MANY - 1) < 5 * sqrt(2.0 / MANY));
    assert_true(fabs(sum[3] / MANY) < 5 * sqrt(15.0 / MANY));
    assert_true(fabs(sum[4] / MANY - 3) < 5 * sqrt(96.0 / MANY));
    assert_true(fabs(lag / MANY) < 5 / sqrt(MANY));
    /* Kolmogorov and Smirnov: p > 0.001 */
    qsort(values, MANY, sizeof *values, by_value);
    for (int i = 0; i < MANY; i++) {
        double below = 0.5 * erfc(-values[i] / sqrt(2));
        furthest = fmax(furthest, fmax(below - (double)i / MANY, (i + 1.0) / MANY - below));
    }
    assert_true(furthest * sqrt(MANY) < 1.95);
    assert_true(furthest * sqrt(MANY) > 0.2); /* a grid would be too good */
    /* quantiles of the normal distribution: 0.1 %, 2.5 %, 50 %, 84.134 %, 99.9 % */
    assert_true(fabs(values[MANY / 1000] + 3.0902) < 0.08);
    assert_true(fabs(values[MANY / 40] + 1.95996) < 0.03);
    assert_true(fabs(values[MANY / 2]) < 0.01);
    assert_true(fabs(values[(int)(MANY * 0.841344746)] - 1) < 0.015);
    assert_true(fabs(values[MANY - MANY / 1000] - 3.0902) < 0.08);
    free(values);
}

static void noise_can_be_made_in_parts(void **state)
{
    struct secret secret = fixed_key(), other = fixed_key();
    double whole[3000], part[3000], another[3000];
    float sum[3000], parts[3000];
    (void)state;
    other.key[31] ^= 1;
    noise_normals(&secret, 3, 0, 3000, whole);
    noise_normals(&secret, 3, 1001, 999, part);
    assert_memory_equal(whole + 1001, part, 999 * sizeof *part);
    noise_normals(&secret, 4, 0, 3000, another);
    assert_memory_not_equal(whole, another, sizeof whole);
    noise_normals(&other, 3, 0, 3000, another);
    assert_memory_not_equal(whole, another, sizeof whole);
    for (int i = 0; i < 3000; i++)
        sum[i] = parts[i] = (float)i;
    noise_add(&secret, 3, 0, 3000, 2.5, 0.5, sum);
    for (int i = 0; i < 3000; i += 7)
        noise_add(&secret, 3, i, i + 7 < 3000 ? 7 : 3000 - i, 2.5, 0.5, parts + i);
    assert_memory_equal(sum, parts, sizeof sum);
    for (int i = 0; i < 3000; i++)
        assert_true(fabs(sum[i] - (i + 2.5 * whole[i]) * 0.5) < 1e-3);
}

#define STEPS 4000
#define UNITS 2000
#define RATE 0.01

/* Batch sizes against the binomial distribution, and units against each other: chi-square. */
static void batches_are_poisson(void **state)
{
    struct secret secret = fixed_key();
    static int64_t out[UNITS], seen[UNITS];
    int64_t sizes[41] = { 0 };
    double square = 0, each = 0, p = pow(1 - RATE, UNITS), tail = 1;
    (void)state;
    for (uint64_t step = 0; step < STEPS; step++) {
        int64_t n = poisson_draw(&secret, CIPHER_SAMPLE, step, RATE, UNITS, out);
        assert_int_equal(n, poisson_draw(&secret, CIPHER_SAMPLE, step, RATE, UNITS, NULL));
        for (int64_t i = 0; i < n; i++) {
            assert_true(i == 0 || out[i] > out[i - 1]);
            seen[out[i]]++;
        }
        sizes[n < 40 ? n : 40]++;
    }
    /* bins 10 .. 30, what is below and what is above; expectations of at least 10 */
    double low = 0, expected_low = 0;
    for (int k = 0; k < 31; k++) {
        double expected = STEPS * p;
        tail -= p;
        if (k < 10) {
            low += (double)sizes[k], expected_low += expected;
        } else {
            square += ((double)sizes[k] - expected) * ((double)sizes[k] - expected) / expected;
        }
        p *= (double)(UNITS - k) / (k + 1) * RATE / (1 - RATE);
    }
    int64_t high = 0;
    for (int k = 31; k <= 40; k++)
        high += sizes[k];
    square += (low - expected_low) * (low - expected_low) / expected_low;
    square += ((double)high - STEPS * tail) * ((double)high - STEPS * tail) / (STEPS * tail);
    assert_true(square < 48.3); /* chi-square, 22 degrees of freedom, p = 0.001 */
    for (int i = 0; i < UNITS; i++) {
        double expected = STEPS * RATE, off = (double)seen[i] - expected;
        each += off * off / (expected * (1 - RATE));
    }
    assert_true(fabs(each - UNITS) < 4 * sqrt(2.0 * UNITS));
    assert_int_equal(poisson_draw(&secret, CIPHER_SAMPLE, 0, 1, UNITS, out), UNITS);
}

static void key_is_for_its_owner_and_destroyed(void **state)
{
    char folder[] = "/tmp/microtome-key-XXXXXX", path[80], alias[80], second[80], third[80];
    struct secret made, opened;
    struct stat info;
    struct err err = { 0 };
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/noise.key", folder);
    snprintf(alias, sizeof alias, "%s/link", folder);
    snprintf(second, sizeof second, "%s/second", folder);
    snprintf(third, sizeof third, "%s/third", folder);
    mode_t before = umask(0);
    assert_true(secret_create(path, &made, &err));
    umask(before);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(info.st_size, SECRET_BYTES);
    assert_false(secret_create(path, &opened, &err)); /* never another's file */
    assert_true(secret_open(path, &opened, &err));
    assert_memory_equal(&made, &opened, sizeof made);
    assert_int_equal(symlink(path, alias), 0);
    assert_false(secret_open(alias, &opened, &err));
    assert_int_equal(chmod(path, 0640), 0);
    assert_false(secret_open(path, &opened, &err));
    assert_non_null(strstr(err.text, "others may have read the key (mode 640)"));
    /* what is behind another name of the file is overwritten */
    unlink(alias);
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(rename(path, second), 0);
    assert_int_equal(symlink(second, path), 0);
    assert_false(secret_destroy(path, &err)); /* not through a link, which is removed */
    assert_true(secret_open(second, &opened, &err));
    unlink(path);
    assert_int_equal(link(second, third), 0);
    assert_true(secret_destroy(second, &err));
    assert_int_not_equal(access(second, F_OK), 0);
    assert_true(secret_open(third, &opened, &err));
    for (int i = 0; i < SECRET_BYTES; i++)
        assert_int_equal(opened.key[i], 0);
    assert_true(secret_destroy(second, &err)); /* there is none */
    secret_forget(&made);
    assert_memory_equal(&made, &opened, sizeof made);
    unlink(third);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cipher_is_that_of_the_rfc),
        cmocka_unit_test(noise_is_normal),
        cmocka_unit_test(noise_is_that_of_box_and_muller),
        cmocka_unit_test(noise_can_be_made_in_parts),
        cmocka_unit_test(batches_are_poisson),
        cmocka_unit_test(key_is_for_its_owner_and_destroyed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
