/* network_cut.h: where a network is cut into stages, to look at before training: what each stage
 * has, keeps, sends and takes, as a table and as JSON, and the line for a config that fixes it. */
#ifndef PARALLEL_NETWORK_CUT_H
#define PARALLEL_NETWORK_CUT_H
#include "base/json.h"
#include "net/stages/costs.h"

struct network_cut_options {
    int stages;            /* 0: as `at` says */
    const char *const *at; /* last layers of all stages but the last (stages_at); NULL: balanced */
    int n_at;
    size_t memory; /* bytes of activations that a stage may keep; 0: any */
    bool count;    /* costs are counted, not measured: the same on every machine */
    int threads;   /* to measure with */
};

struct network_cut {
    const struct graph *graph;
    struct network_cut_options options; /* stages: as cut */
    int64_t measured_px;                /* the side that was measured; 0: counted */
    struct stages stages;
    struct stage_cost costs[STAGES_MOST];
};

/* Of the graph at its batch and size; it must outlive the cut. Measuring needs floats in the
 * parameters. Refused: more stages than the network has places for, layers that are not there or
 * not in order, a parameter that stages would share, memory that does not suffice. *out is the
 * caller's; free with network_cut_free. */
bool network_cut_new(const struct graph *graph, const struct network_cut_options *options,
                     struct network_cut *out, struct err *err);
void network_cut_free(struct network_cut *cut); /* also fine on a zeroed struct */

/* The time of the slowest stage, forward and back, in parts of the mean: 1 is perfect. */
double network_cut_balance(const struct network_cut *cut, int *slowest);

void network_cut_print(const struct network_cut *cut, FILE *stream);
/* Members of an object. */
void network_cut_json(const struct network_cut *cut, struct json_out *json);
#endif
