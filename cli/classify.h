/* classify.h: what the parts of `microtome classify` share: their options. */
#ifndef CLI_CLASSIFY_H
#define CLI_CLASSIFY_H
#include "cli/action.h"

struct classify_options {
    struct common_options common;
    const char *output, *model, *slide, *label, *positive, *truth, *class_name, *slides, *class_map;
    const char *trees, *depth, *split_features, *min_leaf; /* numbers, or lists of them */
    struct arg_texts ignored;
    bool no_bootstrap, json, allow_missing;
    int64_t seed, folds;
    int set, method;
    double threshold, stop, radius_um, open_um, close_um;
    double join_um, least_um, itc_um, macro_um, mpp, downsample;
};

action_fn classify_features, classify_train, classify_apply, classify_lesions, classify_stage;
#endif
