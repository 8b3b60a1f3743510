/* budget.h: streaming within a number of bytes: the side of the tiles, and how much memory records
 * (records.h) get; the rest is spilled. Also how much of what a process may take is left for a
 * plan. */
#ifndef NET_STREAM_BUDGET_H
#define NET_STREAM_BUDGET_H
#include "net/plan/plan.h"

/* A limit of a process is its peak resident memory, as ps, top and schedulers show it, in units of
 * 10^6 bytes: sets stream->limit, and ->budget and ->besides to what is left of it and what is
 * taken, which is
 * what is resident now and `coming`, bytes that will be allocated besides the plan (gradients,
 * optimizer, readers). 0: no limit. */
void budget_of_process(int64_t limit_mb, size_t coming, struct plan_stream *stream);

/* What tiles of one side take. */
struct budget_need {
    size_t bytes;          /* of all that is allocated, except records */
    const size_t *records; /* [n]: bytes of each record; until the next question */
    int64_t n;
};

struct budget_options {
    const char *name;      /* of the network */
    int64_t height, width; /* of the image */
    int64_t step;          /* sides of tiles are multiples of this */
    const struct plan_stream *stream;
    bool (*ask)(void *arg, int64_t tile_px, struct budget_need *out, struct err *err);
    void *arg;
};

struct budget_choice {
    int64_t tile_px;
    size_t records; /* for records_options.memory; 0: no limit */
    size_t bytes;   /* of all, predicted */
};

/* The side that is asked for, or else that of the fastest tiles that fit. Where none fits:
 * ERR_MEMORY, with the least limit that can be met. */
bool budget_choose(const struct budget_options *options, struct budget_choice *out,
                   struct err *err);
#endif
