/* explain.h: what the files of the command explain share. */
#ifndef CLI_EXPLAIN_H
#define CLI_EXPLAIN_H
#include "cli/action.h"
#include "cli/cluster.h"
#include "explain/map.h"
#include "net/model/classifier.h"

struct explain_args {
    struct common_options common;
    const char *output, *model, *network, *weights, *layers, *class_name, *cache;
    int64_t init_seed, classes, seed, batch;
    int scores;
    bool any_stain, overwrite, json;
    struct cluster_options cluster;
    /* map */
    const char *methods, *stain_template, *inside;
    int64_t top, lime_samples, lime_segments, smooth_samples, ig_steps, occlusion_px,
        occlusion_stride_px, belief_steps, belief_orders, belief_subjects;
    int pick, stitch;
    double min_score, hot, smooth_noise;
    /* concepts */
    const char *concepts, *table, *nuclei, *patient;
    int64_t folds, permutations, most_patches;
    int pool, fit;
    double ridge, slide_mpp;
};

extern const struct command cmd_explain;

/* The model of the options, for model_open_classifier. Points into them. */
bool explain_source(const struct explain_args *given, struct model_source *out, struct err *err);

action_fn explain_map, explain_concepts;
#endif
