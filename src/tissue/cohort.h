/* cohort.h: a list of slides -> a folder of tissue masks, images and outlines. */
#ifndef TISSUE_COHORT_H
#define TISSUE_COHORT_H
#include "base/ctx.h"
#include "base/run.h"
#include "slide/slide_list.h"
#include "tissue/quality.h"
#include "tissue/tissue.h"

/* The result for one slide. */
struct tissue_row {
    const struct slide_entry *entry; /* the list's */
    enum run_state state;
    struct tissue_mask measures; /* without its images; zero if failed */
    struct quality_map quality;  /* likewise; zero if not requested */
    double seconds;
    const char *error; /* why it failed; valid during on_slide */
};

struct tissue_request {
    const struct slide_list *slides;
    struct tissue_options options;
    bool icc;          /* colours are converted to sRGB first */
    bool quality;      /* also looks for blur, folds, pen and bubbles */
    double slide_mpp;  /* um/px of level 0 for every slide; 0: from the slide list or file */
    const char *cache; /* folder for tile caches; NULL: <folder>/cache */
    const char *folder;
    bool overwrite; /* redo existing results */
    int argc;       /* as typed, for run.json */
    char *const *argv;
    /* After every slide, in the order of the list; may be NULL. */
    void (*on_slide)(void *arg, const struct tissue_row *row);
    void *arg;
};

/* <slide>_mask.png, <slide>_tissue.png and <slide>_tissue.geojson for every slide, with run.json
 * and slides.csv; with quality also <slide>_quality.png, <slide>_quality.geojson and
 * <slide>_quality_overlay.png. Slides are processed in parallel, one per thread; with quality, one
 * after another by all threads. A slide that fails is recorded
 * and skipped; the function then returns false at the end. If existing masks were made with other
 * options or from another slide, the run stops before it starts. */
bool tissue_cohort(const struct tissue_request *request, const struct ctx *ctx, struct err *err);

/* Fails if a mask written by tissue_cohort was made from a different slide. Masks that do not
 * record their slide, such as a user's own, pass. */
bool tissue_check_slide(const char *mask, const char *slide, struct err *err);
#endif
