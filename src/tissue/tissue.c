/* tissue.c: an overview in memory -> a mask with its measures, and the share of tissue under a
 * rectangle. See tissue.h. */
#include "tissue/tissue.h"

#include <math.h>
#include <stdlib.h>
#include "tissue/method.h"
#include "tissue/morphology.h"
#include "base/text.h"

struct tissue_options tissue_defaults(void)
{
    return (struct tissue_options){
        .method = TISSUE_PROCESS,
        .remove_pen = true,
        .close_um = 20,
        .open_um = 10,
        .min_area_um2 = 10000,
        .min_hole_um2 = 20000,
        .downsample = 32,
    };
}

char *tissue_options_text(const struct tissue_options *o)
{
    return text_format("method=%s use-value=%d pen-removed=%d close=%g open=%g min-area=%g "
                       "min-hole=%g downsample=%g",
                       tissue_method_names[o->method], o->use_value, o->remove_pen, o->close_um,
                       o->open_um, o->min_area_um2, o->min_hole_um2, o->downsample);
}

void tissue_mask_free(struct tissue_mask *mask)
{
    image_free(&mask->mask);
    image_free(&mask->overview);
    *mask = (struct tissue_mask){ 0 };
}

static void clear_where(struct image *mask, const struct image *pen)
{
    for (int64_t i = 0; pen->px && i < mask->width * mask->height; i++)
        if (pen->px[i])
            mask->px[i] = 0;
}

/* Sizes in um. Closing and filling must not bring the pen back. */
static bool clean(struct tissue_mask *out, const struct image *pen,
                  const struct tissue_options *options, struct err *err)
{
    struct image *mask = &out->mask;
    double mpp = out->mpp > 0 ? out->mpp : TISSUE_ASSUMED_MPP;
    double px_um2 = out->l0_per_px_x * out->l0_per_px_y * mpp * mpp, px_um = sqrt(px_um2);
    if (!morphology_close(mask, options->close_um / px_um, err))
        return false;
    clear_where(mask, pen);
    /* A disc of radius r covers 2 r + 1 pixels: with half a pixel less it is never wider than
     * requested, however coarse the pixels are. */
    if (!morphology_open(mask, options->open_um / px_um - 0.5, err) ||
        !morphology_remove_small(mask, options->min_area_um2 / px_um2, err) ||
        !morphology_fill_holes(mask, options->min_hole_um2 / px_um2, err))
        return false;
    clear_where(mask, pen);
    return true;
}

static bool make_mask(struct tissue_mask *out, const struct tissue_options *options,
                      struct err *err)
{
    const struct image *rgb = &out->overview;
    struct image pen = { 0 };
    bool ok = image_new(&out->mask, rgb->width, rgb->height, 1, err);
    if (ok && options->method == TISSUE_NONE)
        return method_apply(rgb, NULL, options, &out->mask, err);
    if (ok && options->remove_pen)
        ok = image_new(&pen, rgb->width, rgb->height, 1, err) && method_find_pen(rgb, &pen, err);
    ok = ok && method_apply(rgb, pen.px, options, &out->mask, err);
    if (ok)
        clear_where(&out->mask, &pen);
    ok = ok && clean(out, &pen, options, err);
    image_free(&pen);
    return ok;
}

static int64_t at_most(double value, int64_t limit)
{
    return value < (double)limit ? (int64_t)value : limit;
}

void tissue_measure(struct tissue_mask *out, int64_t width_l0, int64_t height_l0)
{
    const struct image *mask = &out->mask;
    int64_t x0 = mask->width, y0 = mask->height, x1 = 0, y1 = 0;
    out->tissue_px = out->box_x = out->box_y = out->box_width = out->box_height = 0;
    for (int64_t y = 0; y < mask->height; y++)
        for (int64_t x = 0; x < mask->width; x++) {
            if (!*image_at(mask, x, y))
                continue;
            out->tissue_px++;
            x0 = x < x0 ? x : x0, x1 = x >= x1 ? x + 1 : x1;
            y0 = y < y0 ? y : y0, y1 = y + 1;
        }
    double px_um2 = out->l0_per_px_x * out->l0_per_px_y * out->mpp * out->mpp;
    out->fraction = (double)out->tissue_px / (double)(mask->width * mask->height);
    out->area_mm2 = (double)out->tissue_px * px_um2 / 1e6;
    if (out->tissue_px == 0)
        return;
    out->box_x = (int64_t)((double)x0 * out->l0_per_px_x);
    out->box_y = (int64_t)((double)y0 * out->l0_per_px_y);
    out->box_width = at_most(ceil((double)x1 * out->l0_per_px_x), width_l0) - out->box_x;
    out->box_height = at_most(ceil((double)y1 * out->l0_per_px_y), height_l0) - out->box_y;
}

bool tissue_find_in(struct image *overview, int64_t width_l0, int64_t height_l0, double mpp,
                    const struct tissue_options *options, struct tissue_mask *out, struct err *err)
{
    *out = (struct tissue_mask){
        .overview = *overview,
        .l0_per_px_x = (double)width_l0 / (double)overview->width,
        .l0_per_px_y = (double)height_l0 / (double)overview->height,
        .mpp = mpp > 0 ? mpp : 0,
    };
    *overview = (struct image){ 0 };
    if (!make_mask(out, options, err)) {
        tissue_mask_free(out);
        return false;
    }
    tissue_measure(out, width_l0, height_l0);
    return true;
}

/* at [height + 1, width + 1]: tissue pixels above and left of a corner. */
struct tissue_sums {
    uint32_t *at;
    int64_t width, height;
    double l0_per_px_x, l0_per_px_y;
};

bool tissue_sums_new(const struct tissue_mask *mask, struct tissue_sums **out, struct err *err)
{
    const struct image *px = &mask->mask;
    struct tissue_sums *sums = malloc(sizeof *sums);
    if (!sums)
        return err_memory(err, "a tissue mask");
    *sums = (struct tissue_sums){
        .at = calloc((size_t)(px->width + 1) * (size_t)(px->height + 1), sizeof *sums->at),
        .width = px->width,
        .height = px->height,
        .l0_per_px_x = mask->l0_per_px_x,
        .l0_per_px_y = mask->l0_per_px_y,
    };
    if (!sums->at) {
        tissue_sums_free(sums);
        return err_memory(err, "a tissue mask");
    }
    int64_t stride = px->width + 1;
    for (int64_t y = 0; y < px->height; y++) {
        uint32_t row = 0;
        for (int64_t x = 0; x < px->width; x++) {
            row += *image_at(px, x, y) ? 1 : 0;
            sums->at[(y + 1) * stride + x + 1] = sums->at[y * stride + x + 1] + row;
        }
    }
    *out = sums;
    return true;
}

void tissue_sums_free(struct tissue_sums *sums)
{
    if (sums)
        free(sums->at);
    free(sums);
}

/* Tissue above and left of a point in mask pixels. Within a pixel the sum is bilinear in x and y,
 * so interpolating is exact. */
static double sum_at(const struct tissue_sums *sums, double x, double y)
{
    x = x < 0 ? 0 : x > (double)sums->width ? (double)sums->width : x;
    y = y < 0 ? 0 : y > (double)sums->height ? (double)sums->height : y;
    int64_t i = at_most(x, sums->width - 1), j = at_most(y, sums->height - 1);
    double u = x - (double)i, v = y - (double)j;
    const uint32_t *top = sums->at + j * (sums->width + 1) + i, *low = top + sums->width + 1;
    return (1 - v) * ((1 - u) * top[0] + u * top[1]) + v * ((1 - u) * low[0] + u * low[1]);
}

double tissue_fraction(const struct tissue_sums *sums, double x_l0, double y_l0, double width_l0,
                       double height_l0)
{
    double x0 = x_l0 / sums->l0_per_px_x, x1 = (x_l0 + width_l0) / sums->l0_per_px_x;
    double y0 = y_l0 / sums->l0_per_px_y, y1 = (y_l0 + height_l0) / sums->l0_per_px_y;
    if (!(x1 > x0) || !(y1 > y0))
        return 0;
    double tissue =
        sum_at(sums, x1, y1) - sum_at(sums, x0, y1) - sum_at(sums, x1, y0) + sum_at(sums, x0, y0);
    double fraction = tissue / ((x1 - x0) * (y1 - y0));
    return fraction < 0 ? 0 : fraction > 1 ? 1 : fraction; /* rounding */
}
