/* predict.h: what the files of the command predict share. */
#ifndef CLI_PREDICT_H
#define CLI_PREDICT_H
#include "cli/cluster.h"
#include "heatmap/predict.h"

struct predict_args {
    struct common_options common;
    const char *output, *network, *weights, *tissue, *stain_template, *exports, *class_name, *cache,
        *omit;
    struct arg_texts models;
    bool icc, tta, overwrite, json, fast, any_stain;
    int64_t stride, init_seed, classes, check_windows, seed, memory_mb, group_mpx, tile, level;
    double mpp, slide_mpp, mpp_tolerance, tissue_fraction, threshold;
    int mode, map, stream, calibrate, method, stain, kernels, scores, regions;
    struct cluster_options cluster;
};

extern const struct command cmd_predict;

/* Checks and converts the arguments. *out points into them. */
bool predict_args_options(const struct predict_args *given, struct predict_options *out,
                          struct err *err);

/* The rows of a cohort as a table or, with --json, as JSON. */
void predict_args_print(const struct predict_args *given, FILE *stream,
                        const struct predict_row *rows, size_t n,
                        const struct predict_times *times);

extern const struct task_kind predict_tasks;

/* A table of texts and a model of texts: scores.csv in the output folder. */
bool predict_texts(struct app *app, const struct predict_args *given, char *const *tables,
                   int n_tables, struct err *err);
#endif
