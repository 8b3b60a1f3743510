/* stain_sample.h: tissue of a slide, sampled for the fit of its stains. */
#ifndef PATCH_STAIN_SAMPLE_H
#define PATCH_STAIN_SAMPLE_H
#include "base/ctx.h"
#include "patch/grid.h"
#include "tissue/stain.h"

/* Fits windows in the middle of patches spread evenly over the list, of those that lie wholly on
 * tissue if there are any. */
bool stain_sample_fit(enum stain_method method, const struct raster *raster,
                      const struct tissue_sums *sums, const struct patch_list *patches,
                      int64_t patch_px, int64_t band_bytes, const struct ctx *ctx,
                      struct stain_fit *out, struct err *err);
#endif
