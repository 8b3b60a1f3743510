/* train.h: runs a training from its config and writes the results to a folder:
 *
 *   metrics.csv metrics.json curves.svg curves.png     rewritten after every epoch
 *   scores.csv, and confusion.csv .svg .png           of the best weights, on validation: what the
 *                                                      objective writes
 *   test_scores.csv ..                                 the same on the test data, if there are any
 *   model.safetensors config.json model.onnx           the best weights
 *   checkpoints/                                       the last few, and the best
 *   config.yaml run.json                               the config used, and how the run went
 */
#ifndef TRAIN_TRAIN_H
#define TRAIN_TRAIN_H
#include "base/ctx.h"
#include "dist/ranks.h"
#include "train/config.h"
#include "train/objective.h"

struct train_request {
    const struct train_config *config;
    const char *folder;
    bool resume; /* continue from the last checkpoint in the folder; start from scratch if there is
                    none */
    bool overwrite; /* start over although there are checkpoints */
    struct ranks *ranks;
    int argc; /* as typed, for run.json */
    char *const *argv;
    /* After every step, with the number of steps done; may be NULL. */
    void (*on_step)(void *arg, int64_t step);
    void *arg;
};

/* How good predictions are. */
struct quality {
    int64_t n;                              /* predictions */
    double loss;                            /* mean */
    double values[OBJECTIVE_MOST_MEASURES]; /* of the objective's measures; NaN where undefined */
};

struct train_result {
    const struct objective *objective;
    int64_t epochs, steps; /* done in total */
    int64_t best_epoch;    /* from 0 */
    double train_loss;
    struct quality val;  /* with the best weights; on the training data, without a loss, if there
                              is no validation */
    struct quality test; /* with the same weights; if tested */
    bool tested;
    bool private;        /* then this was given away: */
    double epsilon;      /* infinite without noise */
    const char *samples; /* "patches", "slides" */
    double seconds;      /* of this process */
    double images_per_s,
        waiting; /* of training: rate, and the fraction of time spent waiting for a batch */
};

/* Stops when ctx->stop is set: everything is saved and the error is ERR_REQUEUE. */
bool train_run(const struct train_request *request, const struct ctx *ctx, struct train_result *out,
               struct err *err);
#endif
