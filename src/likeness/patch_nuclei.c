/* patch_nuclei.c: see patch_nuclei.h. */
#include "likeness/patch_nuclei.h"

#include <math.h>
#include <stdlib.h>

#define LEAST_UM 20.0 /* side of a patch: a few nuclei that are not cut off */

const char *patch_nuclei_problem(int64_t width, int64_t height, double mpp)
{
    if (mpp <= 0)
        return "their um/px is not known; pass --mpp";
    if (mpp > NUCLEI_COARSEST_MPP)
        return "the patches are too coarse to tell nuclei apart";
    if ((double)(width < height ? width : height) * mpp < LEAST_UM)
        return "the patches are too small: most nuclei would be cut off by their borders";
    return NULL;
}

bool patch_nuclei_measure(const struct image *rgb, double mpp, struct nuclei_sums *out,
                          struct err *err)
{
    struct nuclei_settings settings = nuclei_defaults();
    struct nuclei_labels labels = { 0 };
    struct nucleus *nuclei = NULL;
    bool ok = nuclei_find(rgb, mpp, &settings, &labels, err) &&
              nuclei_measure(rgb, mpp, &labels, &nuclei, err);
    *out = (struct nuclei_sums){ .measured = ok,
                                 .all = labels.n,
                                 .area_mm2 = (double)(rgb->width * rgb->height) * mpp * mpp / 1e6 };
    for (int32_t i = 0; ok && i < labels.n; i++) {
        if (nuclei[i].touches_border)
            continue;
        out->whole++;
        for (int f = 0; f < NUCLEUS_FEATURES; f++) {
            double value = nuclei[i].features[f];
            if (isnan(value))
                continue;
            out->sum[f] += value;
            out->squares[f] += value * value;
            out->n[f]++;
        }
    }
    free(nuclei);
    nuclei_labels_free(&labels);
    return ok;
}

void patch_nuclei_summary(const struct nuclei_sums *sums, int64_t n, struct patch_nuclei *out)
{
    struct nuclei_sums all = { 0 };
    *out = (struct patch_nuclei){ 0 };
    for (int64_t i = 0; i < n; i++) {
        out->patches += sums[i].measured;
        all.all += sums[i].all;
        all.whole += sums[i].whole;
        all.area_mm2 += sums[i].area_mm2;
        for (int f = 0; f < NUCLEUS_FEATURES; f++) {
            all.sum[f] += sums[i].sum[f];
            all.squares[f] += sums[i].squares[f];
            all.n[f] += sums[i].n[f];
        }
    }
    out->nuclei = all.whole;
    out->per_mm2 = all.area_mm2 > 0 ? (double)all.all / all.area_mm2 : NAN;
    for (int f = 0; f < NUCLEUS_FEATURES; f++) {
        double count = (double)all.n[f], mean = all.sum[f] / count;
        out->mean[f] = all.n[f] > 0 ? mean : NAN;
        out->std[f] = all.n[f] > 1 ? sqrt(fmax(all.squares[f] / count - mean * mean, 0)) : NAN;
    }
}
