/* confusion_cohort.h: heatmaps or tables of tiles, and the truth of their slides -> a confusion
 * matrix of all scored cells or tiles. */
#ifndef VERDICT_CONFUSION_COHORT_H
#define VERDICT_CONFUSION_COHORT_H
#include "verdict/confusion.h"
#include "verdict/truth_list.h"
#include "verdict/truth_source.h"

/* Three classes and more: a cell is called the class with the highest score, the first of equals.
 * Two classes, or a single one against the rest: the last class, if its score is at least the
 * threshold. The true class of a cell is that of its centre. */
struct confusion_rules {
    double downsample; /* of mask images (truth_mask.h) */
    double threshold;
    enum tile_rule tile; /* of tables of tiles */
    bool allow_missing;  /* slides with only scores or only truth are skipped; else an error */
};

struct confusion_slide {
    char *slide;
    int64_t counted, right;
    int64_t unlabelled; /* scored cells without a true class */
    int64_t unscored;   /* cells of a drawn class without a score; 0 for tiles */
};

struct confusion_cohort {
    struct confusion confusion; /* of the classes of the heatmaps */
    struct confusion_slide *slides;
    size_t n;
    int64_t left_out; /* slides without truth or without scores */
};

/* Does this file have a row per tile: the columns minx, miny, width, height and prob_<class>, as
 * predict and WSInfer write them? False also if it cannot be read. */
bool confusion_is_tiles(const char *path);

/* Drawn names that are those of the classes of the scores need no class map: *out is one of these
 * classes if there are more than two, else NULL. paths as below. The caller owns *out. */
bool confusion_class_map(char *const *paths, int n_paths, struct class_map **out, struct err *err);

/* paths: heatmaps, folders of them, or tables of tiles (named after the slide, or tiles.csv in a
 * folder named after it). Every class of the truth must be one of the heatmaps. *out is the
 * caller's; free with confusion_cohort_free, also after a failure. */
bool confusion_of_slides(char *const *paths, int n_paths, const struct truth_list *truth,
                         const struct confusion_rules *rules, const struct ctx *ctx,
                         struct confusion_cohort *out, struct err *err);
void confusion_cohort_free(struct confusion_cohort *cohort);
#endif
