/* phantom.h: a seed -> a synthetic cohort: pyramidal slides with planted metastases, annotations
 * and a slide list. Same seed, same bytes, on any number of threads. */
#ifndef PHANTOM_PHANTOM_H
#define PHANTOM_PHANTOM_H
#include <stdint.h>
#include "base/ctx.h"
#include "base/err.h"

enum { PHANTOM_SIZE_MIN = 1024, PHANTOM_SIZE_MAX = 131072 };

struct phantom_options {
    const char *folder;
    int64_t n_slides;
    int64_t size_px; /* width and height of level 0 */
    uint64_t seed;
    const char *centers; /* the patients' centres: numbers separated by commas; NULL: all */
    const char *classes; /* tissue classes that are annotated (phantom_classes.h); NULL: tumour in
                          * ASAP XML */
    bool artefacts;      /* plants blur, folds, pen and bubbles (phantom_artefacts.h) */
    int layout;          /* enum phantom_layout (phantom_layout.h) */
    int pen;          /* enum phantom_pen_rule; with artefacts only PEN_SOME, which has no effect */
    bool nuclei;      /* writes the truth of the nuclei (phantom_nuclei.h) */
    int64_t n_fields; /* fields of view of each slide, with label images (phantom_fields.h) */
};

/* Writes folder/slides/<name>.tiff, folder/annotations/<name>.xml and folder/slides.csv; with
 * classes, <name>.geojson for every slide and folder/classes.yaml, the class map for extract;
 * with artefacts, folder/artefacts/<name>_quality.png, which shows where they are; with nuclei,
 * folder/nuclei/<name>.geojson, for existing slides too; with n_fields, folder/fields/. Complete
 * slides are kept; slides made with other options are an error. A slide's bytes do not depend on
 * the number of slides in the cohort, and its pixels not on the classes. Progress is reported in
 * level-0 tiles. With a layout other than LAYOUT_NODE, slides have no metastases, and their class
 * is in the list alone. */
bool phantom_cohort(const struct phantom_options *options, const struct ctx *ctx, struct err *err);
#endif
