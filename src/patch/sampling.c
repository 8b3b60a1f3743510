/* sampling.c: see sampling.h. */
#include "patch/sampling.h"

#include <math.h>
#include <stdlib.h>
#include "base/console.h"
#include "base/rng.h"

#define CLASS_MASK_PX 8e6      /* largest mask of an annotation that positions are drawn from */
#define ATTEMPTS_PER_PATCH 100 /* then the class counts as exhausted */
#define ATTEMPTS_AT_LEAST 2000
#define ANY_LABEL (-2) /* whatever label comes out */
#define ANY_STREAM 2

/* The set pixels of a mask, each equally likely to be drawn. */
struct candidates {
    const struct image *mask;
    double x_l0, y_l0, step_x, step_y; /* level-0 place of the mask and size of its pixels */
    int64_t *before;                   /* [height + 1]: set pixels in the rows above */
};

static bool candidates_new(struct candidates *candidates, const struct image *mask, struct err *err)
{
    candidates->mask = mask;
    candidates->before = calloc((size_t)mask->height + 1, sizeof *candidates->before);
    if (!candidates->before)
        return err_memory(err, "a mask");
    for (int64_t y = 0; y < mask->height; y++) {
        const uint8_t *row = image_at(mask, 0, y);
        int64_t set = 0;
        for (int64_t x = 0; x < mask->width; x++)
            set += row[x] != 0;
        candidates->before[y + 1] = candidates->before[y] + set;
    }
    return true;
}

/* A uniform point of the mask's area, in level-0 pixels. */
static void draw_point(const struct candidates *candidates, struct rng *rng, double *x_l0,
                       double *y_l0)
{
    const struct image *mask = candidates->mask;
    int64_t pick = (int64_t)rng_below(rng, (uint64_t)candidates->before[mask->height]);
    int64_t low = 0, high = mask->height - 1; /* the last row that begins at or before pick */
    while (low < high) {
        int64_t middle = (low + high + 1) / 2;
        if (candidates->before[middle] <= pick)
            low = middle;
        else
            high = middle - 1;
    }
    const uint8_t *row = image_at(mask, 0, low);
    int64_t rest = pick - candidates->before[low], x = 0;
    while (row[x] == 0 || rest-- > 0)
        x++;
    *x_l0 = candidates->x_l0 + ((double)x + rng_uniform(rng)) * candidates->step_x;
    *y_l0 = candidates->y_l0 + ((double)low + rng_uniform(rng)) * candidates->step_y;
}

struct sampler {
    const struct sampling *sampling;
    const struct raster *raster;
    const struct tissue_sums *sums;
    struct candidates candidates;
    int wanted_label; /* a class, or ANY_LABEL */
    bool tissue;      /* its patches need some */
    uint64_t stream;
};

static bool inside(int64_t at, int64_t side, int64_t length)
{
    return side > length || (at >= 0 && at + side <= length);
}

/* Attempt k: false if its place is not one of the class. */
static bool attempt(const struct sampler *sampler, int64_t k, struct patch *patch)
{
    const struct sampling *sampling = sampler->sampling;
    const struct raster *raster = sampler->raster;
    struct rng rng = rng_new(sampling->seed, sampler->stream, (uint64_t)k);
    double x_l0, y_l0;
    draw_point(&sampler->candidates, &rng, &x_l0, &y_l0);
    int64_t side = sampling->labeler.tile;
    *patch = (struct patch){ .column = -1, .row = -1 };
    patch->x = (int64_t)floor(x_l0 / raster->downsample) - side / 2;
    patch->y = (int64_t)floor(y_l0 / raster->downsample) - side / 2;
    if (!inside(patch->x, side, raster->width) || !inside(patch->y, side, raster->height))
        return false;
    patch->x_l0 = raster_to_l0(raster, patch->x);
    patch->y_l0 = raster_to_l0(raster, patch->y);
    patch->tissue = (float)grid_tissue(raster, sampler->sums, patch->x, patch->y, side, side);
    if ((sampler->tissue || sampling->all_tissue) && (double)patch->tissue < sampling->min_tissue)
        return false;
    label_patch(&sampling->labeler, raster, patch);
    return sampler->wanted_label == ANY_LABEL || patch->label == sampler->wanted_label;
}

/* Attempts [*k, limit) until n places are found; those that pass the screen go to the list, in
 * order, up to per_class in all. */
static bool sample_round(const struct sampler *sampler, int64_t *k, int64_t limit, int64_t n,
                         int64_t *taken, struct patch_list *out, const struct ctx *ctx,
                         struct err *err)
{
    bool ok = false;
    struct patch *found = malloc((size_t)n * sizeof *found);
    bool *keep = calloc((size_t)n, sizeof *keep);
    int64_t n_found = 0;
    if (!found || !keep) {
        err_memory(err, "patches to examine");
        goto done;
    }
    for (; *k < limit && n_found < n && !ctx_stopped(ctx); ++*k)
        n_found += attempt(sampler, *k, &found[n_found]);
    if (!screen_patches(&sampler->sampling->screen, sampler->raster, found, n_found, keep, ctx,
                        err))
        goto done;
    ok = !ctx_stopped(ctx) || err_stopped(err);
    for (int64_t i = 0; ok && i < n_found && *taken < sampler->sampling->per_class; i++)
        if (keep[i]) {
            ok = patch_list_add(out, &found[i], err);
            ++*taken;
        }
done:
    free(found);
    free(keep);
    return ok;
}

static bool sample_class(struct sampler *sampler, const char *class, struct patch_list *out,
                         const struct ctx *ctx, struct err *err)
{
    const struct sampling *sampling = sampler->sampling;
    int64_t wanted = sampling->per_class, taken = 0, k = 0;
    int64_t limit = wanted * ATTEMPTS_PER_PATCH + ATTEMPTS_AT_LEAST;
    if (sampler->candidates.before[sampler->candidates.mask->height] == 0)
        limit = 0;
    sampler->stream =
        rng_hash(sampling->slide) +
        (uint64_t)(sampler->wanted_label == ANY_LABEL ? ANY_STREAM : sampler->wanted_label);
    while (taken < wanted && k < limit) {
        int64_t missing = wanted - taken, round = missing + missing / 8 + 8;
        if (!sample_round(sampler, &k, limit, round, &taken, out, ctx, err))
            return false;
    }
    if (taken < wanted)
        console_warn(ctx->console, "%s: only %lld of %lld %s patches found", sampling->slide,
                     (long long)taken, (long long)wanted, class);
    return true;
}

/* Patches of a class that was drawn. */
static bool sample_drawn(struct sampler *sampler, int place, struct patch_list *out,
                         const struct ctx *ctx, struct err *err)
{
    const struct labeler *labeler = &sampler->sampling->labeler;
    const struct slide_level *whole = slide_info(sampler->raster->slide)->levels;
    double x0, y0, x1, y1;
    if (!annotation_class_bounds(labeler->annotation, place, &x0, &y0, &x1, &y1))
        return true;
    x0 = fmax(floor(x0), 0), y0 = fmax(floor(y0), 0);
    x1 = fmin(ceil(x1), (double)whole->width), y1 = fmin(ceil(y1), (double)whole->height);
    if (x1 <= x0 || y1 <= y0)
        return true; /* outside of the slide */
    double step = fmax(1, ceil(sqrt((x1 - x0) * (y1 - y0) / CLASS_MASK_PX)));
    struct image mask;
    if (!annotation_class_mask(labeler->annotation, x0, y0, step, (int64_t)ceil((x1 - x0) / step),
                               (int64_t)ceil((y1 - y0) / step), &mask, err))
        return false;
    for (int64_t i = 0; i < mask.width * mask.height; i++)
        mask.px[i] = mask.px[i] == place ? 255 : 0;
    sampler->wanted_label = place;
    sampler->tissue = false;
    sampler->candidates =
        (struct candidates){ .x_l0 = x0, .y_l0 = y0, .step_x = step, .step_y = step };
    bool ok = candidates_new(&sampler->candidates, &mask, err) &&
              sample_class(sampler, class_map_class(labeler->map, place), out, ctx, err);
    free(sampler->candidates.before);
    image_free(&mask);
    return ok;
}

/* Patches of the class of what nobody drew on, or of whatever is tissue. */
static bool sample_tissue(struct sampler *sampler, const struct tissue_mask *mask,
                          struct patch_list *out, const struct ctx *ctx, struct err *err)
{
    const struct labeler *labeler = &sampler->sampling->labeler;
    bool by_class = label_by_annotation(labeler);
    int rest = class_map_unlabelled(labeler->map);
    if (by_class && rest < 0)
        return true;
    sampler->wanted_label = by_class ? rest : ANY_LABEL;
    sampler->tissue = true;
    sampler->candidates =
        (struct candidates){ .step_x = mask->l0_per_px_x, .step_y = mask->l0_per_px_y };
    bool ok = candidates_new(&sampler->candidates, &mask->mask, err) &&
              sample_class(sampler, by_class ? class_map_class(labeler->map, rest) : "tissue", out,
                           ctx, err);
    free(sampler->candidates.before);
    return ok;
}

/* Of a patch, what at least lies beyond a slide that is narrower than it, and is white. */
static double share_beyond(double side, const struct raster *raster)
{
    return 1 - fmin(side, (double)raster->width) * fmin(side, (double)raster->height) / side / side;
}

bool sampling_fits(const struct sampling *sampling, const struct raster *raster,
                   const struct tissue_mask *mask, struct err *err)
{
    int64_t side = sampling->labeler.tile;
    double px = (double)side, tissue = (double)mask->tissue_px * mask->l0_per_px_x *
                                       mask->l0_per_px_y / raster->downsample / raster->downsample;
    if ((side > raster->width && side > raster->height) ||
        share_beyond(px, raster) > sampling->screen.max_white)
        return err_set(err, ERR_MISSING,
                       "no patch of %lld px fits: the slide is %lld x %lld px at this resolution; "
                       "pass a smaller --patch",
                       (long long)side, (long long)raster->width, (long long)raster->height);
    bool within = side <= raster->width && side <= raster->height;
    if (within && !label_by_annotation(&sampling->labeler) &&
        tissue < 0.999 * sampling->min_tissue * px * px)
        return err_set(
            err, ERR_MISSING,
            "no patch of %lld px can have a tissue fraction of %g: all the tissue on the slide "
            "would fill %.2g of a patch; pass a smaller --patch or a lower --tissue-fraction",
            (long long)side, sampling->min_tissue, tissue / px / px);
    return true;
}

bool sampling_list(const struct sampling *sampling, const struct raster *raster,
                   const struct tissue_mask *mask, const struct tissue_sums *sums,
                   struct patch_list *out, const struct ctx *ctx, struct err *err)
{
    *out = (struct patch_list){ 0 };
    struct sampler sampler = { .sampling = sampling, .raster = raster, .sums = sums };
    const struct labeler *labeler = &sampling->labeler;
    bool drawn = label_by_annotation(labeler) && labeler->annotation, ok = true;
    for (int i = 0; ok && drawn && i < class_map_n(labeler->map); i++)
        if (i != class_map_unlabelled(labeler->map))
            ok = sample_drawn(&sampler, i, out, ctx, err);
    ok = ok && sample_tissue(&sampler, mask, out, ctx, err);
    if (ok)
        patch_list_sort(out);
    else
        patch_list_free(out);
    return ok;
}
