/* nearest.c: see nearest.h. */
#include <math.h>
#include <stdlib.h>
#include "audit/nearest.h"
#include "base/pool.h"
#include "base/rng.h"

#define STREAM_PLANT 0x706c616e74 /* random numbers of the control */
#define PLANTED 100
#define PLANT_NOISE (2.0 / 255)
#define LANES 8

bool nearest_view(const struct image *image, float *out, struct err *err)
{
    struct image small = { 0 };
    bool shrinks = image->width >= NEAREST_PX && image->height >= NEAREST_PX;
    if (!(shrinks ? image_shrink : image_resize)(image, NEAREST_PX, NEAREST_PX, &small, err))
        return false;
    for (int64_t i = 0; i < NEAREST_PX * NEAREST_PX; i++)
        for (int c = 0; c < 3; c++)
            out[3 * i + c] = (float)small.px[i * small.channels + c % small.channels] / 255;
    image_free(&small);
    return true;
}

/* Squared distance of two views, in lanes so that the order of the sum is fixed. */
static double distance(const float *a, const float *b)
{
    float sums[LANES] = { 0 };
    for (int i = 0; i < NEAREST_SIZE; i += LANES)
        for (int l = 0; l < LANES; l++) {
            float d = a[i + l] - b[i + l];
            sums[l] += d * d;
        }
    double sum = 0;
    for (int l = 0; l < LANES; l++)
        sum += (double)sums[l];
    return sum;
}

static double nearest_to(const float *view, const float *all, int64_t n)
{
    double best = INFINITY;
    for (int64_t i = 0; i < n; i++)
        best = fmin(best, distance(view, all + i * NEAREST_SIZE));
    return sqrt(best);
}

struct search {
    const float *samples, *trained, *kept;
    int64_t n; /* of trained and of kept */
    double *ratios;
};

static bool search_one(void *arg, int64_t i, int worker, struct err *err)
{
    const struct search *s = arg;
    (void)worker, (void)err;
    const float *view = s->samples + i * NEAREST_SIZE;
    double near = nearest_to(view, s->trained, s->n), far = nearest_to(view, s->kept, s->n);
    s->ratios[i] = far > 0 ? near / far : near > 0 ? INFINITY : 1;
    return true;
}

/* views [count, NEAREST_SIZE]: training images, evenly chosen, each with a little noise. */
static void plant(const float *trained, int64_t n, int64_t count, uint64_t seed, float *views)
{
    for (int64_t i = 0; i < count; i++) {
        struct rng rng = rng_new(seed, STREAM_PLANT, (uint64_t)i);
        const float *from = trained + i * n / count * NEAREST_SIZE;
        for (int k = 0; k < NEAREST_SIZE; k++)
            views[i * NEAREST_SIZE + k] = from[k] + (float)(PLANT_NOISE * rng_normal(&rng));
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y ? 1 : 0;
}

static int64_t count_below(const double *ratios, int64_t n, double limit)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        count += ratios[i] < limit;
    return count;
}

static bool summarise(const double *ratios, int64_t n, const double *planted, int64_t n_planted,
                      struct nearest *out, struct err *err)
{
    double *sorted = malloc((size_t)n * sizeof *sorted);
    if (!sorted)
        return err_memory(err, "the distances");
    for (int64_t i = 0; i < n; i++)
        sorted[i] = ratios[i];
    qsort(sorted, (size_t)n, sizeof *sorted, ascending);
    *out = (struct nearest){
        .samples = n,
        .median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2,
        .nearer = share_of(count_below(ratios, n, 1), n, 0.95),
        .copies = share_of(count_below(ratios, n, NEAREST_COPY), n, 0.95),
        .planted = n_planted,
        .noticed = share_of(count_below(planted, n_planted, NEAREST_COPY), n_planted, 0.95),
    };
    out->works = out->noticed.value >= 0.9;
    free(sorted);
    return true;
}

bool nearest_audit(const float *samples, int64_t n_samples, const float *trained, int64_t n_trained,
                   const float *kept, int64_t n_kept, uint64_t seed, const struct ctx *ctx,
                   double *ratios, struct nearest *out, struct err *err)
{
    int64_t n = n_trained < n_kept ? n_trained : n_kept, n_planted = n < PLANTED ? n : PLANTED;
    if (n_samples == 0 || n == 0)
        return err_set(err, ERR_MISSING,
                       "nearest neighbours need samples, training images and others");
    double planted[PLANTED], *all = ratios ? NULL : malloc((size_t)n_samples * sizeof *all);
    float *views = malloc((size_t)n_planted * NEAREST_SIZE * sizeof *views);
    struct search search = { samples, trained, kept, n, ratios ? ratios : all };
    bool ok = (views && search.ratios) || err_memory(err, "the distances");
    if (ok)
        plant(trained, n, n_planted, seed, views);
    struct search control = { views, trained, kept, n, planted };
    ok = ok && pool_for(ctx->pool, n_samples, search_one, &search, ctx->stop, err) &&
         pool_for(ctx->pool, n_planted, search_one, &control, ctx->stop, err) &&
         summarise(search.ratios, n_samples, planted, n_planted, out, err);
    free(views);
    free(all);
    return ok;
}
