/* neighbours.c: see neighbours.h. Distances are squared throughout. */
#include "likeness/neighbours.h"

#include <math.h>
#include <stdlib.h>
#include "base/pool.h"
#include "explain/products.h"

#define BLOCK 64 /* rows of a piece of work */

struct ball_search {
    struct rows sets[2]; /* real, synthetic */
    int64_t k;
    double *radii[2];      /* [n] */
    double *room;          /* [workers, d + k] */
    int64_t *balls;        /* [synthetic]: real balls that it is in */
    bool *found, *covered; /* [real] */
};

static double distance(const double *x, const double *y, int64_t d, double *room)
{
    for (int64_t i = 0; i < d; i++)
        room[i] = x[i] - y[i];
    return product_dot(room, room, d);
}

/* The k-th smallest distance from row i to the others of its set. near [k] */
static double radius_of(const struct rows *rows, int64_t i, int64_t k, double *room, double *near)
{
    for (int64_t n = 0; n < k; n++)
        near[n] = INFINITY;
    for (int64_t j = 0; j < rows->n; j++) {
        double found =
            j == i ? INFINITY : distance(rows_at(rows, i), rows_at(rows, j), rows->d, room);
        int64_t place = k;
        while (place > 0 && found < near[place - 1])
            place--;
        for (int64_t n = k - 1; n > place; n--)
            near[n] = near[n - 1];
        if (place < k)
            near[place] = found;
    }
    return near[k - 1];
}

/* Rows of both sets are numbered through. */
static bool find_radii(void *arg, int64_t index, int worker, struct err *err)
{
    (void)err;
    const struct ball_search *s = arg;
    double *room = s->room + worker * (s->sets[0].d + s->k);
    int64_t n = s->sets[0].n + s->sets[1].n, end = (index + 1) * BLOCK;
    for (int64_t i = index * BLOCK; i < end && i < n; i++) {
        int set = i >= s->sets[0].n;
        int64_t row = i - set * s->sets[0].n;
        s->radii[set][row] = radius_of(&s->sets[set], row, s->k, room, room + s->sets[0].d);
    }
    return true;
}

static void look_at_synthetic(const struct ball_search *s, int64_t j, double *room)
{
    const struct rows *real = &s->sets[0];
    for (int64_t i = 0; i < real->n; i++)
        s->balls[j] +=
            distance(rows_at(real, i), rows_at(&s->sets[1], j), real->d, room) < s->radii[0][i];
}

static void look_at_real(const struct ball_search *s, int64_t i, double *room)
{
    const struct rows *synthetic = &s->sets[1];
    for (int64_t j = 0; j < synthetic->n; j++) {
        double apart = distance(rows_at(&s->sets[0], i), rows_at(synthetic, j), synthetic->d, room);
        s->found[i] = s->found[i] || apart < s->radii[1][j];
        s->covered[i] = s->covered[i] || apart < s->radii[0][i];
    }
}

static bool look(void *arg, int64_t index, int worker, struct err *err)
{
    (void)err;
    const struct ball_search *s = arg;
    double *room = s->room + worker * (s->sets[0].d + s->k);
    int64_t n = s->sets[0].n, all = n + s->sets[1].n, end = (index + 1) * BLOCK;
    for (int64_t i = index * BLOCK; i < end && i < all; i++)
        if (i < n)
            look_at_real(s, i, room);
        else
            look_at_synthetic(s, i - n, room);
    return true;
}

static struct neighbour_scores summed(const struct ball_search *s)
{
    int64_t inside = 0, balls = 0, found = 0, covered = 0;
    double n = (double)s->sets[0].n, m = (double)s->sets[1].n;
    for (int64_t j = 0; j < s->sets[1].n; j++) {
        inside += s->balls[j] > 0;
        balls += s->balls[j];
    }
    for (int64_t i = 0; i < s->sets[0].n; i++) {
        found += s->found[i];
        covered += s->covered[i];
    }
    return (struct neighbour_scores){ .precision = (double)inside / m,
                                      .recall = (double)found / n,
                                      .density = (double)balls / ((double)s->k * m),
                                      .coverage = (double)covered / n };
}

bool neighbours_score(const struct rows *real, const struct rows *synthetic, int64_t k,
                      const struct ctx *ctx, struct neighbour_scores *out, struct err *err)
{
    if (real->n <= k || synthetic->n <= k)
        return err_set(err, ERR_MISSING, "precision and recall need more than %lld patches of each",
                       (long long)k);
    size_t n = (size_t)real->n, m = (size_t)synthetic->n, workers = (size_t)pool_workers(ctx->pool);
    struct ball_search s = { .sets = { *real, *synthetic },
                             .k = k,
                             .radii = { calloc(n, sizeof(double)), calloc(m, sizeof(double)) },
                             .room = calloc(workers * (size_t)(real->d + k), sizeof(double)),
                             .balls = calloc(m, sizeof(int64_t)),
                             .found = calloc(n, sizeof(bool)),
                             .covered = calloc(n, sizeof(bool)) };
    int64_t pieces = (real->n + synthetic->n + BLOCK - 1) / BLOCK;
    bool ok = (s.radii[0] && s.radii[1] && s.room && s.balls && s.found && s.covered) ||
              err_memory(err, "the neighbours of patches");
    ok = ok && pool_for(ctx->pool, pieces, find_radii, &s, ctx->stop, err) &&
         pool_for(ctx->pool, pieces, look, &s, ctx->stop, err);
    if (ok)
        *out = summed(&s);
    free(s.radii[0]);
    free(s.radii[1]);
    free(s.room);
    free(s.balls);
    free(s.found);
    free(s.covered);
    return ok;
}
