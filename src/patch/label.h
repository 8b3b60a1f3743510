/* label.h: labels of patches. The tumour fraction is that of the tile, without the margin. */
#ifndef PATCH_LABEL_H
#define PATCH_LABEL_H
#include "annotation/annotation.h"
#include "base/ctx.h"
#include "patch/grid.h"

enum label_rule {
    LABEL_MAJORITY, /* 1 if half of the tile or more is tumour, 0 if no pixel is, else none */
    LABEL_ANY,      /* 1 if any pixel is tumour, else 0 */
    LABEL_CENTER,   /* by the tile's centre */
    LABEL_SLIDE,    /* the slide's label in the slide list */
    LABEL_NONE,
};
extern const char *const label_rule_names[]; /* NULL-terminated, in the order of the enum */

/* A number for every patch, to be learnt by regression. */
enum patch_target {
    TARGET_NONE,
    TARGET_TUMOR,  /* fraction of the tile covered by tumour, as annotated */
    TARGET_TISSUE, /* fraction of the tile covered by tissue */
};
/* "coverage:tumor", "coverage:tissue"; NULL: none. */
bool target_of_text(const char *text, enum patch_target *out, struct err *err);
const char *target_text(enum patch_target target);
const char *target_name(enum patch_target target); /* in stores, models and tables */

struct labeler {
    enum label_rule rule;
    const struct annotation *annotation; /* NULL: the slide has none */
    int8_t slide_label;                  /* of the slide list; PATCH_UNLABELED if not given */
    int64_t tile, margin;                /* raster pixels */
    enum patch_target target;
};

/* "1", "tumor", "positive", ... -> 1; "0", "normal", ... -> 0; other whole numbers up to 127 as
 * they are; "" -> PATCH_UNLABELED. False for any other text. */
bool label_of_text(const char *text, int8_t *out);

/* Are patches of this slide labelled by an annotation? A slide without one is normal if the slide
 * list says so; otherwise its labels are unknown. */
static inline bool label_by_annotation(const struct labeler *labeler)
{
    return labeler->rule <= LABEL_CENTER && (labeler->annotation || labeler->slide_label == 0);
}

/* Sets the patch's tumor fraction, label and target (NaN where it is not known). Its tissue
 * fraction must be set. Thread-safe. */
void label_patch(const struct labeler *labeler, const struct raster *raster, struct patch *patch);
/* All of a list, in threads. */
bool label_list(const struct labeler *labeler, const struct raster *raster,
                struct patch_list *patches, const struct ctx *ctx, struct err *err);
#endif
