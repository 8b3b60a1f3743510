/* simulate.h: a program run in thought: discrete events, from the costs of stages and messages ->
 * how long it takes, who waits, how much memory each rank needs. */
#ifndef NET_STAGES_SIMULATE_H
#define NET_STAGES_SIMULATE_H
#include "net/stages/costs.h"
#include "net/stages/program.h"

struct simulate_options {
    const struct program *program;
    const struct stage_cost *costs; /* [stages], of one micro-batch */
    const struct stage_edge *edges; /* bytes of one micro-batch */
    int n_edges;
    struct wire wire;
    bool recompute; /* stages keep their inputs and run forward again before backward */
    /* Processors that ranks share: rank r is on machine r / ranks_a_machine, which has `cores`; a
     * rank uses `threads` of them while it works. If more are wanted than there are, all work
     * slower. 0: every rank has its own. */
    int ranks_a_machine, cores, threads;
    /* The sum of gradients over `copies` of each stage (data replicas, and 2 if two-way), as a
     * ring: 2 (P - 1) messages of 1 / P of the parameters each. Overlaps with other stages' work.
     */
    int copies;
    double update_s_per_byte; /* the optimizer's step */
};

/* What a rank did in a stretch of time. */
enum span_kind { SPAN_FORWARD, SPAN_RECOMPUTE, SPAN_BACKWARD, SPAN_WEIGHTS, SPAN_SUM, SPAN_UPDATE };
struct sim_span {
    int rank, stage, micro; /* micro -1: none */
    enum span_kind kind;
    double begin_s, end_s;
};

struct simulation {
    double seconds;           /* of a step */
    double busy;              /* mean share of the time in which a rank computes */
    size_t peak[STAGES_MOST]; /* bytes of activations, inputs kept and messages of each rank */
    struct sim_span *spans;   /* by rank, then time */
    int n_spans;
};

/* *out is the caller's; free with simulation_free. A program that cannot come to an end is an error
 * that names who waits for what. */
bool simulate(const struct simulate_options *options, struct simulation *out, struct err *err);
/* The peak of one rank alone, for which times are not looked at. */
size_t simulate_peak(const struct simulate_options *options, int rank);
void simulation_free(struct simulation *simulation);
#endif
