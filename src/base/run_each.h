/* run_each.h: a cohort, slide by slide -> its record (run.h). One loop for every command that takes
 * a list of slides: it makes each slide, measures the time, warns of failures, records, shows
 * progress, sees a stop, and finishes the record. A slide that fails does not stop the others. */
#ifndef BASE_RUN_EACH_H
#define BASE_RUN_EACH_H
#include "base/ctx.h"
#include "base/run.h"

struct run_each {
    size_t n;
    bool together; /* as many slides at once as there are threads, each on one; or else one after
                    * another, which may use all threads */
    const char *label; /* of the progress in slides; NULL: `make` shows its own */

    /* Makes slide i, or finds that it is there already. If `together`: on any thread. */
    bool (*make)(void *arg, size_t i, struct err *err);
    /* In the order of the list, on the calling thread: completes the row of slide i. item has
     * seconds, which may be changed, and after a failure the state and why->text, else why is NULL.
     * To be set: name and path; state, facts and cpu_s where the slide did not fail. */
    void (*tell)(void *arg, size_t i, const struct err *why, struct run_item *item);
    /* After the last slide, or a stop after `reached` of them; NULL: nothing to do. */
    bool (*end)(void *arg, size_t reached, struct err *err);
    void *arg;
};

/* *reached: slides recorded. False if the run was stopped or its record could not be written, and
 * also, at the very end, if slides failed. Ends the record in any case (run_finish); its folder
 * remains claimed until run_free. */
bool run_each(struct run *run, const struct run_each *each, const struct ctx *ctx, size_t *reached,
              struct err *err);
#endif
