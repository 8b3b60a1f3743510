/* stain_sample.h: the stains of a slide, fitted on a sample of its tissue. */
#ifndef PATCH_STAIN_SAMPLE_H
#define PATCH_STAIN_SAMPLE_H
#include "base/ctx.h"
#include "stain/stain.h"
#include "tissue/tissue.h"

/* What the fit sees of a slide: windows of STAIN_SAMPLE_PX on tissue, at 0.5 um/px or level 0 if
 * that is coarser or has no um/px. */
#define STAIN_SAMPLE_MPP 0.5
#define STAIN_SAMPLE_PX 64
#define STAIN_SAMPLE_WINDOWS 128

/* Depends on the slide and its um/px alone: on no option, patch, seed, name, thread or task. So the
 * transform of a pixel is the same wherever it is read, and a patch always the same bytes.
 * Tissue is found with tissue_defaults, or else the next method that finds any. known: the mask of
 * tissue_defaults, if the caller has it; NULL: it is computed. band_bytes: memory for decoded
 * pixels. A slide with too little tissue is an error. */
bool stain_sample_fit(enum stain_method method, struct slide *slide,
                      const struct tissue_mask *known, int64_t band_bytes, const struct ctx *ctx,
                      struct stain_fit *out, struct err *err);
#endif
