/* pipeline.h: one rank of a pipeline: runs the works that its program gives it, each with the plan
 * of its stage, receives what they need and sends on what they make. One step of training at a
 * time; gradients of parameters are added to those that are there.
 *
 * Messages are started early and moved while steps of plans run (plan_on_step); nothing waits in
 * two directions. Inputs of the next works are received ahead. A stage that is not recomputed has a
 * plan for each micro-batch that it keeps (program_most_kept), all of which add to the same
 * gradients; a stage that is has one plan and keeps the inputs.
 *
 * The order in which micro-batches add to the gradients is that of the program, so that results
 * depend on nothing else: bitwise the same as those of one process that runs the same micro-batches
 * in the same order with the same kernels. */
#ifndef NET_STAGES_PIPELINE_H
#define NET_STAGES_PIPELINE_H
#include "net/plan/plan.h"
#include "net/stages/program.h"

struct pipeline;

/* The peers of a pipeline are its ranks in order. Four sets of the same ranks, so that what is sent
 * in one never meets what is sent in another: activations and gradients of either copy of the
 * network. */
enum pipeline_channel { CHANNEL_FORWARD, CHANNEL_BACKWARD, CHANNELS };

struct pipeline_options {
    const struct stages *stages; /* must outlive the pipeline, as all that is pointed to here */
    const struct program *program;
    int rank;                                    /* of the pipeline */
    const struct plan_peers *peers[2][CHANNELS]; /* [copy]; copy 1 only in two-way programs */
    bool recompute;
    /* For the plans: mode, threads, norm_frozen, norm_peers and peers of other groups, saving (not
     * with recompute). gradients, arena and input_gradients are the pipeline's. */
    struct plan_options plan;
    float *gradients[2]; /* of the stages that the rank holds (program_held): plan_gradients of each
                            stage graph */

    /* Called by ranks whose stage has inputs of the whole network: writes input `port` (of the
     * stage graph) of a micro-batch. */
    bool (*feed)(void *arg, int stage, int micro, int port, float *to, struct err *err);
    /* Called by ranks of the last stage: from its outputs, which are the plan's, to the gradients
     * with respect to them, which are zero before. Micro-batches come in the order of the program.
     */
    bool (*loss)(void *arg, int micro, struct plan *plan, struct err *err);
    /* All micro-batches of a step have been added to the gradients of held[i]; may be NULL. */
    void (*complete)(void *arg, int i);
    void (*progress)(void *arg); /* from time to time, between steps of plans; may be NULL */
    void *arg;
};

/* *out is the caller's; free with pipeline_free. Not collective. */
bool pipeline_new(const struct pipeline_options *options, struct pipeline **out, struct err *err);
void pipeline_free(struct pipeline *pipeline); /* NULL-safe */

/* One step: all micro-batches. Collective over the ranks of the pipeline. seed and first_sample
 * [micros]: as for plan_set_random. After a failure the pipeline can only be freed: others may wait
 * for this rank. */
bool pipeline_step(struct pipeline *pipeline, uint64_t seed, const uint64_t *first_sample,
                   struct err *err);

/* What it took so far. */
struct pipeline_report {
    size_t arenas;             /* bytes of activations: all plans of this rank */
    int sets;                  /* of activations: plans */
    size_t inputs;             /* bytes of kept inputs */
    size_t messages;           /* bytes of buffers for messages */
    double seconds, waiting_s; /* of all steps; in which this rank waited for others */
    double forward_s, recompute_s, backward_s, weights_s;
    int64_t sent_bytes, steps;
};
struct pipeline_report pipeline_report(const struct pipeline *pipeline);
#endif
