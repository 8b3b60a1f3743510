/* train.h: what the files of the command train share. */
#ifndef CLI_TRAIN_H
#define CLI_TRAIN_H
#include "cli/cluster.h"

struct train_args {
    struct common_options common;
    const char *output, *teacher, *miner;
    struct arg_texts settings;
    int64_t ranks;
    bool template, resume, overwrite, json;
    struct cluster_options cluster;
};

extern const struct command cmd_train;
extern const struct task_kind train_tasks;

/* Trains in this process, or in ranks that it starts, and prints the result. */
bool train_here(struct app *app, const struct train_args *given, const struct args_result *operands,
                struct err *err);
#endif
