/* rows.h: features of patches, row by row, and random choices among rows. */
#ifndef LIKENESS_ROWS_H
#define LIKENESS_ROWS_H
#include <stdint.h>
#include "base/err.h"

/* values [n, d]; not owned. */
struct rows {
    const double *values;
    int64_t n, d;
};

static inline const double *rows_at(const struct rows *rows, int64_t i)
{
    return rows->values + i * rows->d;
}

/* m of the n numbers from 0 on, all different, in a random order that follows from (seed, stream)
 * alone: the first of more are the same. *out [m] is the caller's. */
bool rows_draw(int64_t n, int64_t m, uint64_t seed, uint64_t stream, int64_t **out,
               struct err *err);
/* Those rows, one after another: *out->values is the caller's, free(). */
bool rows_pick(const struct rows *rows, const int64_t *which, int64_t m, struct rows *out,
               struct err *err);
/* m random rows: rows_draw and rows_pick. */
bool rows_sample(const struct rows *rows, int64_t m, uint64_t seed, uint64_t stream,
                 struct rows *out, struct err *err);
#endif
