/* stain_sample.c: see stain_sample.h. */
#include "patch/stain_sample.h"

#include <stdlib.h>
#include "patch/pass.h"

#define MAX_WINDOWS 128
#define WINDOW_PX 64
#define ON_TISSUE 0.9

/* Windows of the chosen patches, sorted by row as the patches are. */
static int64_t choose_windows(const struct raster *raster, const struct tissue_sums *sums,
                              const struct patch_list *patches, int64_t patch_px, int64_t side,
                              double min_tissue, struct unit *out)
{
    int64_t n = 0, seen = 0;
    int64_t shift = (patch_px - side) / 2;
    for (int pass = 0; pass < 2; pass++) { /* count, then take every so-many-th */
        int64_t fit = 0;
        for (int64_t i = 0; i < patches->n; i++) {
            int64_t x = patches->items[i].x + shift, y = patches->items[i].y + shift;
            if (grid_tissue(raster, sums, x, y, side, side) < min_tissue)
                continue;
            int64_t slot = pass ? fit * MAX_WINDOWS / seen : 0;
            bool take = pass && (seen <= MAX_WINDOWS || slot == n);
            if (take && n < MAX_WINDOWS)
                out[n++] = (struct unit){ (int32_t)x, (int32_t)y };
            fit++;
        }
        seen = fit;
    }
    return n;
}

struct sample_job {
    uint8_t *px; /* [windows, side, side, 3] */
    int64_t window_bytes;
    int64_t first; /* of the batch */
};

static bool begin(void *arg, const int64_t *indices, int64_t n, struct err *err)
{
    (void)n, (void)err;
    struct sample_job *job = arg;
    job->first = indices[0];
    return true;
}

static uint8_t *where(void *arg, int64_t k, int worker)
{
    (void)worker;
    const struct sample_job *job = arg;
    return job->px + (job->first + k) * job->window_bytes;
}

static void cut(void *arg, int64_t index, uint8_t *px)
{
    (void)arg, (void)index, (void)px;
}

bool stain_sample_fit(enum stain_method method, const struct raster *raster,
                      const struct tissue_sums *sums, const struct patch_list *patches,
                      int64_t patch_px, int64_t band_bytes, const struct ctx *ctx,
                      struct stain_fit *out, struct err *err)
{
    struct unit windows[MAX_WINDOWS];
    int64_t side = patch_px < WINDOW_PX ? patch_px : WINDOW_PX;
    int64_t n = choose_windows(raster, sums, patches, patch_px, side, ON_TISSUE, windows);
    if (n == 0)
        n = choose_windows(raster, sums, patches, patch_px, side, 0, windows);
    struct sample_job job = { .window_bytes = side * side * 3 };
    job.px = malloc((size_t)(n * job.window_bytes));
    if (!job.px)
        return err_memory(err, "sampled tissue");
    struct pass pass = { .raster = raster,
                         .places = windows,
                         .n = n,
                         .size = side,
                         .band_bytes = band_bytes,
                         .batch = 1, /* of one: in the order of strips, whatever that is */
                         .arg = &job,
                         .begin = begin,
                         .where = where,
                         .cut = cut };
    bool ok = pass_run(&pass, ctx, err) && stain_fit(method, job.px, n * side * side, out, err);
    free(job.px);
    return ok;
}
