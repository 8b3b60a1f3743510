/* advice_cut.h: a network as the ranks of one copy of it have it, in stages or with heads divided,
 * with all that a simulation needs. Internal to src/parallel. */
#ifndef PARALLEL_ADVICE_CUT_H
#define PARALLEL_ADVICE_CUT_H
#include "net/stages/costs_heads.h"
#include "parallel/advice.h"

struct cut {
    struct stages stages;
    struct stage_cost costs[STAGES_MOST]; /* of one image */
    /* With heads > 1 there is one stage: what each of so many ranks has of the network. */
    int heads;
    struct graph *part;
    struct heads_sums forward, backward; /* within layers */
};

/* *out is the caller's, also after a failure; free with cut_free. begin: as in stages.h. */
bool cut_at(const struct advice_request *request, const int32_t *begin, int n, struct cut *out,
            struct err *err);
/* memory: as in costs_balance. */
bool cut_balanced(const struct advice_request *request, int n, size_t memory, struct cut *out,
                  struct err *err);
/* Refused where the network is (transform_heads). */
bool cut_heads(const struct advice_request *request, int heads, struct cut *out, struct err *err);
void cut_free(struct cut *cut); /* also fine on a zeroed struct */

/* Costs [stages] and messages of a micro-batch from those of an image, sums within layers included.
 * The edges are the caller's, by free; NULL: no memory. */
struct stage_edge *cut_scaled(const struct cut *cut, int64_t images, const struct wire *wire,
                              struct stage_cost *costs);
/* The part of the time of a micro-batch that sums within layers take, from 0 to 1. */
double cut_sums_share(const struct cut *cut, int64_t images, const struct wire *wire);
#endif
