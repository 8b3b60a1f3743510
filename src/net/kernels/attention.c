/* attention.c: see attention.h. A block of QUERIES rows meets up to KEYS keys at a time; the scores
 * of a block are all that is kept of them. Keys (backward also values) are transposed once for each
 * sample and head, so that products run along them, and packed as gemm.h reads them best. */
#include "net/kernels/attention.h"
#include <math.h>
#include <omp.h>
#include <string.h>
#include "base/divide.h"
#include "net/kernels/reg.h"
#include "net/kernels/gemm.h"

#define QUERIES 48 /* whole tiles of gemm.h, with 6 rows or 8 */
#define KEYS 512
#define STEP 16 /* scores of a row that are processed together */

struct attention_loops {
    float (*finish_scores)(int64_t n, float scale, const float *bias, const float *mask, float *s);
    float (*exponentials)(int64_t n, float top, float *s);
    void (*score_gradients)(int64_t n, const float *p, float d, float scale, float *dbias,
                            float *dp);
    float (*row_product)(int64_t n, const float *a, const float *b);
    void (*scale_row)(int64_t n, float factor, float *y);
};

#define LOOPS "net/kernels/attention_loops.h"
#include "net/kernels/each_level.h"

/* One sample and head. */
struct head {
    const struct attention *a;
    const struct attention_loops *loops;
    gemm_function *gemm;
    const float *q, *k, *v, *bias, *mask, *dy;
    float *y, *sums, *dq, *dk, *dv, *dbias;
    int64_t panel, block_keys;
    const float *next_q, *next_k, *next_v; /* forward: of the head after this one; NULL: none */
    /* scratch of the thread */
    float *k_turned, *v_turned; /* [width, keys] packed */
    float *v_packed;            /* [keys, width] packed; forward: in the place of v_turned */
    float *p, *dp;              /* [QUERIES, block_keys] */
};

/* Queries and keys that meet. */
struct block {
    int64_t query, queries, key, keys;
};

static int64_t whole_of(int64_t n, int64_t step)
{
    return ceil_div(n, step) * step;
}

/* Keys of a block: whole panels and steps; all blocks are about as large. */
static int64_t block_keys(const struct attention *a)
{
    int64_t panel = gemm_panel(a->level);
    return whole_of(ceil_div(a->keys, ceil_div(a->keys, KEYS)), panel < STEP ? STEP : panel);
}

/* Of k or v, packed in either way. */
static int64_t packed_floats(const struct attention *a)
{
    int64_t turned = gemm_packed_floats(a->level, a->keys, a->width);
    int64_t straight = gemm_packed_floats(a->level, a->width, a->keys);
    return whole_of(turned > straight ? turned : straight, STEP);
}

static size_t thread_floats(const struct attention *a)
{
    return (size_t)(2 * packed_floats(a) + 2 * QUERIES * block_keys(a));
}

size_t attention_scratch_floats(const struct attention *a)
{
    return thread_floats(a) * (size_t)a->threads;
}

static float *moved(float *at, int64_t floats)
{
    return at ? at + floats : NULL;
}

static struct head head_of(const struct attention *a, const struct attention_arrays *at,
                           int64_t sample, int64_t head)
{
    int64_t bias = sample * a->bias_sample + head * a->bias_head, column = head * a->width;
    int64_t q = sample * a->queries * a->q_step + column, k = sample * a->keys * a->k_step + column;
    int64_t v = sample * a->keys * a->v_step + column, y = sample * a->queries * a->y_step + column;
    float *scratch = at->scratch + (size_t)omp_get_thread_num() * thread_floats(a);
    struct head h = {
        .a = a,
        .loops = SIMD_PICK(a->level, &attention_loops, &attention_loops_portable),
        .gemm = gemm_of(a->level),
        .q = at->q + q,
        .k = at->k + k,
        .v = at->v + v,
        .bias = at->bias ? at->bias + bias : NULL,
        .mask = at->mask ? at->mask + sample * a->keys : NULL,
        .dy = at->dy ? at->dy + y : NULL,
        .y = at->y + y,
        .sums = moved(at->sums, (sample * a->heads + head) * a->queries),
        .dq = moved(at->dq, q),
        .dk = moved(at->dk, k),
        .dv = moved(at->dv, v),
        .dbias = moved(at->dbias, bias),
        .panel = gemm_panel(a->level),
        .block_keys = block_keys(a),
        .k_turned = scratch,
    };
    h.v_turned = h.v_packed = h.k_turned + packed_floats(a);
    h.p = h.v_turned + packed_floats(a);
    h.dp = h.p + QUERIES * h.block_keys;
    return h;
}

static struct block block_at(const struct head *h, int64_t query, int64_t key)
{
    int64_t queries = h->a->queries - query, keys = h->a->keys - key;
    return (struct block){ query, queries < QUERIES ? queries : QUERIES, key,
                           keys < h->block_keys ? keys : h->block_keys };
}

/* to = rows [keys, width] transposed and packed */
static void turn(const struct attention *a, const float *rows, int64_t step, float *to)
{
    gemm_pack(a->level, a->keys, a->width, rows, 1, step, 0,
              ceil_div(a->keys, gemm_panel(a->level)), to);
}

/* to [queries, keys] = rows [queries, width] times turned [width, keys] */
static void meet(const struct head *h, const struct block *b, const float *rows, int64_t step,
                 const float *turned, float *to)
{
    h->gemm(&(struct gemm){ .m = b->queries,
                            .n = b->keys,
                            .k = h->a->width,
                            .a = rows + b->query * step,
                            .a_row = step,
                            .a_column = 1,
                            .b = turned + b->key * h->a->width,
                            .b_row = h->panel,
                            .b_panel = h->panel * h->a->width,
                            .c = to,
                            .c_row = h->block_keys });
}

static const float *bias_of(const struct head *h, const struct block *b, int64_t r)
{
    return h->bias ? h->bias + (b->query + r) * h->a->keys + b->key : NULL;
}

/* Brings one row of the next head to the caches: it lies among those of other heads, so that the
 * processor would not expect it. */
static void fetch_row(const struct head *h, int64_t row)
{
    const struct attention *a = h->a;
    for (int64_t i = 0; h->next_q && i < a->width; i += 16) {
        __builtin_prefetch(h->next_q + row * a->q_step + i);
        if (row < a->keys) {
            __builtin_prefetch(h->next_k + row * a->k_step + i);
            __builtin_prefetch(h->next_v + row * a->v_step + i);
        }
    }
}

/* p = the exponentials of a block less the largest score of each row so far; y and the sums so far
 * are brought to that. */
static void soften(const struct head *h, const struct block *b, float *top, float *sum)
{
    for (int64_t r = 0; r < b->queries; r++) {
        float *row = h->p + r * h->block_keys;
        if (b->key == 0)
            fetch_row(h, b->query + r);
        float most = h->loops->finish_scores(b->keys, h->a->scale, bias_of(h, b, r),
                                             h->mask ? h->mask + b->key : NULL, row);
        most = most > top[r] ? most : top[r];
        if (most == -INFINITY) { /* nothing is seen yet */
            memset(row, 0, (size_t)b->keys * sizeof *row);
            continue;
        }
        if (b->key > 0 && most > top[r]) {
            float factor = expf(top[r] - most);
            sum[r] *= factor;
            h->loops->scale_row(h->a->width, factor, h->y + (b->query + r) * h->a->y_step);
        }
        top[r] = most;
        sum[r] += h->loops->exponentials(whole_of(b->keys, STEP), most, row);
    }
}

static void forward_queries(const struct head *h, int64_t query)
{
    const struct attention *a = h->a;
    float top[QUERIES], sum[QUERIES] = { 0 };
    struct block b = block_at(h, query, 0);
    for (int r = 0; r < QUERIES; r++)
        top[r] = -INFINITY;
    for (int64_t key = 0; key < a->keys; key += h->block_keys) {
        b = block_at(h, query, key);
        meet(h, &b, h->q, a->q_step, h->k_turned, h->p);
        soften(h, &b, top, sum);
        h->gemm(&(struct gemm){ .m = b.queries,
                                .n = a->width,
                                .k = b.keys,
                                .a = h->p,
                                .a_row = h->block_keys,
                                .a_column = 1,
                                .b = h->v_packed + key * h->panel,
                                .b_row = h->panel,
                                .b_panel = h->panel * a->keys,
                                .c = h->y + query * a->y_step,
                                .c_row = a->y_step,
                                .add = key > 0 });
    }
    for (int64_t r = 0; r < b.queries; r++) {
        h->loops->scale_row(a->width, sum[r] > 0 ? 1 / sum[r] : 0, h->y + (query + r) * a->y_step);
        if (h->sums)
            h->sums[query + r] = sum[r] > 0 ? top[r] + logf(sum[r]) : INFINITY;
    }
}

void attention_forward_pass(const struct attention *a, const struct attention_arrays *arrays)
{
#pragma omp parallel for num_threads(a->threads) schedule(static) if (a->threads > 1)
    for (int64_t i = 0; i < a->samples * a->heads; i++) {
        struct head h = head_of(a, arrays, i / a->heads, i % a->heads);
        if (i + 1 < a->samples * a->heads) {
            struct head next = head_of(a, arrays, (i + 1) / a->heads, (i + 1) % a->heads);
            h.next_q = next.q, h.next_k = next.k, h.next_v = next.v;
        }
        turn(a, h.k, a->k_step, h.k_turned);
        gemm_pack(a->level, a->width, a->keys, h.v, a->v_step, 1, 0, ceil_div(a->width, h.panel),
                  h.v_packed);
        for (int64_t query = 0; query < a->queries; query += QUERIES)
            forward_queries(&h, query);
    }
}

/* to [keys, width] += the transposed block p [queries, keys] times rows [queries, width] */
static void gather(const struct head *h, const struct block *b, const float *p, const float *rows,
                   int64_t step, float *to, int64_t to_step)
{
    h->gemm(&(struct gemm){ .m = b->keys,
                            .n = h->a->width,
                            .k = b->queries,
                            .a = p,
                            .a_row = 1,
                            .a_column = h->block_keys,
                            .b = rows + b->query * step,
                            .b_row = step,
                            .c = to + b->key * to_step,
                            .c_row = to_step,
                            .add = b->query > 0 });
}

/* The weights of a block again, and the gradients of its scores in dp. d: y dy of each row. */
static void backward_block(const struct head *h, const struct block *b, const float *d)
{
    const struct attention *a = h->a;
    meet(h, b, h->q, a->q_step, h->k_turned, h->p);
    for (int64_t r = 0; r < b->queries; r++) {
        float *row = h->p + r * h->block_keys, top = h->sums[b->query + r];
        h->loops->finish_scores(b->keys, a->scale, bias_of(h, b, r),
                                h->mask ? h->mask + b->key : NULL, row);
        if (top == INFINITY)
            memset(row, 0, (size_t)b->keys * sizeof *row);
        else
            h->loops->exponentials(whole_of(b->keys, STEP), top, row);
    }
    if (h->dv)
        gather(h, b, h->p, h->dy, a->y_step, h->dv, a->v_step);
    meet(h, b, h->dy, a->y_step, h->v_turned, h->dp);
    for (int64_t r = 0; r < b->queries; r++)
        h->loops->score_gradients(b->keys, h->p + r * h->block_keys, d[r], a->scale,
                                  moved(h->dbias, (b->query + r) * a->keys + b->key),
                                  h->dp + r * h->block_keys);
    if (h->dk)
        gather(h, b, h->dp, h->q, a->q_step, h->dk, a->k_step);
    if (h->dq)
        h->gemm(&(struct gemm){ .m = b->queries,
                                .n = a->width,
                                .k = b->keys,
                                .a = h->dp,
                                .a_row = h->block_keys,
                                .a_column = 1,
                                .b = h->k + b->key * a->k_step,
                                .b_row = a->k_step,
                                .c = h->dq + b->query * a->q_step,
                                .c_row = a->q_step,
                                .add = b->key > 0 });
}

static void backward_head(const struct head *h)
{
    const struct attention *a = h->a;
    turn(a, h->k, a->k_step, h->k_turned);
    turn(a, h->v, a->v_step, h->v_turned);
    for (int64_t query = 0; query < a->queries; query += QUERIES) {
        float d[QUERIES] = { 0 };
        for (int64_t r = query; r < a->queries && r < query + QUERIES; r++)
            d[r - query] =
                h->loops->row_product(a->width, h->y + r * a->y_step, h->dy + r * a->y_step);
        for (int64_t key = 0; key < a->keys; key += h->block_keys) {
            struct block b = block_at(h, query, key);
            backward_block(h, &b, d);
        }
    }
}

/* Samples and heads that share a bias follow each other on one thread. */
void attention_backward_pass(const struct attention *a, const struct attention_arrays *arrays)
{
    bool one_sample = !arrays->dbias || a->bias_sample, one_head = !arrays->dbias || a->bias_head;
    int64_t samples = one_sample ? a->samples : 1, heads = one_head ? a->heads : 1;
    int64_t samples_each = a->samples / samples, heads_each = a->heads / heads;
    if (arrays->dbias)
        memset(arrays->dbias, 0, (size_t)(samples * heads * a->queries * a->keys) * sizeof(float));
#pragma omp parallel for num_threads(a->threads) schedule(static) if (a->threads > 1)
    for (int64_t i = 0; i < samples * heads; i++)
        for (int64_t k = 0; k < samples_each * heads_each; k++) {
            struct head h =
                head_of(a, arrays, i / heads + k / heads_each, i % heads + k % heads_each);
            backward_head(&h);
        }
}
