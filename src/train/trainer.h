/* trainer.h: private to the trainer: its state, shared by trainer.c (setup and the loop over
 * epochs), trainer_data.c (training data), trainer_step.c (a step, an evaluation; how a batch is
 * run: runner.h), trainer_ranks.c (collective operations), trainer_space.c (divided patches),
 * trainer_heads.c (divided heads), trainer_private.c (differential privacy), trainer_hold_out.c
 * (non-members for audits), trainer_save.c and trainer_resume.c (checkpoints) and trainer_output.c
 * (output files). */
#ifndef TRAIN_TRAINER_H
#define TRAIN_TRAINER_H
#include "dist/buckets.h"
#include "dist/sparse.h"
#include "prepare/stain_need.h"
#include "privacy/accountant.h"
#include "privacy/secret.h"
#include "train/objective.h"
#include "train/runner.h"
#include "train/schedule.h"
#include "train/train.h"

/* One line of metrics.csv. */
struct epoch_row {
    double learning_rate, seconds, waiting;
    double epsilon; /* given away by now, if the training is private */
    struct quality train, val;
};

/* Of a private training. */
struct private_plan {
    int64_t units;                      /* that are sampled */
    struct privacy_cost cost;           /* of all steps */
    enum privacy_accountant accountant; /* whose epsilon is claimed */
    double epsilon;                     /* of the cost: at most that of the config */
    struct secret secret;               /* while it trains */
};

/* What holds between steps: all ranks of weight_ranks have bitwise the same weights; what a
 * checkpoint keeps (the position below, and the arrays of trainer_state.h) determines all further
 * steps; a step changes weights only after all ranks have agreed on it. */
struct trainer {
    const struct train_request *request;
    const struct train_config *config;
    const struct ctx *ctx;
    struct rank_grid grid; /* of all ranks, which are request->ranks */
    struct ranks
        *data_ranks; /* its group that has the same weights and learns from other samples */
    struct ranks *weight_ranks; /* all that have the same weights, whose gradients are summed:
                                   these, or all ranks where images are divided */
    struct ranks *sample_ranks; /* whose predictions and losses together are those of all samples,
                                   in a step and in an evaluation */
    struct plan_peers bands;    /* those with the other bands of a slide, or with the parts of a
                                   patch above and below; size 1: nobody */
    struct plan_peers columns;  /* with the parts of a patch beside this one */
    struct space_spec space;    /* this rank's part of a patch; 1 x 1: all of it */
    int64_t *arena_bytes;       /* [ranks]: activations of a divided patch; NULL: whole */
    bool amid;                  /* within a pass in which those wait for each other */
    int threads;
    struct dataset dataset;
    uint64_t data_hash;
    struct learning learning; /* what is learnt, and from what */
    struct stain_need stain;
    struct model_config prepare; /* how images are prepared; without what is predicted */
    struct graph *graph;         /* to be trained */
    struct graph *learnt; /* whose parameters this rank learns: the graph, unless others have parts
                             of it; gradients, optimizer, average and statistics are of these */
    float *gradients;     /* of all its parameters: plan_gradients */
    int64_t n_gradients;
    /* train.memory_mb for whole slides: bytes that the plan of a slide may take, and those that the
     * process takes besides; 0: no limit. Kept in checkpoints: the same plans after --resume. */
    size_t plan_budget, plan_besides;
    struct optimizer *optimizer;
    struct ema *ema;                /* NULL without */
    const struct runner_kind *kind; /* of runners on these data; `train` may have another */
    struct runner *train;
    struct runner *val, *tester; /* NULL: no such data */
    float *buffers;              /* a copy of the graph's buffers; NULL: not needed */
    struct staged *staged;       /* NULL: the network is not in stages */
    struct heads *heads;         /* NULL: heads are not divided; else graph is this rank's part */
    struct private_plan private; /* config_private */
    struct secret hold_out;      /* draws the units that are kept out; it is in the results */
    struct buckets *buckets;     /* NULL on one rank */
    struct sparse *sparse;       /* NULL: everything is sent */
    float *statistics;           /* batch norm's, exchanged between ranks */
    int64_t n_statistics;
    float *statistics_shares;   /* [values of learnt]: what those of this rank count for; NULL: as
                                   much as any other's */
    bool statistics_sent, stop; /* stop: any rank was asked to */
    struct plan_peers peers;    /* ranks.sync_bn */
    bool torn;      /* failed within a pass in which others wait: this rank exits alone */
    int64_t *parts; /* [ranks + 1]: the ranks' parts of the weights; NULL: not sharded */
    struct schedule_options schedule;
    int64_t steps_per_epoch;
    /* the position in training: what a checkpoint keeps besides arrays */
    int64_t epoch, step; /* step: of the epoch, done */
    int64_t skipped;     /* steps, because the loss or gradient was not a number */
    int64_t other_steps; /* done with a different number of ranks, more than there would be with
                            this one */
    struct schedule_state judged;
    struct predictions seen; /* on the training data of the current epoch */
    struct epoch_row *rows;
    int64_t n_rows;
    bool finished;
    struct quality test; /* of the kept weights, after testing */
    bool tested;
    /* of this process */
    double began_s, train_s, epoch_began_s, epoch_waited_s;
    int64_t images;
    char began[32];
};

/* trainer_ranks.c: all collective, unless noted: called by all ranks, although sums and gathers go
 * over some only. */
/* The first rank writes files and messages. Not collective. */
bool trainer_leads(const struct trainer *trainer);
bool trainer_agree(const struct trainer *trainer, bool ok, struct err *err);
typedef bool (*trainer_write_fn)(const struct trainer *trainer, struct err *err);
/* Only the first rank calls `write`; all ranks get its result. */
bool trainer_lead(const struct trainer *trainer, trainer_write_fn write, struct err *err);
/* An axis of `parallel` that the objective cannot use must be 1. Not collective. */
bool trainer_axes(const struct train_config *config, struct err *err);
/* Makes the grid. */
bool trainer_place(struct trainer *trainer, struct err *err);
/* Checks that all ranks have the same program and config; the same data and weights. */
bool trainer_check_program(const struct trainer *trainer, struct err *err);
bool trainer_check_data(const struct trainer *trainer, struct err *err);
/* After every epoch: checks that weights are still the same. */
bool trainer_check_weights(const struct trainer *trainer, struct err *err);
bool trainer_count_waiting(const struct trainer *trainer, struct err *err);
/* What all ranks did so far, where the runner of the training wants to know. */
bool trainer_tell(const struct trainer *trainer, struct err *err);
/* A step: _begin, _backward for each batch, _finish; then gradients are sums over the ranks,
 * statistics their means, and `sums` are summed. ok: this rank has not failed so far; it takes part
 * in any case, so that all fail together. Sets trainer->stop. */
bool trainer_share_new(struct trainer *trainer, struct err *err);
/* The smallest plan_budget for all. */
bool trainer_share_budget(struct trainer *trainer, struct err *err);
/* For the plan: batch norm over all ranks, or NULL. Not collective. */
const struct plan_peers *trainer_peers(struct trainer *trainer);
/* With ranks.shard_optimizer: the parts; after a step, shares every rank's new weights with all.
 * The gradients are overwritten. */
bool trainer_share_parts(struct trainer *trainer, struct err *err);
bool trainer_share_weights(struct trainer *trainer, float *gradients, struct err *err);
void trainer_share_begin(struct trainer *trainer);
/* plan_backward; where it can, with `last`, sums of gradients start within it. */
bool trainer_share_backward(struct trainer *trainer, struct plan *plan, bool last, struct err *err);
/* The gradients [begin, end) are complete; begin = end: what is in flight moves. Not collective. */
void trainer_share_complete(struct trainer *trainer, int64_t begin, int64_t end);
bool trainer_share_finish(struct trainer *trainer, bool ok, double sums[2], struct err *err);
/* All ranks' predictions on every rank, by sample; *all is the caller's. loss_sum is that of
 * `mine`. */
bool trainer_gather(const struct trainer *trainer, const struct predictions *mine,
                    struct predictions *all, struct err *err);
/* What the first rank found of an epoch, on all: they decide alike. */
bool trainer_share_row(const struct trainer *trainer, struct epoch_row *row, struct err *err);

/* trainer_compress.c: ranks.compress; no-ops without it. Collective except for the first and the
 * last. */
bool trainer_compresses(const struct trainer *trainer);
bool trainer_compress_new(struct trainer *trainer, const int64_t *at, const bool *whole, int64_t n,
                          struct err *err);
/* Gradients -> the sum of what is sent; NaN on all ranks if any rank's are not finite (or it is not
 * ok). */
bool trainer_compress_sum(struct trainer *trainer, bool ok, double sums[2], struct err *err);
bool trainer_compress_save(const struct trainer *trainer, struct err *err);
bool trainer_compress_load(const struct trainer *trainer, bool same_ranks, struct err *err);
void trainer_compress_remove(const struct trainer *trainer, int64_t step);

/* trainer_stages.c: a network in stages; all but the first are no-ops without, or the same in
 * simple. */
/* Places of ranks in pipelines; sets staged, weight_ranks and sample_ranks. Collective. */
bool trainer_stages_place(struct trainer *trainer, struct err *err);
/* Cuts the network: learnt is what this rank has of it. */
bool trainer_stages_cut(struct trainer *trainer, struct err *err);
void trainer_stages_free(struct trainer *trainer);
/* Brings all weights to all ranks: before anything but a step of training reads them. Collective.
 */
bool trainer_collect(const struct trainer *trainer, struct err *err);
/* The norm of the whole gradient, after trainer_share_finish. Collective. */
bool trainer_norm(const struct trainer *trainer, double *out, struct err *err);

/* trainer_space.c: patches divided over ranks (parallel.space). Not collective, unless noted. */
/* With the grid: which part of a patch this rank has. */
void trainer_space_place(struct trainer *trainer);
bool trainer_divides(const struct trainer *trainer);
/* Of the ranks of a patch, which have the same loss, one gives its gradient: on the others it
 * becomes zero. gradient: of output number `output` of the graph. */
void trainer_space_gradient(const struct trainer *trainer, const struct graph *graph, int output,
                            float *gradient);
/* The network as it runs on the part, or a copy; *out is the caller's and has the graph's floats.
 */
bool trainer_space_graph(const struct trainer *trainer, const struct graph *graph,
                         struct graph **out, struct err *err);
/* The others of the patch, with whom a plan of it talks and batch norm counts. */
void trainer_space_peers(const struct trainer *trainer, struct plan_options *options);
/* from [planes, side, side] laid in one of MODEL_WAYS -> to: the part of every plane. laid [side,
 * side]: room; not used for way 0. */
void trainer_space_cut(const struct trainer *trainer, const float *from, int64_t planes,
                       int64_t side, int way, float *laid, float *to);
/* Collective, once, where patches are divided: tells all ranks what each has for activations, and
 * the user. */
bool trainer_share_memory(struct trainer *trainer, int64_t bytes, struct err *err);
void trainer_space_record(const struct trainer *trainer, struct json_out *json);

/* trainer_heads.c: attention heads and MLP columns divided over ranks (parallel.heads); no-ops
 * without. Not collective, unless noted. */
/* graph and learnt become this rank's part of the network. */
bool trainer_heads_cut(struct trainer *trainer, struct err *err);
void trainer_heads_free(struct trainer *trainer);
/* The network as it is saved; where heads are divided, without floats, but on the first rank after
 * trainer_heads_collect (collective). */
const struct graph *trainer_network(const struct trainer *trainer);
bool trainer_heads_collect(const struct trainer *trainer, struct err *err);
/* The ranks with the other heads, with whom a plan of the part talks. */
void trainer_heads_peers(const struct trainer *trainer, struct plan_options *options);
/* Gradients that are sums over the ranks of a copy: once a step, behind those over copies.
 * Collective. */
bool trainer_heads_sum(struct trainer *trainer, struct err *err);
/* trainer_norm, of a network that is divided; whether what is not divided is the same. Collective.
 */
bool trainer_heads_norm(const struct trainer *trainer, double *out, struct err *err);
bool trainer_heads_same(const struct trainer *trainer, struct err *err);
/* As trainer_share_memory (collective) and trainer_space_record. */
bool trainer_heads_tell(struct trainer *trainer, int64_t bytes, struct err *err);
void trainer_heads_record(const struct trainer *trainer, struct json_out *json);

/* trainer_data.c */
/* Opens the data, reports how much there is, and creates the runners. Sets learning, stain, prepare
 * and steps_per_epoch. */
bool trainer_open_data(struct trainer *trainer, struct err *err);

/* trainer_private.c: no-ops where the training is not private, but for what _begin removes. */
/* Noise for the steps of the training, or a refusal; tells the user. After the data are open. */
bool trainer_private_plan(struct trainer *trainer, struct err *err);
/* The key: that of the folder if the training goes on, else a new one. Collective. */
bool trainer_private_begin(struct trainer *trainer, bool resumed, struct err *err);
/* The sum of clipped gradients -> (it + noise) / expected units in a step. */
bool trainer_private_finish(struct trainer *trainer, struct err *err);
/* What was given away so far; infinite without noise. */
double trainer_private_epsilon(const struct trainer *trainer);
/* The training is over: destroys the key. Collective. */
bool trainer_private_end(const struct trainer *trainer, struct err *err);
void trainer_private_record(const struct trainer *trainer, struct json_out *json);
void trainer_private_describe(const struct trainer *trainer, struct model_privacy *out);

/* privacy.tune: of the network that was built only a part is learnt, perhaps adapters. */
bool trainer_tune(struct trainer *trainer, struct err *err);
/* The network as it is written, without adapters; *out is the caller's. */
bool trainer_merge(const struct trainer *trainer, struct graph **out, struct err *err);

/* trainer_hold_out.c: privacy.hold_out; no-ops without it. */
/* Keeps units out of the training side. Collective. */
bool trainer_hold_out(struct trainer *trainer, struct err *err);
/* members.csv and others.csv. Not collective. */
bool trainer_hold_out_write(const struct trainer *trainer, struct err *err);

/* trainer_step.c */
bool trainer_step(struct trainer *trainer, struct err *err);
/* On the side of a runner; tta: the mean over the eight rotations and reflections of an image. */
bool trainer_evaluate(struct trainer *trainer, struct runner *runner, bool tta,
                      struct predictions *out, struct err *err);
/* The network as used and written. */
const struct graph *trainer_model(const struct trainer *trainer);

/* trainer_ports.c: the ports of the network, or of the one that is made from it for an evaluation.
 */
bool trainer_check_ports(const struct trainer *trainer, struct err *err);
/* Index of the objective's output. */
int trainer_output(const struct trainer *trainer, const struct graph *graph);
/* Index of an input; -1: none of this name. */
int trainer_input(const struct graph *graph, const char *port);

/* trainer_save.c, trainer_resume.c */
/* Steps done in total. */
int64_t trainer_steps(const struct trainer *trainer);
/* Samples in a step, over all ranks. */
int64_t trainer_step_images(const struct trainer *trainer);
/* Saves to checkpoints/, as the newest or as the best so far. */
bool trainer_save(struct trainer *trainer, struct err *err);
bool trainer_save_best(struct trainer *trainer, struct err *err);
/* Restores weights, optimiser and average of the best epoch. */
bool trainer_load_best(struct trainer *trainer, struct err *err);
/* Loads the newest intact checkpoint; *found is false if there is none. Damaged ones are skipped
 * with a warning. */
bool trainer_resume(struct trainer *trainer, bool *found, struct err *err);
bool trainer_has_checkpoint(const struct trainer *trainer);
/* Removes all checkpoints. */
void trainer_clear(const struct trainer *trainer);

/* trainer_output.c */
bool trainer_write_config(const struct trainer *trainer, struct err *err);
bool trainer_write_metrics(const struct trainer *trainer, struct err *err);
bool trainer_write_model(const struct trainer *trainer, struct err *err);
bool trainer_write_run(const struct trainer *trainer, const char *state, struct err *err);
/* "folder/name", the caller's; NULL if no memory. */
char *trainer_path(const struct trainer *trainer, const char *name);
#endif
