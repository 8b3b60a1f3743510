/* find.c: nuclei_find: haematoxylin, smoothed -> local threshold -> filled, opened -> distance to
 * the edge, weighed by haematoxylin -> watershed. See nuclei.h and docs/nuclei.md. */
#include <math.h>
#include <stdlib.h>
#include "nuclei/hematoxylin.h"
#include "nuclei/nuclei.h"
#include "nuclei/planes.h"
#include "nuclei/watershed.h"
#include "stain/stain_fit.h"
#include "tissue/morphology.h"

/* Two are near the end: a third moves the threshold little. */
#define THRESHOLD_ROUNDS 2
/* Green above this is glass: both stains absorb green. */
#define GLASS_GREEN 218
/* Around a nucleus that was found; there its edge is blurred. */
#define RIM_UM 0.75

struct nuclei_settings nuclei_defaults(void)
{
    return (struct nuclei_settings){
        .smooth_um = 0.35,
        .window_um = 30,
        .level = 0.43,
        .min_contrast = 0.1,
        .min_hematoxylin = 0.15,
        .open_um = 0.85,
        .fill_um2 = 30,
        .marker_um = 0.3,
        .tone_um = 0.9,
        .split = 0.97,
        .min_distance_um = 3,
        .min_area_um2 = 8,
        .max_area_um2 = 600,
        .min_red = 0.42,
        .max_red = 1.2,
        .pale_area_um2 = 15,
        .pale_solidity = 0.85,
    };
}

double nuclei_margin_um(const struct nuclei_settings *s)
{
    double widest = 2 * sqrt(s->max_area_um2 / M_PI);
    return s->window_um + widest;
}

static bool has_second_search(const struct nuclei_settings *s)
{
    return s->pale_area_um2 <= s->max_area_um2;
}

static bool check(const struct image *rgb, double mpp, struct err *err)
{
    if (rgb->channels != 3)
        return err_set(err, ERR_USAGE, "nuclei are found in RGB images, not in grey ones");
    if (!(mpp > 0) || !isfinite(mpp))
        return err_set(err, ERR_USAGE, "%g is not a resolution in um/px", mpp);
    if (mpp > NUCLEI_COARSEST_MPP)
        return err_set(err, ERR_USAGE,
                       "nuclei cannot be resolved at %g um/px; use 1 um/px or finer, best 0.25 to "
                       "0.5",
                       mpp);
    if (rgb->width * rgb->height > INT32_MAX)
        return err_set(err, ERR_USAGE,
                       "an image of %lld x %lld px is too large for nuclei; cut it into tiles",
                       (long long)rgb->width, (long long)rgb->height);
    return true;
}

/* An image on its way to labels. Planes are [height, width]. */
struct search {
    const struct image *rgb;
    double mpp;
    const struct nuclei_settings *s;
    struct image skip; /* not 0: glass, or a nucleus that was found before */
    struct image mask;
    float *hematoxylin, *land, *room;
};

static bool search_begin(struct search *f, struct err *err)
{
    int64_t width = f->rgb->width, height = f->rgb->height, n = width * height;
    f->hematoxylin = malloc((size_t)n * 3 * sizeof *f->hematoxylin);
    if (!f->hematoxylin)
        return err_memory(err, "haematoxylin");
    f->land = f->hematoxylin + n, f->room = f->land + n;
    if (!image_new(&f->skip, width, height, 1, err) || !image_new(&f->mask, width, height, 1, err))
        return false;
    for (int64_t i = 0; i < n; i++)
        f->skip.px[i] = f->rgb->px[3 * i + 1] > GLASS_GREEN ? 255 : 0;
    return true;
}

static void search_end(struct search *f)
{
    image_free(&f->mask);
    image_free(&f->skip);
    free(f->hematoxylin);
}

/* Where nuclei are, touching ones together. */
static bool find_mask(struct search *f, struct err *err)
{
    const struct nuclei_settings *s = f->s;
    int64_t width = f->rgb->width, height = f->rgb->height;
    double mpp = f->mpp;
    struct planes_threshold threshold = { .half_px = (int64_t)(s->window_um / mpp / 2),
                                          .share = s->level,
                                          .rounds = THRESHOLD_ROUNDS,
                                          .contrast = s->min_contrast,
                                          .least = s->min_hematoxylin };
    hematoxylin_of(f->rgb, f->hematoxylin);
    for (int64_t i = 0; i < width * height; i++)
        if (f->skip.px[i])
            f->hematoxylin[i] = 0;
    return planes_smooth(f->hematoxylin, f->room, width, height, s->smooth_um / mpp, err) &&
           planes_above_local(f->hematoxylin, &f->skip, &threshold, &f->mask, err) &&
           morphology_fill_holes(&f->mask, s->fill_um2 / (mpp * mpp), err) &&
           morphology_open(&f->mask, s->open_um / mpp, err);
}

/* The landscape whose hills are nuclei: the distance to the edge, weighed by haematoxylin, because
 * between nuclei that touch there is often a little less of it. */
static bool find_land(struct search *f, struct err *err)
{
    const struct nuclei_settings *s = f->s;
    int64_t width = f->rgb->width, height = f->rgb->height;
    double deepest_um = 2 * sqrt(s->max_area_um2);
    if (!planes_distance(&f->mask, deepest_um / f->mpp, f->land, err) ||
        !planes_smooth(f->land, f->room, width, height, s->marker_um / f->mpp, err) ||
        !planes_smooth(f->hematoxylin, f->room, width, height, s->tone_um / f->mpp, err))
        return false;
    for (int64_t i = 0; i < width * height; i++)
        f->land[i] *= f->hematoxylin[i];
    return true;
}

/* Clears what does not have the colour of a nucleus. */
static bool drop_colours(const struct image *rgb, const struct nuclei_settings *s,
                         struct nuclei_labels *labels, struct err *err)
{
    int64_t all = rgb->width * rgb->height;
    double density[256];
    stain_density_table(density);
    double(*sums)[2] = calloc((size_t)labels->n + 1, sizeof *sums); /* red, green */
    if (!sums)
        return err_memory(err, "the colours of nuclei");
    for (int64_t i = 0; i < all; i++) {
        sums[labels->labels[i]][0] += density[rgb->px[3 * i]];
        sums[labels->labels[i]][1] += density[rgb->px[3 * i + 1]];
    }
    for (int64_t i = 0; i < all; i++) {
        const double *sum = sums[labels->labels[i]];
        if (sum[0] < s->min_red * sum[1] || sum[0] > s->max_red * sum[1])
            labels->labels[i] = 0;
    }
    free(sums);
    return true;
}

static int64_t least_px(const struct search *f, double area_um2)
{
    return (int64_t)ceil(area_um2 / (f->mpp * f->mpp));
}

static bool search_once(struct search *f, double min_area_um2, struct nuclei_labels *out,
                        struct err *err)
{
    double px_um2 = f->mpp * f->mpp;
    struct watershed_split split = { f->s->split, f->s->min_distance_um / f->mpp };
    return find_mask(f, err) && find_land(f, err) &&
           watershed_hills(f->land, &f->mask, &split, out, err) &&
           drop_colours(f->rgb, f->s, out, err) &&
           nuclei_labels_tidy(out, least_px(f, min_area_um2),
                              (int64_t)(f->s->max_area_um2 / px_um2), err);
}

/* What the first search found, and a rim around it, has no part in the second. */
static bool skip_found(struct search *f, const struct nuclei_labels *found, struct err *err)
{
    int64_t n = found->width * found->height;
    for (int64_t i = 0; i < n; i++)
        f->mask.px[i] = found->labels[i] ? 255 : 0;
    if (!morphology_dilate(&f->mask, RIM_UM / f->mpp, err))
        return false;
    for (int64_t i = 0; i < n; i++)
        f->skip.px[i] |= f->mask.px[i];
    return true;
}

/* Adds those of `pale` that are convex enough. One that was filled may cover a nucleus of the first
 * search: what is left of that is cleared if it is too small. */
static bool add_convex(const struct search *f, const struct nuclei_labels *pale,
                       struct nuclei_labels *out, struct err *err)
{
    struct nucleus *nuclei;
    if (!nuclei_measure(f->rgb, f->mpp, pale, &nuclei, err))
        return false;
    int64_t n = out->width * out->height;
    for (int64_t i = 0; i < n; i++) {
        int32_t label = pale->labels[i];
        if (label && nuclei[label - 1].features[NUCLEUS_SOLIDITY] >= f->s->pale_solidity)
            out->labels[i] = out->n + label;
    }
    out->n += pale->n;
    free(nuclei);
    return nuclei_labels_tidy(out, least_px(f, f->s->min_area_um2), n, err);
}

static bool search_again(struct search *f, struct nuclei_labels *out, struct err *err)
{
    struct nuclei_labels pale = { 0 };
    bool ok = skip_found(f, out, err) && search_once(f, f->s->pale_area_um2, &pale, err) &&
              add_convex(f, &pale, out, err);
    nuclei_labels_free(&pale);
    return ok;
}

bool nuclei_find(const struct image *rgb, double mpp, const struct nuclei_settings *settings,
                 struct nuclei_labels *out, struct err *err)
{
    struct search search = { .rgb = rgb, .mpp = mpp, .s = settings };
    *out = (struct nuclei_labels){ 0 };
    if (!check(rgb, mpp, err))
        return false;
    bool ok = search_begin(&search, err) &&
              search_once(&search, settings->min_area_um2, out, err) &&
              (!has_second_search(settings) || search_again(&search, out, err));
    if (!ok)
        nuclei_labels_free(out);
    search_end(&search);
    return ok;
}
