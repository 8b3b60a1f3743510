/* advice.h: which grid of ranks and which schedule to train a network with: every choice that makes
 * sense for a number of ranks, its memory and its time, simulated (net/stages/simulate.h) from
 * measured layers; the fastest that fits first. Also the chart of who works when. */
#ifndef PARALLEL_ADVICE_H
#define PARALLEL_ADVICE_H
#include "base/json.h"
#include "net/stages/simulate.h"

struct advice_request {
    const struct graph *graph;     /* at batch 1 and the size of an image */
    const struct node_cost *costs; /* of it, at batch 1 */
    int ranks;
    int64_t step_images;  /* patches in a step, over all ranks */
    size_t memory;        /* bytes that a rank may take; 0: any */
    size_t besides;       /* that it takes besides parameters, gradients, optimizer and
                             activations */
    int optimizer_arrays; /* floats that the optimizer keeps for each parameter */
    struct wire wire;
    int ranks_a_machine, cores, threads; /* as in simulate_options */
    /* What the user has fixed; 0 or -1: open. */
    int data, stages, schedule, recompute, times;
    int64_t micro_batch;
};

/* One way to train. */
struct advice_choice {
    int data, stages;
    enum schedule_kind schedule; /* with stages > 1 */
    bool recompute;
    int64_t micro_batch, micros; /* micros: of a replica in a step */
    double seconds;              /* of a step */
    double busy;
    size_t peak; /* bytes of the rank that takes most */
    bool fits;
    int32_t begin[STAGES_MOST + 1];
};

struct advice {
    struct advice_choice *choices; /* those that fit, by time; then those that do not, by memory */
    int n;
};

/* *out is the caller's; free with advice_free. Without any choice that fits, the choices say what
 * the least memory is. */
bool advise(const struct advice_request *request, struct advice *out, struct err *err);
void advice_free(struct advice *advice);

void advice_print(const struct advice_request *request, const struct advice *advice, int most,
                  FILE *stream);
void advice_json(const struct advice_request *request, const struct advice *advice,
                 struct json_out *json);
/* Gantt chart of a choice: a row for each rank, time to the right, forward, recomputed, backward,
 * weights, sums and waiting in colours with a legend. path: .svg or .png. */
bool advice_chart(const struct advice_request *request, const struct advice_choice *choice,
                  const char *path, struct err *err);
#endif
