/* tissue_slide.c: a slide -> its tissue mask. */
#include "slide/slide.h"
#include "tissue/tissue.h"

#include <math.h>

/* As requested, but no finer than memory allows and no coarser than the slide is wide. */
static double overview_downsample(const struct slide_level *whole, double wanted)
{
    double least = sqrt((double)whole->width * (double)whole->height / TISSUE_MAX_OVERVIEW_PX);
    double most = (double)(whole->width < whole->height ? whole->width : whole->height);
    return fmin(fmax(wanted, least), most);
}

bool tissue_find(struct slide *slide, const struct tissue_options *options, const struct ctx *ctx,
                 struct tissue_mask *out, struct err *err)
{
    const struct slide_info *info = slide_info(slide);
    struct image overview = { 0 };
    *out = (struct tissue_mask){ 0 };
    if (!slide_overview(slide, overview_downsample(info->levels, options->downsample), ctx,
                        &overview, err))
        return false;
    return tissue_find_in(&overview, info->levels[0].width, info->levels[0].height, info->mpp,
                          options, out, err);
}

bool tissue_read(struct slide *slide, const char *path, struct tissue_mask *out, struct err *err)
{
    const struct slide_info *info = slide_info(slide);
    int64_t width_l0 = info->levels[0].width, height_l0 = info->levels[0].height;
    *out = (struct tissue_mask){ .mpp = info->mpp };
    if (!image_read_png(path, 1, &out->mask, err))
        return false;
    out->l0_per_px_x = (double)width_l0 / (double)out->mask.width;
    out->l0_per_px_y = (double)height_l0 / (double)out->mask.height;
    tissue_measure(out, width_l0, height_l0);
    return true;
}
