/* parallel_plan.h: how a config is best trained on many ranks: its network is built and its layers
 * are measured, then all grids and schedules are simulated (parallel/advice.h). For --plan-parallel
 * and `parallel: auto`, which therefore come to the same.
 *
 * A step has as many patches as data parallelism over the same ranks would give it, train.batch x
 * train.accumulate x ranks, so that every choice trains alike; if the config fixes data, stages or
 * heads, train.batch x train.accumulate x data. Batch norm sees a micro-batch: where it does,
 * micro-batches are those of the config. */
#ifndef TRAIN_PARALLEL_PLAN_H
#define TRAIN_PARALLEL_PLAN_H
#include "base/ctx.h"
#include "dist/ranks.h"
#include "parallel/advice.h"
#include "train/config.h"

/* The ranks that are planned for. */
struct parallel_place {
    int ranks;
    int ranks_a_machine, cores, threads; /* as in advice_request */
    struct wire wire;
    const char *wire_from; /* "measured", "given", "assumed", or which number is which */
    size_t memory;         /* bytes that a rank may take */
    const char *memory_from;
};

struct parallel_plan {
    struct parallel_place place;
    struct graph *graph; /* at batch 1 */
    struct node_cost *costs;
    int64_t input_px, measured_px; /* sides of images: as trained, as measured */
    int64_t tokens;                /* of a text; 0: images */
    bool norm_fixes;               /* batch norm fixes micro-batches */
    struct advice_request request;
    struct advice advice;
};

/* Measures with place->threads threads. *out is the caller's; free with parallel_plan_free. Nothing
 * that fits is no error here: advice_fits. */
bool parallel_plan_new(const struct train_config *config, const struct parallel_place *place,
                       struct parallel_plan *out, struct err *err);
void parallel_plan_free(struct parallel_plan *plan); /* also fine on a zeroed struct */

/* What was assumed, a table, and why the first choice is the first. */
void parallel_plan_print(const struct parallel_plan *plan, FILE *stream);
void parallel_plan_json(const struct parallel_plan *plan, FILE *stream);
/* parallel.json, and the chart of the first choice as parallel.svg and parallel.png, in a folder
 * that is created if necessary. */
bool parallel_plan_write(const struct parallel_plan *plan, const char *folder, struct err *err);

/* The network of a config at batch 1, without weights; of texts with the largest vocabulary that
 * may be learnt, or that of data.tokenizer. *out is the caller's. */
bool parallel_network(const struct train_config *config, struct graph **out, struct err *err);

/* Costs of its layers, whose parameters must have floats; *out is the caller's, also after a
 * failure. */
bool parallel_measure(const struct graph *graph, const struct parallel_place *place,
                      struct node_cost **out, int64_t *measured_px, struct err *err);

/* `parallel: auto`: the config with what is best for the ranks that there are: grid, schedule,
 * micro-batches (train.batch, train.accumulate) and cuts. The first rank measures, for all. With
 * `resume`, what was chosen before is taken from the config in the folder, if it is for as many
 * ranks, so that stages are the same. With parallel.stages alone, only cuts are chosen in this way
 * (parallel.cut). Does nothing for other configs. Collective. */
bool parallel_settle(struct train_config *config, struct ranks *ranks, const char *folder,
                     bool resume, const struct ctx *ctx, struct err *err);

/* parallel_cut.c: parallel.cut where the config has stages and does not say it, as above. */
bool parallel_cut(struct train_config *config, struct ranks *ranks, const char *folder, bool resume,
                  const struct ctx *ctx, struct err *err);
/* The names of the last layers of all stages but the last; begin: as in stages.h. */
bool parallel_name_cuts(const struct graph *graph, const int32_t *begin, int stages,
                        struct texts *out, struct err *err);

/* Of this machine, that this process may use; 1 if unknown. */
int parallel_processors(void);

/* Latency and bandwidth between the first rank and the last. Collective; the same on every rank. */
bool parallel_wire(struct ranks *ranks, struct wire *out, struct err *err);

/* What a rank may take: train.memory_mb; else nine tenths of this machine's memory divided by the
 * ranks on it. */
void parallel_memory(const struct train_config *config, struct parallel_place *place);
#endif
