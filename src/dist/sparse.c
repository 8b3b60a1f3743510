/* sparse.c: see sparse.h. All ranks send the same number of floats, chosen for each parameter
 * separately; sums are computed in rank order. */
#include "dist/sparse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sent {
    uint32_t at;
    float value;
};
_Static_assert(sizeof(struct sent) == 2 * sizeof(float), "sent as pairs of floats");

struct sparse {
    int64_t *at;
    bool *whole;
    int64_t n, count;
    float momentum;
    float *velocity, *rest, *scratch;
    struct sent *mine;
};

bool sparse_new(const int64_t *at, const bool *whole, int64_t n, double momentum,
                struct sparse **out, struct err *err)
{
    struct sparse *s = calloc(1, sizeof *s);
    size_t count = (size_t)at[n];
    if (at[n] > INT32_MAX) {
        free(s);
        return err_set(err, ERR_USAGE, "ranks.compress: more than 2^31 parameters");
    }
    if (s) {
        *s = (struct sparse){ .n = n, .count = at[n], .momentum = (float)momentum };
        s->at = malloc(((size_t)n + 1) * sizeof *s->at);
        s->whole = malloc((size_t)n + 1);
        s->velocity = calloc(count + 1, sizeof *s->velocity);
        s->rest = calloc(count + 1, sizeof *s->rest);
        s->scratch = calloc(count + 1, sizeof *s->scratch);
        s->mine = calloc(count + 1, sizeof *s->mine);
    }
    if (!s || !s->at || !s->whole || !s->velocity || !s->rest || !s->scratch || !s->mine) {
        sparse_free(s);
        return err_memory(err, "gradient compression");
    }
    memcpy(s->at, at, ((size_t)n + 1) * sizeof *at);
    memcpy(s->whole, whole, (size_t)n * sizeof *whole);
    *out = s;
    return true;
}

void sparse_free(struct sparse *sparse)
{
    if (!sparse)
        return;
    free(sparse->at), free(sparse->whole);
    free(sparse->velocity), free(sparse->rest);
    free(sparse->scratch), free(sparse->mine);
    free(sparse);
}

/* The kth largest of x [n], k from 1; x is reordered. */
static float kth_largest(float *x, int64_t n, int64_t k)
{
    int64_t low = 0, high = n - 1;
    while (low < high) {
        float pivot = x[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (x[i] > pivot)
                i++;
            while (x[j] < pivot)
                j--;
            if (i <= j) {
                float other = x[i];
                x[i++] = x[j];
                x[j--] = other;
            }
        }
        if (k - 1 <= j)
            high = j;
        else if (k - 1 >= i)
            low = i;
        else
            break;
    }
    return x[k - 1];
}

/* Takes the k largest of parameter p out of the rest; of equal ones the first. */
static int64_t take(struct sparse *s, int64_t p, int64_t k, struct sent *out)
{
    int64_t begin = s->at[p], n = s->at[p + 1] - begin, taken = 0, equal = k;
    float *rest = s->rest + begin;
    for (int64_t i = 0; i < n; i++)
        s->scratch[i] = fabsf(rest[i]);
    float limit = kth_largest(s->scratch, n, k);
    for (int64_t i = 0; i < n; i++)
        equal -= fabsf(rest[i]) > limit;
    for (int64_t i = 0; i < n; i++) {
        bool tied = fabsf(rest[i]) == limit && equal > 0;
        if (!tied && !(fabsf(rest[i]) > limit))
            continue;
        equal -= tied;
        out[taken++] = (struct sent){ (uint32_t)(begin + i), rest[i] };
        rest[i] = s->velocity[begin + i] = 0;
    }
    return taken;
}

/* Gradients into velocity and rest; what is sent whole goes to the front of scratch, the others'
 * largest to mine. */
static void prepare(struct sparse *s, const float *gradients, double keep, int64_t *n_mine)
{
    *n_mine = 0;
    for (int64_t i = 0; i < s->count; i++)
        s->velocity[i] = s->momentum * s->velocity[i] + gradients[i];
    for (int64_t p = 0; p < s->n; p++) {
        int64_t begin = s->at[p], n = s->at[p + 1] - begin;
        int64_t k = (int64_t)ceil(keep * (double)n);
        if (s->whole[p] || keep >= 1)
            continue;
        for (int64_t i = begin; i < begin + n; i++)
            s->rest[i] += s->velocity[i];
        *n_mine += take(s, p, k < 1 ? 1 : k, s->mine + *n_mine);
    }
}

/* The parameters that are sent whole, packed into scratch or taken from it. */
static int64_t move_whole(struct sparse *s, float *gradients, double keep, bool back)
{
    int64_t n = 0;
    for (int64_t p = 0; p < s->n; p++)
        for (int64_t i = s->at[p]; (s->whole[p] || keep >= 1) && i < s->at[p + 1]; i++, n++) {
            if (back) {
                gradients[i] = s->scratch[n];
                continue;
            }
            s->scratch[n] = s->velocity[i] + s->rest[i];
            s->rest[i] = 0;
        }
    return n;
}

bool sparse_sum(struct sparse *sparse, struct ranks *ranks, float *gradients, double keep,
                struct err *err)
{
    struct sparse *s = sparse;
    int64_t n_mine = 0;
    prepare(s, gradients, keep, &n_mine);
    int64_t *begin = calloc((size_t)ranks->size + 1, sizeof *begin);
    struct sent *all = calloc((size_t)(n_mine * ranks->size) + 1, sizeof *all);
    bool ok =
        ranks_agree(ranks, (begin && all) || err_memory(err, "gradient compression"), NULL, err);
    if (ok) {
        memcpy(all + ranks->rank * n_mine, s->mine, (size_t)n_mine * sizeof *all);
        for (int r = 0; r <= ranks->size; r++)
            begin[r] = 2 * n_mine * r;
        int64_t n_whole = move_whole(s, gradients, keep, false);
        ok = ranks_sum_floats(ranks, s->scratch, n_whole, err) &&
             ranks_gather_parts(ranks, (float *)(void *)all, begin, err);
    }
    if (ok) {
        memset(gradients, 0, (size_t)s->count * sizeof *gradients);
        move_whole(s, gradients, keep, true);
        for (int64_t i = 0; i < n_mine * ranks->size; i++)
            gradients[all[i].at] += all[i].value;
    }
    free(begin);
    free(all);
    return ok;
}

float *sparse_velocity(struct sparse *sparse, int64_t *count)
{
    *count = sparse->count;
    return sparse->velocity;
}

float *sparse_rest(struct sparse *sparse, int64_t *count)
{
    *count = sparse->count;
    return sparse->rest;
}

void sparse_clear(struct sparse *sparse)
{
    memset(sparse->velocity, 0, (size_t)sparse->count * sizeof *sparse->velocity);
    memset(sparse->rest, 0, (size_t)sparse->count * sizeof *sparse->rest);
}
