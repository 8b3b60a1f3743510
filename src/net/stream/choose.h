/* choose.h: a plan for training within the memory that a process may take: the whole graph at once
 * if that fits, else with activations as bfloat16 where that is allowed, else with some of them
 * recomputed, else tile by tile. */
#ifndef NET_STREAM_CHOOSE_H
#define NET_STREAM_CHOOSE_H
#include "net/plan/plan.h"

enum memory_way { WAY_PLAIN, WAY_HALF, WAY_RECOMPUTE, WAY_STREAM };

struct memory_limit {
    int64_t peak_mb; /* of the process: peak resident memory, 10^6 bytes; > 0 */
    size_t coming;   /* bytes that will be allocated besides the plan: see budget.h */
    /* What a plan may take of it and what the process takes besides, where they were found before;
     * budget 0: found now. */
    size_t budget, besides;
    bool bf16; /* bfloat16 is allowed for what is stored */
};

struct memory_chosen {
    enum memory_way way;
    size_t predicted; /* peak of the process, bytes */
};

/* options: as for plan_new; saving and arena_budget are chosen. options->stream: how it would be
 * streamed (budget, besides and bf16 are chosen), or NULL: never. The error has the least limit
 * that could be met. */
bool choose_plan(const struct graph *graph, const struct plan_options *options,
                 const struct memory_limit *limit, struct plan **out, struct memory_chosen *chosen,
                 struct err *err);

#define CHOSEN_TEXT 240
/* How it was chosen to be, for people: "stream, tiles of 1024 px, ..; predicted peak 812 MB". */
void choose_describe(const struct plan *plan, const struct memory_chosen *chosen,
                     char text[CHOSEN_TEXT]);
#endif
