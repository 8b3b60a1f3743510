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

struct nuclei_settings nuclei_defaults(void)
{
    return (struct nuclei_settings){
        .smooth_um = 0.35,
        .window_um = 36,
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
    };
}

double nuclei_margin_um(const struct nuclei_settings *s)
{
    double widest = 2 * sqrt(s->max_area_um2 / M_PI);
    return (THRESHOLD_ROUNDS + 1) * s->window_um / 2 + 4 * (s->smooth_um + s->tone_um) +
           2 * s->open_um + widest;
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

/* [height, width] each. */
struct planes {
    float *hematoxylin, *land, *room;
};

/* Where nuclei are, touching ones together. */
static bool find_mask(const struct image *rgb, double mpp, const struct nuclei_settings *s,
                      const struct planes *p, struct image *mask, struct err *err)
{
    struct planes_threshold threshold = { .half_px = (int64_t)(s->window_um / mpp / 2),
                                          .share = s->level,
                                          .rounds = THRESHOLD_ROUNDS,
                                          .contrast = s->min_contrast,
                                          .least = s->min_hematoxylin };
    hematoxylin_of(rgb, p->hematoxylin);
    return planes_smooth(p->hematoxylin, p->room, rgb->width, rgb->height, s->smooth_um / mpp,
                         err) &&
           planes_above_local(p->hematoxylin, rgb, &threshold, mask, err) &&
           morphology_fill_holes(mask, s->fill_um2 / (mpp * mpp), err) &&
           morphology_open(mask, s->open_um / mpp, err);
}

/* The landscape whose hills are nuclei: the distance to the edge, weighed by
 * haematoxylin, because between nuclei that touch there is often a little less of it. */
static bool find_land(double mpp, const struct nuclei_settings *s, const struct image *mask,
                      const struct planes *p, struct err *err)
{
    int64_t width = mask->width, height = mask->height;
    double deepest_um = 2 * sqrt(s->max_area_um2);
    if (!planes_distance(mask, deepest_um / mpp, p->land, err) ||
        !planes_smooth(p->land, p->room, width, height, s->marker_um / mpp, err) ||
        !planes_smooth(p->hematoxylin, p->room, width, height, s->tone_um / mpp, err))
        return false;
    for (int64_t i = 0; i < width * height; i++)
        p->land[i] *= p->hematoxylin[i];
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

bool nuclei_find(const struct image *rgb, double mpp, const struct nuclei_settings *settings,
                 struct nuclei_labels *out, struct err *err)
{
    const struct nuclei_settings *s = settings;
    *out = (struct nuclei_labels){ 0 };
    if (!check(rgb, mpp, err))
        return false;
    int64_t width = rgb->width, height = rgb->height;
    struct image mask = { 0 };
    struct watershed_split split = { s->split, s->min_distance_um / mpp };
    float *room = malloc((size_t)(width * height) * 3 * sizeof *room);
    bool ok = room || err_memory(err, "haematoxylin");
    struct planes planes = { room, ok ? room + width * height : NULL,
                             ok ? room + 2 * width * height : NULL };
    ok = ok && image_new(&mask, width, height, 1, err) &&
         find_mask(rgb, mpp, s, &planes, &mask, err) && find_land(mpp, s, &mask, &planes, err) &&
         watershed_hills(planes.land, &mask, &split, out, err) && drop_colours(rgb, s, out, err) &&
         nuclei_labels_tidy(out, (int64_t)ceil(s->min_area_um2 / (mpp * mpp)),
                            (int64_t)(s->max_area_um2 / (mpp * mpp)), err);
    if (!ok)
        nuclei_labels_free(out);
    image_free(&mask);
    free(room);
    return ok;
}
