/* train.h: what the files of the command train share. */
#ifndef CLI_TRAIN_H
#define CLI_TRAIN_H
#include "cli/cluster.h"
#include "sweep/sweep.h"

struct train_args {
    struct common_options common;
    const char *output, *teacher, *miner;
    struct arg_texts settings, sweeps;
    int64_t ranks;
    bool template, resume, overwrite, json;
    bool plan; /* --plan-parallel, with what is known of ranks elsewhere; 0: not given */
    double latency_us, bandwidth_gb;
    int64_t machine_ranks, memory_mb;
    struct cluster_options cluster;
};

/* For train_tasks.list. */
struct train_job {
    const struct train_args *given;
    const struct args_result *operands;
};

extern const struct command cmd_train;
extern const struct task_kind train_tasks;

/* What train/start.h takes, but for what is typed; it points into the arguments. */
struct train_start train_args_start(const struct train_args *given,
                                    const struct args_result *operands);

/* Trains in this process, or in ranks that it starts, and prints the result. app->out NULL: prints
 * nothing. */
bool train_here(struct app *app, const struct train_args *given, const struct args_result *operands,
                struct err *err);

/* Starts n ranks, with mpirun, that get these options. */
bool train_start_ranks(const struct app *app, const struct train_args *rank,
                       const struct args_result *operands, int n, struct err *err);

/* --- with --plan-parallel: train_plan.c --- */

/* Trains nothing: which grid and schedule is best, and why. */
bool train_plan(struct app *app, const struct train_args *given, const struct args_result *operands,
                struct err *err);

/* --- with --sweep: train_sweep.c --- */

/* All combinations on this computer, one after another. */
bool train_sweep(struct app *app, const struct train_args *given,
                 const struct args_result *operands, struct err *err);
/* Trains combination i in its folder, and prints nothing. */
bool train_combination(const struct app *app, const struct train_args *given,
                       const struct args_result *operands, const struct sweep *sweep, size_t i,
                       struct err *err);
/* The table of a sweep and its best combination, or JSON. */
void train_sweep_print(FILE *out, const struct sweep *sweep, bool json);
#endif
