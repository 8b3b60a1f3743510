/* rows.c: see rows.h. */
#include "likeness/rows.h"

#include <stdlib.h>
#include <string.h>
#include "base/rng.h"

bool rows_draw(int64_t n, int64_t m, uint64_t seed, uint64_t stream, int64_t **out, struct err *err)
{
    int64_t *all = malloc((size_t)(n + 1) * sizeof *all);
    if (!all)
        return err_memory(err, "a choice of patches");
    struct rng rng = rng_new(seed, stream, 0);
    for (int64_t i = 0; i < n; i++)
        all[i] = i;
    for (int64_t i = 0; i < m; i++) {
        int64_t other = i + (int64_t)rng_below(&rng, (uint64_t)(n - i)), kept = all[i];
        all[i] = all[other];
        all[other] = kept;
    }
    *out = all;
    return true;
}

bool rows_pick(const struct rows *rows, const int64_t *which, int64_t m, struct rows *out,
               struct err *err)
{
    double *values = malloc((size_t)(m * rows->d + 1) * sizeof *values);
    if (!values)
        return err_memory(err, "features of patches");
    for (int64_t i = 0; i < m; i++)
        memcpy(values + i * rows->d, rows_at(rows, which[i]), (size_t)rows->d * sizeof *values);
    *out = (struct rows){ values, m, rows->d };
    return true;
}

bool rows_sample(const struct rows *rows, int64_t m, uint64_t seed, uint64_t stream,
                 struct rows *out, struct err *err)
{
    int64_t *which = NULL;
    bool ok =
        rows_draw(rows->n, m, seed, stream, &which, err) && rows_pick(rows, which, m, out, err);
    free(which);
    return ok;
}
