/* advice.h: which grid of ranks and which schedule to train a network with: every choice that makes
 * sense for a number of ranks, its memory and its time, simulated (net/stages/simulate.h) from
 * measured layers; the fastest that fits first. Also the chart of who works when.
 *
 * All choices have the same patches in a step. A rank has all weights, and gradients, optimizer and
 * activations of its stages; where attention heads are divided, its part of everything. Time and
 * activations of a micro-batch are those of one image times its size: smaller micro-batches are
 * taken to be as fast for each image as larger ones. */
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
    int other_arrays; /* floats of each parameter that a rank learns, besides those, its gradient
                         and itself */
    /* Bytes that plans of the whole network take besides activations (weights in the kernels'
       layouts): to train it, and to evaluate it. */
    size_t train_plan, evaluation_plan;
    struct wire wire;
    /* As in simulate_options; of all ranks, of which those of a pipeline are neighbours. */
    int ranks_a_machine, cores, threads;
    /* What the user has fixed. 0: open; in schedule and recompute, -1: open. */
    int data, stages, schedule, recompute, times;
    int heads;     /* 0: open; 1: heads are not divided */
    bool sequence; /* tokens are divided where heads are */
    bool texts;    /* in place of patches; their networks are not cut into stages */
    int64_t micro_batch;
};

/* One way to train. */
struct advice_choice {
    int data, stages, heads;    /* heads > 1 with one stage alone */
    enum program_kind schedule; /* with stages > 1; else basic */
    bool recompute;
    int64_t micro_batch, micros; /* micros: of a replica in a step */
    double seconds;              /* of a step */
    double busy;                 /* the part of it in which ranks compute */
    double sums;                 /* and that in which they sum within layers (heads) */
    size_t peak;                 /* bytes of the rank that takes most */
    bool fits;
    int32_t begin[STAGES_MOST + 1];
};

struct advice {
    struct advice_choice *choices; /* those that fit, by time; then those that do not, by memory */
    int n, n_fit;
};

/* *out is the caller's; free with advice_free. Without any choice that fits, the choices say what
 * the least memory is. Refused: what was fixed, if no choice has it. */
bool advise(const struct advice_request *request, struct advice *out, struct err *err);
void advice_free(struct advice *advice);

/* Nothing fits: an error with the least memory that would. True otherwise. */
bool advice_fits(const struct advice_request *request, const struct advice *advice,
                 struct err *err);

/* "patches", or what takes their place. */
const char *advice_samples(const struct advice_request *request);
/* "data 2 x stages 4, 1f1b with recomputation, 8 micro-batches of 2" */
void advice_words(const struct advice_choice *choice, char *text, size_t size);
/* Where heads can be divided: how the first choice compares with them, or, if it has them, with the
 * whole network on every rank: "data 1 x heads 2 would take 1.40 times as long, .."; else "". */
void advice_heads_words(const struct advice *advice, char *text, size_t size);
/* The first `most` choices as a table, and why the first is the first. */
void advice_print(const struct advice_request *request, const struct advice *advice, int most,
                  FILE *stream);
/* Members of an object: what was asked, and all choices. */
void advice_json(const struct advice_request *request, const struct advice *advice,
                 struct json_out *json);
/* Gantt chart of a choice: a row for each rank of one pipeline, time to the right, forward,
 * recomputed, backward, weights, sums and waiting in colours with a legend. Either path may be
 * NULL. */
bool advice_chart(const struct advice_request *request, const struct advice_choice *choice,
                  const char *svg_path, const char *png_path, struct err *err);

/* A choice simulated again, for what it does not keep. program is pointed to and must be freed with
 * program_free after *out. */
bool advice_simulate(const struct advice_request *request, const struct advice_choice *choice,
                     struct program *program, struct simulation *out, struct err *err);
#endif
