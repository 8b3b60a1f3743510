/* start.h: a training as a command line asks for it: reads the config, claims the folder, mines
 * hard negatives if asked to, and trains, in this process or as one of several ranks. */
#ifndef TRAIN_START_H
#define TRAIN_START_H
#include "dist/watch.h"
#include "train/train.h"

struct train_start {
    const char *config;          /* file; NULL: the settings alone */
    const char *const *settings; /* "key=value" */
    size_t n_settings;
    const char *teacher, *miner; /* models for distillation and for mining; NULL: none */
    const char *folder;          /* created if necessary */
    bool resume, overwrite;      /* as in train.h */
    bool any_threads; /* several ranks divide the processors of a machine; else each uses all
                         threads of the pool */
    watch_lost *lost; /* ends this process when other ranks are lost (ranks.timeout_s) */
    bool in_job; /* a scheduler's job, which may have been lost with its node and started again */
    int argc;    /* as typed, for run.json */
    char *const *argv;
};

/* The config that will be trained. *out is the caller's; free with config_free. */
bool train_start_config(const struct train_start *start, struct train_config *out, struct err *err);

/* Collective. The folder belongs to this run until it ends; with several ranks the first one holds
 * the claim: it lives as long as any of them. All ranks but the first are silent. A folder that was
 * created and stays empty is removed. */
bool train_start(const struct train_start *start, struct ranks *ranks, const struct ctx *ctx,
                 struct train_result *out, struct err *err);
#endif
