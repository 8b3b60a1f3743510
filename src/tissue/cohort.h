/* cohort.h: a list of slides -> a folder with the masks, pictures and outlines of their tissue. */
#ifndef TISSUE_COHORT_H
#define TISSUE_COHORT_H
#include "base/ctx.h"
#include "base/run.h"
#include "slide/slide_list.h"
#include "tissue/tissue.h"

/* What became of a slide. */
struct tissue_row {
    const struct slide_entry *entry; /* the list's */
    enum run_state state;
    struct tissue_mask measures; /* without its images; zero if failed */
    double seconds;
    struct err err; /* why it failed */
};

struct tissue_request {
    const struct slide_list *slides;
    struct tissue_options options;
    double slide_mpp; /* um/px of level 0 for every slide; 0: what slide list or file say */
    const char *folder;
    bool overwrite; /* make again what is there already */
    int argc;       /* as typed, for run.json */
    char *const *argv;
    /* After every slide, in the order of the list; may be NULL. */
    void (*on_slide)(void *arg, const struct tissue_row *row);
    void *arg;
};

/* <slide>_mask.png, <slide>_tissue.png and <slide>_tissue.geojson for every slide, with run.json
 * and slides.csv. Slides are worked on in parallel, as many at a time as there are threads. A slide
 * that fails is recorded and skipped; false then, at the end. Masks that were made with other
 * options or from another slide end the run before it begins. */
bool tissue_cohort(const struct tissue_request *request, const struct ctx *ctx, struct err *err);

/* Fails if a mask that tissue_cohort wrote was made from another slide than this one. Masks without
 * a word about their slide, such as a user's, pass. */
bool tissue_check_slide(const char *mask, const char *slide, struct err *err);
#endif
