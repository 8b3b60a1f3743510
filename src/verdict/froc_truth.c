/* froc_truth.c: a mask of tumour -> lesions by CAMELYON16's rules. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tissue/morphology.h"
#include "verdict/froc.h"
#include "verdict/regions.h"

struct froc_rules froc_camelyon16(void)
{
    return (struct froc_rules){ .mpp = 0.243, .downsample = 32, .join_um = 75, .isolated_um = 275 };
}

/* Distance < limit: distances are square roots of integers, so the largest below the limit is that
 * of the integer before its square. The half keeps the comparison clear of rounding errors. */
static bool join_near(struct image *mask, double limit_px, struct err *err)
{
    double below = ceil(limit_px * limit_px) - 1;
    return below < 1 || morphology_dilate(mask, sqrt(below + 0.5), err);
}

/* A hole cannot reach the border through edges (scipy's rule, which treats corners as closed). */
static bool fill(struct image *mask, struct err *err)
{
    int32_t *labels = NULL, n = 0;
    const int64_t width = mask->width, height = mask->height;
    morphology_invert(mask);
    bool labelled = morphology_label(mask, false, &labels, &n, err);
    morphology_invert(mask);
    bool *open = labelled ? calloc((size_t)n + 1, sizeof *open) : NULL;
    if (labelled && !open)
        err_memory(err, "a mask of tumour");
    if (open) {
        for (int64_t x = 0; x < width; x++)
            open[labels[x]] = open[labels[(height - 1) * width + x]] = true;
        for (int64_t y = 0; y < height; y++)
            open[labels[y * width]] = open[labels[y * width + width - 1]] = true;
        for (int64_t i = 0; i < width * height; i++)
            if (labels[i] && !open[labels[i]])
                mask->px[i] = 255;
    }
    bool ok = open;
    free(labels), free(open);
    return ok;
}

static bool find_isolated(struct froc_truth *truth, double limit_px, struct err *err)
{
    struct region_measure *regions = NULL;
    struct regions_input input = { truth->labels, NULL, truth->width, truth->height, truth->n };
    truth->isolated = calloc((size_t)truth->n + 1, sizeof *truth->isolated);
    if (!truth->isolated)
        return err_memory(err, "a mask of tumour");
    if (!regions_measure(&input, &regions, err))
        return false;
    for (int32_t i = 0; i < truth->n; i++) {
        truth->isolated[i] = regions[i].major_axis < limit_px;
        truth->counted += !truth->isolated[i];
    }
    free(regions);
    return true;
}

bool froc_truth_of_mask(struct image *mask, const struct froc_rules *rules, struct froc_truth *out,
                        struct err *err)
{
    const double um_per_px = rules->mpp * rules->downsample;
    *out = (struct froc_truth){ .width = mask->width,
                                .height = mask->height,
                                .downsample = rules->downsample };
    bool ok = join_near(mask, rules->join_um / (um_per_px * 2), err) && fill(mask, err) &&
              morphology_label(mask, true, &out->labels, &out->n, err) &&
              find_isolated(out, rules->isolated_um / um_per_px, err);
    if (!ok)
        froc_truth_free(out);
    return ok;
}

void froc_truth_free(struct froc_truth *truth)
{
    free(truth->labels);
    free(truth->isolated);
    *truth = (struct froc_truth){ 0 };
}
