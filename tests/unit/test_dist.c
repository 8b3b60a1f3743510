/* test_dist.c: what of src/dist can be seen on one rank: compression against its definition (u = m
 * u
 * + g, v += u, the largest are sent and forgotten), buckets that cover a vector once. Many ranks
 * are tested by mpirun in tests/cli/train_ranks*.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "dist/buckets.h"
#include "dist/sparse.h"

#define COUNT 1000

static float gradient(int step, int64_t i)
{
    struct rng rng = rng_new(11, (uint64_t)step, (uint64_t)i);
    float value = (float)rng_normal(&rng);
    return i % 7 == 0 ? 0.5f : value; /* many are equal */
}

/* Is v[i] among the k largest of [begin, end)? Of equal ones the first are. */
static bool among(const double *v, int64_t begin, int64_t end, int64_t k, int64_t i)
{
    int64_t before = 0;
    for (int64_t j = begin; j < end; j++)
        before += fabs(v[j]) > fabs(v[i]) || (fabs(v[j]) == fabs(v[i]) && j < i);
    return before < k;
}

static void compression(void **state)
{
    (void)state;
    static const int64_t at[] = { 0, 400, 403, COUNT };
    static const bool whole[] = { false, true, false };
    struct ranks ranks = ranks_one();
    struct sparse *sparse = NULL;
    double u[COUNT] = { 0 }, v[COUNT] = { 0 };
    float sent[COUNT];
    assert_true(sparse_new(at, whole, 3, 0.5, &sparse, NULL));
    for (int step = 0; step < 20; step++) {
        double kept[COUNT];
        for (int64_t i = 0; i < COUNT; i++) {
            sent[i] = gradient(step, i);
            u[i] = (double)(float)(0.5 * u[i] + (double)sent[i]);
            kept[i] = v[i] = (double)(float)(v[i] + u[i]);
        }
        assert_true(sparse_sum(sparse, &ranks, sent, 0.01, NULL));
        for (int p = 0; p < 3; p++)
            for (int64_t i = at[p]; i < at[p + 1]; i++) {
                int64_t k = (int64_t)ceil(0.01 * (double)(at[p + 1] - at[p]));
                bool goes = whole[p] || among(kept, at[p], at[p + 1], k, i);
                double expected = whole[p] ? u[i] : goes ? kept[i] : 0;
                assert_true((double)sent[i] == expected);
                v[i] = goes ? 0 : v[i];
                u[i] = goes && !whole[p] ? 0 : u[i];
            }
    }
    int64_t count = 0;
    const float *rest = sparse_rest(sparse, &count);
    assert_int_equal(count, COUNT);
    for (int64_t i = 0; i < COUNT; i++)
        assert_true((double)rest[i] == v[i]);
    sparse_free(sparse);
}

struct record {
    float *data;
    int64_t begin[64], end[64];
    int n;
};

static bool keep_record(struct ranks *ranks, float *data, int64_t n, struct err *err)
{
    struct record *record = ranks->state;
    (void)err;
    record->begin[record->n] = data - record->data;
    record->end[record->n++] = data - record->data + n;
    return true;
}

static bool nothing(struct ranks *ranks, struct err *err)
{
    (void)ranks, (void)err;
    return true;
}

static bool finished(struct ranks *ranks, int64_t handle, struct err *err)
{
    (void)ranks, (void)handle, (void)err;
    return true;
}

/* From the end to the beginning, every float once, each bucket when its last parameter is there. */
static void buckets_cover(void **state)
{
    (void)state;
    static const int64_t at[] = { 0, 100, 120, 700, 710, COUNT };
    static const struct ranks_ops ops = { .start_sum = keep_record,
                                          .progress = nothing,
                                          .finish = finished };
    float data[COUNT] = { 0 };
    struct record record = { .data = data };
    struct ranks ranks = { .size = 2, .ops = &ops, .state = &record };
    struct buckets *buckets = NULL;
    assert_true(buckets_new(at, 5, 400 * 4, &buckets, NULL));
    buckets_begin(buckets, data);
    buckets_ready(buckets, &ranks, 710);
    assert_int_equal(record.n, 0); /* 700..710 belongs to the same bucket */
    buckets_ready(buckets, &ranks, 120);
    assert_int_equal(record.n, 0); /* complete, but not its turn */
    buckets_ready(buckets, &ranks, 700);
    assert_int_equal(record.n, 2);
    assert_true(buckets_finish(buckets, &ranks, NULL));
    assert_int_equal(record.n, 3);
    int64_t end = COUNT;
    for (int i = 0; i < record.n; i++) {
        assert_int_equal(record.end[i], end);
        end = record.begin[i];
    }
    assert_int_equal(end, 0);
    buckets_free(buckets);
}

/* The bucket that is complete last holds what lies within the first BUCKETS_LAST_BYTES. */
static void last_bucket_is_small(void **state)
{
    (void)state;
    enum { SMALL = BUCKETS_LAST_BYTES / 4, ALL = 3 * SMALL };
    static const int64_t at[] = { 0, 1000, SMALL - 10, SMALL + 10, 2 * SMALL, ALL };
    static const struct ranks_ops ops = { .start_sum = keep_record,
                                          .progress = nothing,
                                          .finish = finished };
    float *data = calloc(ALL, sizeof *data);
    struct record record = { .data = data };
    struct ranks ranks = { .size = 2, .ops = &ops, .state = &record };
    struct buckets *buckets = NULL;
    assert_true(buckets_new(at, 5, 100 << 20, &buckets, NULL));
    buckets_begin(buckets, data);
    for (int i = 4; i >= 2; i--)
        buckets_ready(buckets, &ranks, at[i]);
    assert_int_equal(record.n, 1);
    assert_int_equal(record.begin[0], SMALL - 10);
    ranks.started = 1, ranks.ended = 1;
    assert_true(buckets_finish(buckets, &ranks, NULL));
    assert_int_equal(record.n, 2);
    assert_int_equal(record.end[1], SMALL - 10);
    struct buckets_times times = buckets_times(buckets);
    assert_int_equal(times.buckets, 2);
    assert_int_equal(times.hidden_buckets, 1);
    assert_int_equal(times.bytes, ALL * 4);
    assert_int_equal(times.hidden_bytes, (ALL - SMALL + 10) * 4);
    buckets_free(buckets);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(compression),
                                        cmocka_unit_test(buckets_cover),
                                        cmocka_unit_test(last_bucket_is_small) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
