/* stage_slides.h: heatmaps, annotations or a table of types -> the slides of a cohort with the type
 * of their metastasis. */
#ifndef VERDICT_STAGE_SLIDES_H
#define VERDICT_STAGE_SLIDES_H
#include "base/ctx.h"
#include "verdict/stage.h"
#include "verdict/truth_list.h"

enum stage_source {
    STAGE_OF_HEATMAPS,
    STAGE_OF_TRUTH, /* a folder of annotations or masks, or a CSV with a column `annotation` */
    STAGE_OF_TABLE, /* any other file */
};
enum stage_source stage_source_of(char *const *paths, int n_paths);

struct stage_rules {
    struct size_rules sizes;
    const char *class_name; /* of heatmaps; NULL: heat_class */
    double threshold;       /* heatmaps: tumour is above this score */
    double open_um;         /* heatmaps: strands thinner than twice this radius are dropped */
    double mpp;             /* annotations: um per level-0 px; 0: by slide, else 0.243 */
    double downsample;      /* annotations: level-0 px per mask px */
};

/* All of these fill cohort->slides, without patients. The caller owns *out; free with
 * staged_cohort_free, also after a failure. */

/* paths: heatmaps, or folders of them. Heatmaps that are not complete yet are reported; one that
 * cannot be read is an error, because the stage of its patient would be too low. */
bool stage_slides_of_heatmaps(char *const *paths, int n_paths, const struct stage_rules *rules,
                              const struct ctx *ctx, struct staged_cohort *out, struct err *err);
/* The slides of the truth; those of a folder are all it has. With a slide list (list_path not NULL)
 * those of the list that have no annotation are negative. */
bool stage_slides_of_truth(const struct truth_list *truth, const char *list_path,
                           const char *slide_column, const struct stage_rules *rules,
                           const struct ctx *ctx, struct staged_cohort *out, struct err *err);
/* A table of types (stage_table.h); its patients are ignored. */
bool stage_slides_of_table(const char *path, struct staged_cohort *out, struct err *err);
#endif
