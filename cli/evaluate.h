/* evaluate.h: what the parts of `microtome evaluate` share: its options and how results go out. */
#ifndef CLI_EVALUATE_H
#define CLI_EVALUATE_H
#include <stdio.h>
#include "cli/action.h"

struct evaluate_options {
    struct common_options common;
    const char *truth, *slide, *label, *positive, *plot, *points, *class_name, *class_map;
    const char *patient_column, *by, *predicted, *classes;
    struct arg_texts scores;
    bool allow_missing, json, csv, patient;
    int64_t bootstrap, seed, calibration;
    int ties, patient_score, weights, tile;
    double mpp, isolated, downsample, threshold;
};

action_fn evaluate_roc, evaluate_froc, evaluate_pixels, evaluate_confusion, evaluate_stage;

struct chart;
/* Writes PLOT<ending>.svg and PLOT<ending>.png; does nothing without --plot. */
bool evaluate_plot(const struct evaluate_options *o, const char *ending, const struct chart *chart,
                   struct err *err);

/* A table of the points of all curves. */
typedef void evaluate_points_fn(FILE *stream, const void *curves, int n);
/* Writes PLOT<ending>_points.csv beside the plot, where `microtome report` finds the curves, and,
 * if the ending is empty, the file of --points. Does nothing without these options. */
bool evaluate_points(const struct evaluate_options *o, const char *ending,
                     evaluate_points_fn *write, const void *curves, int n, struct err *err);
#endif
