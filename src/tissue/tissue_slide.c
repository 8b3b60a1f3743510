/* tissue_slide.c: a slide -> its tissue mask. */
#include "slide/slide.h"
#include "tissue/tissue.h"

bool tissue_find(struct slide *slide, const struct tissue_options *options, struct tissue_mask *out,
                 struct err *err)
{
    const struct slide_info *info = slide_info(slide);
    struct image overview = { 0 };
    *out = (struct tissue_mask){ 0 };
    if (!slide_overview(slide, options->downsample, &overview, err))
        return false;
    return tissue_find_in(&overview, info->levels[0].width, info->levels[0].height, info->mpp,
                          options, out, err);
}
