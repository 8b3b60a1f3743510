/* features.c: see features.h. */
#include "verdict/features.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tissue/morphology.h"
#include "verdict/regions.h"

/* Regions of the cells above a threshold, or at or above it. Free *regions [*n]. */
static bool find_regions(const struct heat_field *field, double threshold, bool from_it_on,
                         struct region_measure **regions, int32_t *n, struct err *err)
{
    struct image mask;
    int32_t *labels = NULL;
    if (!image_new(&mask, field->width, field->height, 1, err))
        return false;
    const float least = (float)threshold;
    for (int64_t i = 0; i < field->width * field->height; i++)
        mask.px[i] =
            field->values[i] > least || (from_it_on && field->values[i] == least) ? 255 : 0;
    bool ok = morphology_label(&mask, true, &labels, n, err);
    image_free(&mask);
    struct regions_input input = { labels, field->values, field->width, field->height, *n };
    ok = ok && regions_measure(&input, regions, err);
    free(labels);
    return ok;
}

/* The largest region other than `but` (-1: of all); the first of equals; -1: none. */
static int32_t largest(const struct region_measure *regions, int32_t n, int32_t but)
{
    int32_t best = -1;
    for (int32_t i = 0; i < n; i++)
        if (i != but && (best < 0 || regions[i].area > regions[best].area))
            best = i;
    return best;
}

static const char *const fda_names[] = {
    "ratio_cancer_tissue50",
    "ratio_cancer_tissue60",
    "ratio_cancer_tissue70",
    "ratio_cancer_tissue80",
    "ratio_cancer_tissue90",
    "ratio_sum_tissue50",
    "ratio_sum_tissue60",
    "ratio_sum_tissue70",
    "ratio_sum_tissue80",
    "ratio_sum_tissue90",
    "largest_area",
    "eccentricity_largest",
    "extend_largest",
    "area_bbox_largest",
    "major_axis_length_largest",
    "maxprob_largest",
    "minprob_largest",
    "aveprob_largest",
    "aspect_ratio_bbox_largest",
    "solidity_largest",
    "second_largest_area",
    "eccentricity_second_largest",
    "extend_second_largest",
    "area_bbox_second_largest",
    "major_axis_length_second_largest",
    "maxprob_second_largest",
    "minprob_second_largest",
    "aveprob_second_largest",
    "aspect_ratio_bbox_second_largest",
    "solidity_second_largest",
};

static void fda_region(const struct region_measure *r, double *values)
{
    const double height = (double)(r->y1 - r->y0), width = (double)(r->x1 - r->x0);
    const double measures[10] = { (double)r->area, r->eccentricity, r->extent, height * width,
                                  r->major_axis,   r->most,         r->least,  r->mean,
                                  height / width,  r->solidity };
    memcpy(values, measures, sizeof measures);
}

static bool fda_compute(const struct heat_field *field, double threshold, double *values,
                        struct err *err)
{
    struct region_measure *regions = NULL;
    int32_t n = 0;
    const double tissue = field->tissue > 0 ? (double)field->tissue : 1;
    memset(values, 0, 30 * sizeof *values);
    for (int64_t i = 0; i < field->width * field->height; i++)
        for (int k = 0; k < 5; k++) {
            const float limit = (float)(5 + k) / 10;
            if (!(field->values[i] > limit))
                break;
            values[k]++;
            values[5 + k] += (double)field->values[i] - (double)limit;
        }
    for (int k = 0; k < 10; k++)
        values[k] /= tissue;
    if (!find_regions(field, threshold, false, &regions, &n, err))
        return false;
    int32_t first = largest(regions, n, -1);
    int32_t second = first >= 0 ? largest(regions, n, first) : -1;
    if (first >= 0)
        fda_region(&regions[first], values + 10);
    if (second >= 0)
        fda_region(&regions[second], values + 20);
    free(regions);
    return true;
}

static const char *const wang_names[] = {
    "region_count",
    "ratio_tumor_tissue",
    "largest_tumor_area",
    "longest_axis_largest_tumor",
    "pixels_gt_90",
    "avg_prediction",
    "max_area",
    "mean_area",
    "area_variance",
    "area_skew",
    "area_kurt",
    "max_perimeter",
    "mean_perimeter",
    "perimeter_variance",
    "perimeter_skew",
    "perimeter_kurt",
    "max_eccentricity",
    "mean_eccentricity",
    "eccentricity_variance",
    "eccentricity_skew",
    "eccentricity_kurt",
    "max_extent",
    "mean_extent",
    "extent_variance",
    "extent_skew",
    "extent_kurt",
    "max_solidity",
    "mean_solidity",
    "solidity_variance",
    "solidity_skew",
    "solidity_kurt",
};

/* One measure of all regions -> maximum, mean, variance, skewness and (excess) kurtosis, all over
 * n; the last two are 0 if all regions are equal. */
static void moments(const struct region_measure *regions, int32_t n, size_t offset, double *out)
{
    double most = -INFINITY, sum = 0, m2 = 0, m3 = 0, m4 = 0;
    for (int32_t i = 0; i < n; i++) {
        double value = *(const double *)((const char *)&regions[i] + offset);
        most = fmax(most, value), sum += value;
    }
    const double mean = sum / n;
    for (int32_t i = 0; i < n; i++) {
        double d = *(const double *)((const char *)&regions[i] + offset) - mean;
        m2 += d * d / n, m3 += d * d * d / n, m4 += d * d * d * d / n;
    }
    bool alike = m2 <= (2.3e-16 * mean) * (2.3e-16 * mean);
    out[0] = most, out[1] = mean, out[2] = m2;
    out[3] = alike ? 0 : m3 / pow(m2, 1.5);
    out[4] = alike ? 0 : m4 / (m2 * m2) - 3;
}

/* moments of the area, which is not a double. */
static void area_moments(const struct region_measure *regions, int32_t n,
                         struct region_measure *scratch, double *out)
{
    for (int32_t i = 0; i < n; i++)
        scratch[i].mean = (double)regions[i].area;
    moments(scratch, n, offsetof(struct region_measure, mean), out);
}

static bool wang_compute(const struct heat_field *field, double threshold, double *values,
                         struct err *err)
{
    (void)threshold; /* the set has its own */
    struct region_measure *high = NULL, *half = NULL, *scratch = NULL;
    int32_t n_high = 0, n_half = 0;
    memset(values, 0, 31 * sizeof *values);
    bool ok = find_regions(field, 0.9, true, &high, &n_high, err) &&
              find_regions(field, 0.5, true, &half, &n_half, err);
    if (ok && n_high > 0) {
        scratch = calloc((size_t)n_high, sizeof *scratch);
        ok = scratch || err_memory(err, "the features");
    }
    if (ok && n_high > 0) {
        for (int32_t i = 0; i < n_high; i++) {
            values[4] += (double)high[i].area;
            values[5] += high[i].mean / n_high;
        }
        const struct region_measure *top = &half[largest(half, n_half, -1)];
        values[0] = n_high;
        values[1] = values[4] / (double)field->tissue;
        values[2] = (double)top->area;
        values[3] = top->major_axis;
        area_moments(high, n_high, scratch, values + 6);
        moments(high, n_high, offsetof(struct region_measure, perimeter), values + 11);
        moments(high, n_high, offsetof(struct region_measure, eccentricity), values + 16);
        moments(half, n_half, offsetof(struct region_measure, extent), values + 21);
        moments(high, n_high, offsetof(struct region_measure, solidity), values + 26);
    }
    free(high), free(half), free(scratch);
    return ok;
}

static const struct feature_set fda = { "fda", 30, fda_names, fda_compute };
static const struct feature_set wang = { "wang", 31, wang_names, wang_compute };
const struct feature_set *const feature_sets[] = { &fda, &wang, NULL };
const char *const feature_set_names[] = { "fda", "wang", NULL };
