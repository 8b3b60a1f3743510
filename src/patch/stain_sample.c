/* stain_sample.c: see stain_sample.h. */
#include "patch/stain_sample.h"

#include <math.h>
#include <stdlib.h>
#include "base/rng.h"
#include "patch/grid.h"
#include "patch/pass.h"

#define MAX_DRAWS 4096
#define ENOUGH_WINDOWS 32

/* The tissue by one of the methods, beginning with the default: the first that finds any. */
static bool find_tissue(struct slide *slide, const struct ctx *ctx, struct tissue_mask *out,
                        struct err *err)
{
    struct tissue_options options = tissue_defaults();
    enum tissue_method first = options.method;
    bool ok = tissue_find(slide, &options, ctx, out, err);
    for (int m = 0; ok && out->tissue_px == 0 && tissue_method_names[m]; m++) {
        options.method = (enum tissue_method)m;
        if (options.method == first)
            continue;
        tissue_mask_free(out);
        ok = tissue_find(slide, &options, ctx, out, err);
    }
    image_free(&out->overview);
    return ok;
}

struct sampler {
    const struct tissue_mask *mask;
    const struct tissue_sums *sums;
    int64_t *before; /* [mask height + 1]: tissue pixels above each row */
    struct raster raster;
    int64_t side; /* of a window, raster px */
};

/* Tissue pixel number `rank` of the mask, row by row. */
static void find_pixel(const struct sampler *s, int64_t rank, int64_t *x, int64_t *y)
{
    const struct image *mask = &s->mask->mask;
    int64_t low = 0, high = mask->height - 1; /* the last row with before <= rank */
    while (low < high) {
        int64_t middle = (low + high + 1) / 2;
        if (s->before[middle] <= rank)
            low = middle;
        else
            high = middle - 1;
    }
    rank -= s->before[low];
    *y = low;
    for (*x = 0;; ++*x)
        if (*image_at(mask, *x, low) && rank-- == 0)
            return;
}

/* The corner along one axis of a window whose centre lies at `at` mask pixels. */
static int32_t corner(double at, double l0_per_px, double downsample, int64_t side, int64_t size)
{
    int64_t x = (int64_t)floor(at * l0_per_px / downsample) - side / 2;
    int64_t most = size > side ? size - side : 0;
    return (int32_t)(x < 0 ? 0 : x > most ? most : x);
}

/* Windows centred on random tissue, of those that are tissue by at least `least`. */
static int64_t draw_windows(const struct sampler *s, double least, struct unit *out)
{
    int64_t n = 0;
    uint64_t stream = rng_hash("stain sample");
    for (uint64_t draw = 0; draw < MAX_DRAWS && n < STAIN_SAMPLE_WINDOWS; draw++) {
        struct rng rng = rng_new(0, stream, draw);
        int64_t x, y;
        find_pixel(s, (int64_t)rng_below(&rng, (uint64_t)s->mask->tissue_px), &x, &y);
        double at_x = (double)x + rng_uniform(&rng), at_y = (double)y + rng_uniform(&rng);
        struct unit window = {
            corner(at_x, s->mask->l0_per_px_x, s->raster.downsample, s->side, s->raster.width),
            corner(at_y, s->mask->l0_per_px_y, s->raster.downsample, s->side, s->raster.height)
        };
        if (grid_tissue(&s->raster, s->sums, window.x, window.y, s->side, s->side) >= least)
            out[n++] = window;
    }
    return n;
}

static int by_place(const void *a_, const void *b_)
{
    const struct unit *a = a_, *b = b_;
    if (a->y != b->y)
        return a->y > b->y ? 1 : -1;
    return (a->x > b->x) - (a->x < b->x);
}

/* Wholly on tissue if there are enough such places, else where there is less of it. */
static int64_t choose_windows(const struct sampler *s, struct unit *out)
{
    static const double least[] = { 0.9, 0.5, 0 };
    int64_t n = 0;
    for (int i = 0; i < 3 && n < ENOUGH_WINDOWS; i++)
        n = draw_windows(s, least[i], out);
    qsort(out, (size_t)n, sizeof *out, by_place);
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

static bool fit_windows(const struct sampler *s, enum stain_method method, int64_t band_bytes,
                        const struct ctx *ctx, struct stain_fit *out, struct err *err)
{
    struct unit windows[STAIN_SAMPLE_WINDOWS];
    int64_t n = choose_windows(s, windows);
    struct sample_job job = { .window_bytes = s->side * s->side * 3 };
    job.px = malloc((size_t)(n * job.window_bytes + 1));
    if (!job.px)
        return err_memory(err, "sampled tissue");
    struct pass pass = { .raster = &s->raster,
                         .places = windows,
                         .n = n,
                         .size = s->side,
                         .band_bytes = band_bytes,
                         .batch = 1, /* of one: in the order of strips, whatever that is */
                         .arg = &job,
                         .begin = begin,
                         .where = where,
                         .cut = cut };
    bool ok =
        pass_run(&pass, ctx, err) && stain_fit(method, job.px, n * s->side * s->side, out, err);
    free(job.px);
    return ok;
}

static bool sampler_open(struct sampler *s, struct slide *slide, struct err *err)
{
    const struct image *mask = &s->mask->mask;
    double mpp = slide_info(slide)->mpp;
    struct raster_request request = { .mpp = mpp > 0 ? fmax(mpp, STAIN_SAMPLE_MPP) : 0 };
    if (!raster_open(slide, &request, &s->raster, err))
        return false;
    s->before = calloc((size_t)mask->height + 1, sizeof *s->before);
    if (!s->before)
        return err_memory(err, "sampled tissue");
    for (int64_t y = 0; y < mask->height; y++) {
        s->before[y + 1] = s->before[y];
        for (int64_t x = 0; x < mask->width; x++)
            s->before[y + 1] += *image_at(mask, x, y) != 0;
    }
    int64_t least = s->raster.width < s->raster.height ? s->raster.width : s->raster.height;
    s->side = least < STAIN_SAMPLE_PX ? least : STAIN_SAMPLE_PX;
    return true;
}

bool stain_sample_fit(enum stain_method method, struct slide *slide,
                      const struct tissue_mask *known, int64_t band_bytes, const struct ctx *ctx,
                      struct stain_fit *out, struct err *err)
{
    struct tissue_mask found = { 0 };
    struct tissue_sums *sums = NULL;
    struct sampler s = { .mask = known };
    bool ok = true;
    if (!known || known->tissue_px == 0) {
        ok = find_tissue(slide, ctx, &found, err);
        s.mask = &found;
    }
    if (ok && s.mask->tissue_px == 0)
        ok = err_set(err, ERR_MISSING, "no tissue to fit the stains on; omit --stain");
    ok = ok && tissue_sums_new(s.mask, &sums, err);
    s.sums = sums;
    ok = ok && sampler_open(&s, slide, err) && fit_windows(&s, method, band_bytes, ctx, out, err);
    tissue_sums_free(sums);
    tissue_mask_free(&found);
    free(s.before);
    return ok;
}
