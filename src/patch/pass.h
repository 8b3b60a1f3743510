/* pass.h: one pass over a raster that cuts many squares of one size; every tile of the slide is
 * decoded once (twice at the seams of strips). Memory is bounded: where the slide is too wide, the
 * pass goes down it strip by strip. */
#ifndef PATCH_PASS_H
#define PATCH_PASS_H
#include "base/ctx.h"
#include "patch/units.h"
#include "slide/raster.h"

struct pass {
    const struct raster *raster;
    const struct unit *places; /* [n], sorted by y */
    int64_t n, size;           /* how many, and their width and height in raster pixels */
    int64_t band_bytes;        /* memory for decoded pixels; more if a single square needs it */
    int64_t batch;             /* maximum squares between begin and end */
    void *arg;
    /* Before a batch: squares `indices` [n] come next, numbered 0 to n - 1. May be NULL. */
    bool (*begin)(void *arg, const int64_t *indices, int64_t n, struct err *err);
    /* Where the pixels [size, size, 3] of square k of the batch go. Any thread. */
    uint8_t *(*where)(void *arg, int64_t k, int worker);
    /* The pixels are there; index is that of the square in places. Any thread. */
    void (*cut)(void *arg, int64_t index, uint8_t *px);
    /* After a batch. May be NULL. */
    bool (*end)(void *arg, int64_t n, struct err *err);
};

/* Calls begin and end from this thread, where and cut from any. */
bool pass_run(const struct pass *pass, const struct ctx *ctx, struct err *err);
#endif
