/* find.c: nuclei_find: haematoxylin, smoothed -> local threshold -> filled, opened -> distance to
 * the edge -> watershed. See nuclei.h and docs/nuclei.md. */
#include <math.h>
#include <stdlib.h>
#include "nuclei/hematoxylin.h"
#include "nuclei/nuclei.h"
#include "nuclei/planes.h"
#include "nuclei/watershed.h"
#include "tissue/morphology.h"

/* Two are near the end: a third moves the threshold little. */
#define THRESHOLD_ROUNDS 2

struct nuclei_settings nuclei_defaults(void)
{
    return (struct nuclei_settings){
        .smooth_um = 0.35,
        .window_um = 40,
        .level = 0.45,
        .min_contrast = 0.1,
        .min_hematoxylin = 0.3,
        .open_um = 1,
        .fill_um2 = 30,
        .marker_um = 0.3,
        .split = 0.95,
        .min_distance_um = 3,
        .min_area_um2 = 8,
        .max_area_um2 = 600,
    };
}

double nuclei_margin_um(const struct nuclei_settings *s)
{
    double widest = 2 * sqrt(s->max_area_um2 / M_PI);
    return (THRESHOLD_ROUNDS + 1) * s->window_um / 2 + 4 * (s->smooth_um + s->marker_um) +
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

/* Where nuclei are, touching ones together. plane, room [height, width] are overwritten. */
static bool find_mask(const struct image *rgb, double mpp, const struct nuclei_settings *s,
                      float *plane, float *room, struct image *mask, struct err *err)
{
    struct planes_threshold threshold = { .half_px = (int64_t)(s->window_um / mpp / 2),
                                          .share = s->level,
                                          .rounds = THRESHOLD_ROUNDS,
                                          .contrast = s->min_contrast,
                                          .least = s->min_hematoxylin };
    hematoxylin_of(rgb, plane);
    return planes_smooth(plane, room, rgb->width, rgb->height, s->smooth_um / mpp, err) &&
           planes_above_local(plane, rgb, &threshold, mask, err) &&
           morphology_fill_holes(mask, s->fill_um2 / (mpp * mpp), err) &&
           morphology_open(mask, s->open_um / mpp, err);
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
    double deepest = 2 * sqrt(s->max_area_um2) / mpp;
    float *planes = malloc((size_t)(width * height) * 2 * sizeof *planes);
    float *plane = planes, *room = planes ? planes + width * height : NULL;
    bool ok = planes || err_memory(err, "haematoxylin");
    ok = ok && image_new(&mask, width, height, 1, err) &&
         find_mask(rgb, mpp, s, plane, room, &mask, err) &&
         planes_distance(&mask, deepest, plane, err) &&
         planes_smooth(plane, room, width, height, s->marker_um / mpp, err) &&
         watershed_hills(plane, &mask, &split, out, err) &&
         nuclei_labels_tidy(out, (int64_t)ceil(s->min_area_um2 / (mpp * mpp)),
                            (int64_t)(s->max_area_um2 / (mpp * mpp)), err);
    if (!ok)
        nuclei_labels_free(out);
    image_free(&mask);
    free(planes);
    return ok;
}
