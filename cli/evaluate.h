/* evaluate.h: what the parts of `microtome evaluate` share: its options and how results go out. */
#ifndef CLI_EVALUATE_H
#define CLI_EVALUATE_H
#include "cli/action.h"

struct evaluate_options {
    struct common_options common;
    const char *truth, *slide, *label, *positive, *plot, *points, *class_name, *class_map;
    struct arg_texts scores;
    bool allow_missing, json, csv;
    int64_t bootstrap, seed;
    double mpp, isolated, downsample, threshold;
};

action_fn evaluate_roc, evaluate_froc, evaluate_pixels;

struct chart;
/* Writes PLOT.svg and PLOT.png; does nothing without --plot. */
bool evaluate_plot(const struct evaluate_options *o, const struct chart *chart, struct err *err);
#endif
