/* model.h: declarations shared by the files of the command `model`. */
#ifndef CLI_MODEL_H
#define CLI_MODEL_H
#include "cli/app.h"
#include "net/model/model.h"

struct model_args {
    struct common_options common;
    const char *model, *network, *weights, *output, *layer;
    int64_t init_seed, classes, size, batch, repeats;
    int kernels, memory, scores; /* indices in kernel_choices, memory_choices, .. */
    bool plan, layers, train, fast, json, tta, any_stain, overwrite;
};

/* `model run`: scores of patches in images, folders, tar files and stores. */
bool model_run_patches(struct app *app, const struct model_args *given, const struct model *model,
                       char **paths, int n_paths, struct err *err);
#endif
