/* space_parts.h: a network whose images are divided among processes (here: threads), forward and
 * backward, and what they have together. Inputs and the gradients of outputs are the numbers of
 * zoo_golden.h, by their places in the whole image. Fails the test if anything fails. */
#ifndef SUPPORT_SPACE_PARTS_H
#define SUPPORT_SPACE_PARTS_H
#include <stdbool.h>
#include <stdint.h>
#include "net/graph/graph.h"

enum space_fault {
    FAULT_NONE,
    FAULT_DETACHED, /* gradients of halos do not go back to the neighbours */
    FAULT_SMALL,    /* halos of the first window are a cell smaller, with zeros in its place */
};

struct space_job {
    /* The whole network with its floats, the caller's; called once for every part, by its thread:
     * parts have running statistics of their own. */
    struct graph *(*build)(void *arg);
    void *arg;
    int rows, columns; /* 1 x 1: the network as it is */
    bool frozen;       /* batch norm; else synchronised */
    bool recompute;
    bool winograd; /* parts may then use other kernels than the whole */
    bool whole_outputs;
    int outputs; /* of which the loss has a part: the first so many; 0: all */
    enum space_fault fault;
};

struct space_result {
    struct graph *graph; /* of part 0: parameters and statistics */
    float *gradients;    /* of all parameters in their order, summed over parts */
    int64_t count;
    float *input_gradient; /* of input 0, put together */
    float **outputs;       /* put together; what is whole: of part 0, the same bits on all */
    int n_outputs;
};

void space_parts_run(const struct space_job *job, struct space_result *out);
void space_result_free(struct space_result *result);
#endif
