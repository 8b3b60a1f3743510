/* classify.h: what the parts of `microtome classify` share: their options. */
#ifndef CLI_CLASSIFY_H
#define CLI_CLASSIFY_H
#include "cli/app.h"

struct classify_options {
    struct common_options common;
    const char *output, *model, *slide, *label, *positive, *truth, *class_name;
    const char *trees, *depth, *split_features, *min_leaf; /* numbers, or lists of them */
    struct arg_texts ignored;
    bool no_bootstrap, json;
    int64_t seed, folds;
    int set, method;
    double threshold, stop, radius_um, open_um, close_um;
};

bool classify_train(struct app *app, const struct classify_options *o, char *const *files,
                    int n_files, struct err *err);
bool classify_apply(struct app *app, const struct classify_options *o, char *const *files,
                    int n_files, struct err *err);
bool classify_features(struct app *app, const struct classify_options *o, char *const *paths,
                       int n_paths, struct err *err);
bool classify_lesions(struct app *app, const struct classify_options *o, char *const *paths,
                      int n_paths, struct err *err);

enum lesion_method { LESIONS_COMPONENTS, LESIONS_SUPPRESSION };
extern const char *const lesion_method_names[]; /* NULL-terminated, in the order of the enum */
#endif
