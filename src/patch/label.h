/* label.h: labels of patches: places in the list of classes of a class map (annotation/classes.h).
 * Fractions are those of the tile, without the margin. */
#ifndef PATCH_LABEL_H
#define PATCH_LABEL_H
#include "annotation/annotation.h"
#include "base/ctx.h"
#include "patch/grid.h"

enum label_rule {
    LABEL_MAJORITY, /* the class that covers most of the tile, and half of it or more; else none */
    LABEL_ANY,      /* of the classes that have a pixel, the first in the order of precedence */
    LABEL_CENTER,   /* by the tile's centre */
    LABEL_SLIDE,    /* the slide's label in the slide list */
    LABEL_NONE,
};
extern const char *const label_rule_names[]; /* NULL-terminated, in the order of the enum */

/* A number for every patch, to be learnt by regression. */
enum target_kind {
    TARGET_NONE,
    TARGET_CLASS,  /* fraction of the tile covered by a class, as annotated */
    TARGET_TISSUE, /* fraction of the tile covered by tissue */
    TARGET_COLUMN, /* the slide's number in a column of the slide list */
};
struct patch_target {
    enum target_kind kind;
    int place;             /* of the class */
    char text[CLASS_NAME]; /* "coverage:tumor"; "": none */
    char name[CLASS_NAME]; /* "tumor_coverage", or the column: in stores, models and tables */
};
/* "coverage:CLASS", "coverage:tissue", "column:NAME"; NULL: none. */
bool target_of_text(const char *text, const struct class_map *map, struct patch_target *out,
                    struct err *err);

struct labeler {
    enum label_rule rule;
    const struct class_map *map;         /* NULL: normal and tumor */
    const struct annotation *annotation; /* NULL: the slide has none */
    int8_t slide_label;                  /* of the slide list; PATCH_UNLABELED if not given */
    int64_t tile, margin;                /* raster pixels */
    struct patch_target target;
    float slide_target; /* of TARGET_COLUMN */
};

/* A class of the map, or its number; "positive", "malignant", ... -> tumor, "negative", "benign"
 * -> normal; without a map other whole numbers up to 127 as they are; "" -> PATCH_UNLABELED. False
 * for any other text. */
bool label_of_text(const char *text, const struct class_map *map, int8_t *out);

/* Are patches of this slide labelled by an annotation? A slide without one is of the class of what
 * nobody drew on (normal) if the slide list says so; otherwise its labels are unknown. */
static inline bool label_by_annotation(const struct labeler *labeler)
{
    return labeler->rule <= LABEL_CENTER &&
           (labeler->annotation || (labeler->slide_label != PATCH_UNLABELED &&
                                    labeler->slide_label == class_map_unlabelled(labeler->map)));
}

/* Sets the patch's tumor fraction, label and target (NaN where it is not known). Its tissue
 * fraction must be set. Thread-safe. */
void label_patch(const struct labeler *labeler, const struct raster *raster, struct patch *patch);
/* All of a list, in threads. */
bool label_list(const struct labeler *labeler, const struct raster *raster,
                struct patch_list *patches, const struct ctx *ctx, struct err *err);

/* The fraction of every tile that each class covers; out [patches, classes]. */
bool label_fractions(const struct labeler *labeler, const struct raster *raster,
                     const struct patch_list *patches, float *out, const struct ctx *ctx,
                     struct err *err);
#endif
