/* read_patches.c: how fast a slide is read as overlapping patches: read_patches SLIDE THREADS.
 * Every 448-px patch that lies inside level 0, every 224 px: each pixel is needed four times. The
 * patches go through the reader of `extract` and end in memory. Prints "patches N", "seconds S"
 * (from opening the slide) and "cpu S" (all threads). */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "base/clock.h"
#include "base/pool.h"
#include "patch/pass.h"

#define PATCH_PX 448
#define STRIDE_PX 224
#define PATCH_BYTES ((size_t)PATCH_PX * PATCH_PX * 3)

static uint8_t *own_place(void *arg, int64_t k, int worker)
{
    (void)k;
    return (uint8_t *)arg + (size_t)worker * PATCH_BYTES;
}

static void nothing_more(void *arg, int64_t index, uint8_t *px)
{
    (void)arg, (void)index, (void)px;
}

/* Row by row; the caller frees them. */
static struct unit *list_patches(const struct raster *raster, int64_t *n)
{
    int64_t columns = (raster->width - PATCH_PX) / STRIDE_PX + 1;
    int64_t rows = (raster->height - PATCH_PX) / STRIDE_PX + 1;
    struct unit *places = calloc((size_t)(columns * rows), sizeof *places);
    *n = columns * rows;
    for (int64_t i = 0; places && i < *n; i++) {
        places[i].x = (int32_t)(i % columns * STRIDE_PX);
        places[i].y = (int32_t)(i / columns * STRIDE_PX);
    }
    return places;
}

static bool measure(const char *path, int threads, struct err *err)
{
    struct slide *slide = NULL;
    struct raster raster;
    struct pool *pool = pool_new(threads);
    struct ctx ctx = { .pool = pool };
    double began_s = clock_monotonic_s();
    int64_t n = 0;
    bool ok = pool && slide_open(path, 0, &slide, err) &&
              raster_open(slide, &(struct raster_request){ 0 }, &raster, err);
    struct unit *places = ok ? list_patches(&raster, &n) : NULL;
    uint8_t *px = malloc((size_t)(pool ? pool_workers(pool) : 1) * PATCH_BYTES);
    struct pass pass = { .raster = &raster,
                         .places = places,
                         .n = n,
                         .size = PATCH_PX,
                         .band_bytes = 96 << 20,
                         .batch = 64,
                         .arg = px,
                         .where = own_place,
                         .cut = nothing_more };
    ok = ok && places && px && pass_run(&pass, &ctx, err);
    if (ok)
        printf("patches %lld\nseconds %.3f\ncpu %.3f\n", (long long)n,
               clock_monotonic_s() - began_s, (double)clock() / CLOCKS_PER_SEC);
    free(px);
    free(places);
    slide_close(slide);
    pool_free(pool);
    return ok;
}

int main(int argc, char **argv)
{
    struct err err = { 0 };
    long threads = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
    if (threads < 1 || threads > 1024) {
        fprintf(stderr, "usage: read_patches SLIDE THREADS\n");
        return 2;
    }
    if (measure(argv[1], (int)threads, &err))
        return 0;
    fprintf(stderr, "read_patches: %s\n", err.text);
    return 1;
}
