/* nuclei_cohort.h: a list of slides or images -> a folder with the nuclei of each (nuclei_slide.h),
 * run.json and slides.csv. */
#ifndef NUCLEI_NUCLEI_COHORT_H
#define NUCLEI_NUCLEI_COHORT_H
#include "base/run.h"
#include "nuclei/agreement.h"
#include "nuclei/nuclei_slide.h"

/* The result for one slide. */
struct nuclei_row {
    const struct slide_entry *entry; /* the list's */
    enum run_state state;
    struct nuclei_summary summary;     /* zero if failed */
    struct nuclei_agreement agreement; /* with the truth, if there is one */
    const char *error;                 /* why it failed; valid during on_slide */
};

struct nuclei_request {
    const struct slide_list *slides;
    struct nuclei_options options;
    const char *truth; /* folder of nuclei to compare with (labels_in.h); NULL: none */
    const char *folder;
    bool overwrite;
    int argc; /* as typed, for run.json */
    char *const *argv;
    /* [slides]: what tasks made of each, which is merged here; NULL: everything is made here. */
    const struct run_outcome *tasks;
    /* After every slide, in the order of the list; may be NULL. */
    void (*on_slide)(void *arg, const struct nuclei_row *row);
    void *arg;
};

/* To be called before the first slide is made, once for a run and its tasks: results made with
 * other options or from other files are an error, or are removed if they are to be overwritten. */
bool nuclei_prepare(const struct nuclei_request *request, struct err *err);

/* Images (.png, .jpg) are made side by side, one per thread; slides one after another, each on all
 * threads. Results that exist are kept. A slide that fails is recorded and skipped; the function
 * then returns false at the end. With a truth, agreement.json has all figures. *all: the agreement
 * over all slides. */
bool nuclei_cohort(const struct nuclei_request *request, const struct ctx *ctx,
                   struct nuclei_agreement *all, struct err *err);
#endif
