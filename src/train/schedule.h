/* schedule.h: the learning rate of every step, and what follows from a validation value. Pure
 * functions of options and a small state of plain numbers, which a checkpoint stores unchanged. */
#ifndef TRAIN_SCHEDULE_H
#define TRAIN_SCHEDULE_H
#include <stdbool.h>
#include <stdint.h>

enum schedule_kind { SCHEDULE_CONSTANT, SCHEDULE_STEP, SCHEDULE_COSINE, SCHEDULE_PLATEAU };
extern const char *const schedule_names[]; /* NULL-terminated, in the order of the enum */

struct schedule_options {
    enum schedule_kind kind;
    double learning_rate;     /* after warm-up; already scaled with ranks by the caller */
    double min_learning_rate; /* cosine ends here; step and plateau never go below */
    double epochs;            /* cosine: its length, warm-up included */
    double warmup_epochs;     /* linear from learning_rate / 100; 0: none */
    double step_epochs;     /* step: every this many epochs (counted from 0, not from the end of the
                               warm-up), */
    double factor;          /* step and plateau: times this */
    int64_t patience;       /* plateau: epochs without improvement before the factor */
    int64_t stop_patience;  /* any kind: epochs without improvement before the end; 0: never */
    double min_improvement; /* a value counts as better if it exceeds the best by this */
};

/* Plain numbers; zeroed by schedule_begin. */
struct schedule_state {
    double best;              /* highest value so far; meaningful if best_epoch >= 0 */
    int64_t best_epoch;       /* -1: none yet */
    int64_t epochs_flat;      /* since the best or the last reduction */
    int64_t epochs_no_better; /* since the best */
    int64_t reductions;       /* plateau: how often the factor was applied */
};
void schedule_begin(struct schedule_state *state);

/* The rate at a point in training: epoch = finished epochs + the fraction of the current one,
 * e.g. 2.5.
 */
double schedule_rate(const struct schedule_options *options, const struct schedule_state *state,
                     double epoch);

struct schedule_verdict {
    bool best;   /* the best value so far: keep these weights */
    bool reduce; /* plateau: the rate falls now; go back to the best weights */
    bool stop;   /* early stopping, or plateau at the minimum rate already */
};
/* After epoch `epoch` (from 0) with a value where higher is better (an AUC, or minus a loss). NaN
 * is never better. */
struct schedule_verdict schedule_judge(const struct schedule_options *options,
                                       struct schedule_state *state, int64_t epoch, double value);
#endif
