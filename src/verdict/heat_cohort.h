/* heat_cohort.h: heatmaps, each turned into something, several at once. A slide that fails does not
 * stop the others. */
#ifndef VERDICT_HEAT_COHORT_H
#define VERDICT_HEAT_COHORT_H
#include "base/ctx.h"
#include "verdict/heat_field.h"

struct heat_slide {
    const char *folder;
    char *slide; /* NULL if its heatmap could not be read */
    bool no_tissue;
    bool assumed_mpp; /* to be set by the work: sizes assume TISSUE_ASSUMED_MPP */
    bool failed;
    struct err err; /* why */
};

struct heat_cohort {
    char **folders;
    struct heat_slide *slides; /* [n], by folder */
    size_t n;
};

/* Finds the heatmaps (heat_list); those that are not complete yet are reported to the console. *out
 * is the caller's; free with heat_cohort_free, also after a failure. */
bool heat_cohort_find(char *const *paths, int n_paths, const struct ctx *ctx,
                      struct heat_cohort *out, struct err *err);
void heat_cohort_free(struct heat_cohort *cohort);

/* Slide i, on any thread. */
typedef bool (*heat_work_fn)(void *arg, size_t i, const struct heatmap *heatmap,
                             const struct heat_field *field, struct heat_slide *slide,
                             struct err *err);
/* Opens every heatmap, reads a class of it (NULL: heat_class) and has `work` done. False if it was
 * stopped, or if all slides fail: then with the error of the first. */
bool heat_cohort_each(struct heat_cohort *cohort, const char *class_name, const char *label,
                      heat_work_fn work, void *arg, const struct ctx *ctx, struct err *err);
/* After heat_cohort_each and the output: names slides that failed, and what was assumed, on the
 * console. False if slides failed. */
bool heat_cohort_end(const struct heat_cohort *cohort, const struct ctx *ctx, struct err *err);
#endif
