/* runner.h: private to the trainer: one side of the data, and the network as it runs on its
 * batches. The trainer adds up losses and gradients and knows nothing of how a batch is run. There
 * are six kinds: patches of one size, many at a time in one plan (runner_patches.c), texts and
 * recordings, which run in the same way (runner_texts.c, runner_recordings.c), the same
 * through a network in stages, of which this rank has some (runner_stages.c; training alone), the
 * same unit by unit with clipped gradients (runner_private.c; training alone), and whole slides,
 * one at a time, each with a plan for its size (runner_slides.c).
 *
 * An epoch: begin, then, in training, `step` for every step, else for every batch: next, forward;
 * end. The contents of a batch depend only on seed, epoch and its number. Used by one thread. */
#ifndef TRAIN_RUNNER_H
#define TRAIN_RUNNER_H
#include "net/plan/plan.h"
#include "train/batch.h"
#include "train/dataset.h"

struct trainer;
struct json_out;

/* The first member of what each kind has. */
struct runner {
    const struct runner_kind *kind;
    struct trainer *trainer;
    enum data_side side;
};

/* Which run of a batch this is. */
struct run_key {
    int way;               /* of MODEL_WAYS to lay the image: train.tta; 0 in training */
    uint64_t first_sample; /* for dropout: a number for the batch's first sample in this training */
};

/* A batch of a step, between its forward and its backward pass. */
struct step_batch {
    struct batch batch;
    const float *outputs; /* of the objective's port */
    float *gradient;      /* of the loss with respect to them: to be written */
};
/* Takes every batch of a step whose outputs this rank has, in the order in which they come. */
typedef bool (*step_loss_fn)(void *arg, const struct step_batch *batch, struct err *err);

struct runner_kind {
    const char *samples; /* "patches": in messages */
    bool slow;           /* an evaluation takes long enough to show its progress */

    /* Samples in a batch, and batches in a step, on each rank; their product is train.batch x
     * train.accumulate. */
    int64_t (*batch)(const struct train_config *config);
    int64_t (*step_batches)(const struct train_config *config);
    /* Do the images fit the settings? Sets learning.patch_px. Before the objective is asked. */
    bool (*look)(struct trainer *trainer, struct err *err);
    /* How images are prepared, for the model's config.json: trainer->prepare. */
    bool (*describe)(struct trainer *trainer, struct err *err);

    /* *out is the caller's. The network is not needed yet. */
    bool (*open)(struct trainer *trainer, enum data_side side, struct runner **out,
                 struct err *err);
    void (*free)(struct runner *runner);
    /* Per epoch, on each rank. On the training side only full ones. */
    int64_t (*n_batches)(const struct runner *runner);
    /* Starts an epoch at batch `first`. */
    bool (*begin)(struct runner *runner, uint64_t epoch, int64_t first, struct err *err);
    void (*end)(struct runner *runner);
    /* The next batch: label, sample, target as in loader.h; valid until the next call. */
    bool (*next)(struct runner *runner, struct batch *out, struct err *err);
    /* Seconds that `next` and `forward` waited for pixels since `open`. */
    double (*waited_s)(const struct runner *runner);

    /* The network that runs from now on, which must outlive this. Gradients are added to
     * trainer->gradients. NULL: none. */
    bool (*use)(struct runner *runner, const struct graph *graph, enum plan_mode mode,
                struct err *err);
    /* A step of training: forward, `loss` and backward of its batches. number: of the step in the
     * epoch. */
    bool (*step)(struct runner *runner, int64_t number, step_loss_fn loss, void *arg,
                 struct err *err);
    /* Of one batch; `step` is made of these where batches run one after another (runner_step). The
     * objective's output for the batch that `next` gave, [batch, ..]; NULL with an error. */
    const float *(*forward)(struct runner *runner, const struct batch *batch,
                            const struct run_key *key, struct err *err);
    /* Where its gradient goes. */
    float *(*gradient)(struct runner *runner);
    /* last: of the step: gradients of parameters may be shared as they become complete. */
    bool (*backward)(struct runner *runner, bool last, struct err *err);
    /* The first rank learns what all ranks did so far, for the two below. At the start, and after
     * every epoch. Collective; optional. */
    bool (*tell)(struct runner *runner, struct err *err);
    /* What it did, for run.json and for the user at the end; optional. */
    void (*record)(const struct runner *runner, struct json_out *json);
    void (*remark)(const struct runner *runner);
};

extern const struct runner_kind runner_patches, runner_texts, runner_recordings, runner_slides,
    runner_stages, runner_private;

void runner_free(struct runner *runner); /* NULL-safe */
/* `step` for kinds that run one batch after another. */
bool runner_step(struct runner *runner, int64_t number, step_loss_fn loss, void *arg,
                 struct err *err);
/* Bytes that a training on patches will take besides what runs its steps: gradients and what the
 * optimizer keeps, the loader's windows, the plan of an evaluation of this network. */
bool runner_coming_bytes(const struct trainer *trainer, const struct graph *graph, size_t *out,
                         struct err *err);
/* For dropout: the number of the first sample of batch `number` of the current epoch. */
uint64_t runner_first_sample(const struct runner *runner, int64_t number);
#endif
