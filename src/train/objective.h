/* objective.h: what a network is trained for. The trainer runs steps, epochs, ranks and checkpoints
 * and knows no objective by name; everything that is particular to one is in its entry of the table
 * (objectives.c) and in the file that defines it. docs/add-an-objective.md is the recipe.
 *
 * The order of the calls: settle (before data are opened), inputs (with the data), build, then
 * prepare, loss and keep for every batch, judge and remark after every epoch, write and describe
 * for the results, free. Hooks marked optional may be NULL. Used by one thread. */
#ifndef TRAIN_OBJECTIVE_H
#define TRAIN_OBJECTIVE_H
#include "base/ctx.h"
#include "net/model/model_config.h"
#include "net/plan/plan.h"
#include "train/batch.h"
#include "train/dataset.h"
#include "train/predictions.h"

#define OBJECTIVE_MOST_MEASURES 8

/* A number that says how good predictions are: a column "val_<name>" of metrics.csv. */
struct measure {
    const char *name;  /* also in train.monitor: higher must then be better */
    const char *title; /* in messages and plots */
    bool main; /* also of the training data ("train_<name>"), and in messages; others are only
                  computed for validation and test */
};

/* A tensor of the batch -> an input of the network. */
struct objective_feed {
    const char *tensor, *port;
    bool optional; /* the network need not have it */
};

/* A loss and the activation that turns the network's outputs into predictions: names of the keys
 * train.loss and network.activation. The first of an objective is its default. */
struct objective_loss {
    const char *loss, *activation;
};

/* A training as its objective sees it. */
struct learning {
    const struct objective *objective;
    const struct train_config *config;
    const struct ctx *ctx;
    struct ranks *ranks; /* that learn the same from other samples */
    int threads;
    const struct dataset *dataset;
    int64_t patch_px; /* of the first sample, as stored */
    int64_t crop_px;  /* of the crops the network is trained on; network.input_px unless `inputs`
                         changes it */
    int64_t outputs;  /* numbers predicted for a sample; set by `build` */
    void *own;        /* the objective's */
};

/* The outputs of a network for a batch, to be compared with the truth. */
struct comparison {
    const struct batch *batch;
    const float *outputs; /* of the port objective->output */
    double divisor;       /* the sum over samples is divided by it: the global batch of all ranks */
    float *gradient;      /* with respect to the outputs, to be written; NULL: an evaluation */
    uint64_t epoch;       /* 0 in an evaluation */
};

struct objective {
    const char *name;
    const char *takes;                   /* the data, for messages */
    enum data_truth truth;               /* what must be known of a sample */
    const struct objective_feed *feeds;  /* ends with a NULL */
    const char *output;                  /* port of the network */
    const struct objective_loss *losses; /* ends with a NULL; NULL: the objective has its own */
    const struct measure *measures;
    int n_measures;           /* <= OBJECTIVE_MOST_MEASURES */
    const char *const *plots; /* measures to be drawn beside the loss, NULL-terminated */
    const char *monitor;      /* default of train.monitor */
    enum plan_mode mode;
    bool test;      /* data.test can be evaluated */
    bool generates; /* its models make images: 'synthesize train' */

    /* Checks the config and changes what the objective decides. Optional. */
    bool (*settle)(struct train_config *config, struct err *err);
    /* Checks the data, and may set crop_px and own. Optional. */
    bool (*inputs)(struct learning *learning, struct err *err);
    /* The network to be trained, with its starting weights; *out is the caller's. Sets outputs. */
    bool (*build)(struct learning *learning, struct graph **out, struct err *err);
    /* The network as it is used and written, if it is not the trained one. Optional. */
    const struct graph *(*model)(const struct learning *learning);
    /* Adds to a batch what the network is fed with besides what the loader gives; it must depend on
     * the config's seed, epoch, sample and copy alone, in an evaluation (not train) on seed and
     * sample. What it adds is valid until the next call. Optional. */
    bool (*prepare)(struct learning *learning, struct batch *batch, bool train, uint64_t epoch,
                    struct err *err);
    /* The loss of a batch and its gradient. */
    bool (*loss)(struct learning *learning, const struct comparison *c, double *loss,
                 struct err *err);
    /* Keeps what was predicted, after `loss` of the same batch. loss_sum: over its samples. */
    bool (*keep)(struct learning *learning, const struct comparison *c, double loss_sum,
                 struct predictions *to, struct err *err);
    /* One sample's outputs -> what is predicted, and back: for train.tta, which averages
     * predictions. Optional. */
    void (*predict)(const struct learning *learning, const float *outputs, double *values);
    void (*restore)(const struct learning *learning, const double *values, float *outputs);
    /* n > 0 predictions -> values [n_measures], NaN where undefined. */
    bool (*judge)(const struct learning *learning, const struct predictions *predictions,
                  double *values, struct err *err);
    /* A message about an evaluation on the validation data, also before the first step.
     * Collective. Optional. */
    bool (*remark)(struct learning *learning, const struct predictions *val, struct err *err);
    /* Writes scores and plots to files whose names start with `prefix` ("folder/", "folder/test_").
     */
    bool (*write)(const struct learning *learning, const char *prefix,
                  const struct predictions *predictions, struct err *err);
    /* Completes the model card, which says how patches are prepared. What it points to must outlive
     * the learning. */
    void (*describe)(const struct learning *learning, struct model_config *card);
    /* Writes to the folder what the model needs besides its weights. Optional. */
    bool (*accompany)(const struct learning *learning, const char *folder, struct err *err);
    void (*free)(struct learning *learning); /* of own; optional */
};

/* Index in measures; -1: none of this name. */
int objective_measure(const struct objective *objective, const char *name);
#endif
