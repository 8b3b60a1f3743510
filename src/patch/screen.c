/* screen.c: see screen.h. */
#include "patch/screen.h"

#include <stdlib.h>
#include "base/pool.h"
#include "patch/pass.h"

struct screen_job {
    const struct screen *screen;
    int64_t *order;   /* square -> patch */
    uint8_t *scratch; /* [workers, tile, tile, 3] */
    bool *keep;
};

static uint8_t *scratch_of(void *arg, int64_t k, int worker)
{
    (void)k;
    const struct screen_job *job = arg;
    return job->scratch + worker * job->screen->tile * job->screen->tile * 3;
}

static void judge(void *arg, int64_t index, uint8_t *px)
{
    const struct screen_job *job = arg;
    int64_t n = job->screen->tile * job->screen->tile, white = 0, black = 0;
    for (int64_t i = 0; i < n; i++, px += 3) {
        white += (px[0] > SCREEN_WHITE_ABOVE) & (px[1] > SCREEN_WHITE_ABOVE) &
                 (px[2] > SCREEN_WHITE_ABOVE);
        black += (px[0] < SCREEN_BLACK_BELOW) & (px[1] < SCREEN_BLACK_BELOW) &
                 (px[2] < SCREEN_BLACK_BELOW);
    }
    job->keep[job->order[index]] = (double)white <= job->screen->max_white * (double)n &&
                                   (double)black <= job->screen->max_black * (double)n;
}

struct numbered_place {
    struct unit place;
    int64_t patch;
};

static int by_row(const void *a_, const void *b_)
{
    const struct numbered_place *a = a_, *b = b_;
    if (a->place.y != b->place.y)
        return a->place.y < b->place.y ? -1 : 1;
    return (a->patch > b->patch) - (a->patch < b->patch);
}

/* The tiles in the order of a pass. */
static bool order_tiles(const struct screen *screen, const struct patch *patches, int64_t n,
                        struct unit *places, int64_t *order, struct err *err)
{
    struct numbered_place *sorted = malloc((size_t)n * sizeof *sorted);
    if (!sorted)
        return err_memory(err, "the positions of the patches");
    for (int64_t i = 0; i < n; i++)
        sorted[i] = (struct numbered_place){ { (int32_t)(patches[i].x + screen->margin),
                                               (int32_t)(patches[i].y + screen->margin) },
                                             i };
    qsort(sorted, (size_t)n, sizeof *sorted, by_row);
    for (int64_t i = 0; i < n; i++) {
        places[i] = sorted[i].place;
        order[i] = sorted[i].patch;
    }
    free(sorted);
    return true;
}

bool screen_patches(const struct screen *screen, const struct raster *raster,
                    const struct patch *patches, int64_t n, bool *keep, const struct ctx *ctx,
                    struct err *err)
{
    if (n == 0)
        return true;
    bool ok = false;
    size_t tile_bytes = (size_t)(screen->tile * screen->tile * 3);
    struct screen_job job = { .screen = screen, .keep = keep };
    struct unit *places = malloc((size_t)n * sizeof *places);
    job.order = malloc((size_t)n * sizeof *job.order);
    job.scratch = malloc((size_t)pool_workers(ctx->pool) * tile_bytes);
    if (!places || !job.order || !job.scratch) {
        err_memory(err, "patches to examine");
        goto done;
    }
    if (!order_tiles(screen, patches, n, places, job.order, err))
        goto done;
    struct pass pass = { .raster = raster,
                         .places = places,
                         .n = n,
                         .size = screen->tile,
                         .band_bytes = screen->band_bytes,
                         .batch = n,
                         .arg = &job,
                         .where = scratch_of,
                         .cut = judge };
    ok = pass_run(&pass, ctx, err);
done:
    free(places);
    free(job.order);
    free(job.scratch);
    return ok;
}
