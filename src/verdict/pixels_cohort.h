/* pixels_cohort.h: heatmaps and the truth of their slides -> pixel measures of each and of all. */
#ifndef VERDICT_PIXELS_COHORT_H
#define VERDICT_PIXELS_COHORT_H
#include "verdict/pixels.h"

struct pixel_rules {
    const char *class_name; /* NULL: the last */
    double downsample;      /* of mask images (truth_mask.h) */
    double threshold;
    bool allow_missing; /* slides with only a heatmap or only truth are skipped; else an error */
};

struct pixel_row {
    char *slide; /* NULL: all slides */
    int64_t scored, tumour;
    struct pixel_measures measures;
};

struct pixel_cohort {
    struct pixel_row *rows; /* [n], then one for all slides */
    size_t n;
    int64_t left_out; /* slides without truth or without a heatmap */
};

/* paths: heatmaps, or folders of them. What is skipped is reported to the console. *out is the
 * caller's; free with pixel_cohort_free, also after a failure. */
bool pixels_of_folders(char *const *paths, int n_paths, const struct truth_list *truth,
                       const struct pixel_rules *rules, const struct ctx *ctx,
                       struct pixel_cohort *out, struct err *err);
void pixel_cohort_free(struct pixel_cohort *cohort);
#endif
