/* heads_parts.h: a Transformer whose heads and columns are divided among processes (here: threads),
 * in several replicas with samples of their own, forward and backward, and what they have together.
 * Weights, inputs and the gradients of outputs are the numbers of zoo_golden.h, by their places in
 * the batch of all replicas. Fails the test if anything fails. */
#ifndef SUPPORT_HEADS_PARTS_H
#define SUPPORT_HEADS_PARTS_H
#include "net/plan/plan.h"
#include "net/zoo/zoo.h"

enum heads_fault {
    HEADS_RIGHT,
    HEADS_DETACHED, /* gradients are not summed where what all have goes into parts */
    HEADS_APART,    /* outputs of parts are not summed */
    HEADS_ALONE,    /* gradients of what each adds up for its tokens are not summed */
};

struct heads_job {
    const char *network;
    struct zoo_options options; /* batch: of all replicas */
    int parts, replicas;        /* 1 and 1: the network as it is */
    enum plan_mode mode;
    enum plan_saving saving;
    enum heads_fault fault;
    bool wait;   /* for sums where they start */
    bool tokens; /* are divided too */
};

struct heads_result {
    struct graph *graph; /* the whole network */
    float *gradients;    /* of all its parameters in their order, summed over replicas */
    float *outputs;      /* of all replicas, of part 0; the same bits on the others */
    int64_t count, n_outputs;
    int64_t part_count; /* parameters of one process */
    size_t arena;       /* bytes of its activations */
};

/* The whole network with its numbers; the caller's. */
struct graph *heads_network(const char *network, const struct zoo_options *options);
void heads_parts_run(const struct heads_job *job, struct heads_result *out);
void heads_result_free(struct heads_result *result);
#endif
