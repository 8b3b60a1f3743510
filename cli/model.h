/* model.h: declarations shared by the files of the command `model`. */
#ifndef CLI_MODEL_H
#define CLI_MODEL_H
#include "cli/app.h"
#include "net/model/drawn_image.h"
#include "net/model/model.h"
#include "net/model/model_run.h"

/* Of --memory: those of enum plan_saving, then this. */
#define MODEL_MEMORY_STREAM 3
extern const char *const model_memory_choices[];

struct model_args {
    struct common_options common;
    const char *model, *network, *weights, *output, *layer, *spill, *at, *text;
    int64_t init_seed, classes, size, batch, repeats, memory_mb, tile_px, stages, tokens;
    int kernels, memory, scores; /* indices in kernel_choices, model_memory_choices, .. */
    int head, norm;
    bool plan, layers, train, fast, json, tta, any_stain, overwrite, count, features;
};

struct model_source model_source_of(const struct model_args *given);
/* model_open or model_open_ports. */
bool model_open_any(const struct model_args *given, struct model **out, struct err *err);
/* The network's own input size, unless --size is given. */
void model_input_side(const struct model *model, const struct model_args *given, int64_t *height,
                      int64_t *width);

/* A drawn image as a source of pixels; stays where it is while a plan reads it. */
struct model_drawn {
    struct drawn_image image;
    struct plan_source source;
    struct plan_stream stream;
};
/* A plan for inference, or for training with --train; of a drawn image with --memory stream. */
bool model_make_ready(struct app *app, const struct model_args *given, const struct model *model,
                      struct model_drawn *drawn, bool profile, struct model_run *out,
                      struct err *err);
/* One forward pass, or one training step without the update. */
bool model_run_once(const struct model_args *given, const struct model_run *run, struct err *err);

/* model_ports.c: is --network one that does not take a single image (texts, recordings, images with
 * a time)? Then these are in place of model_open and model_make_ready. */
bool model_has_ports(const struct model_args *given);
bool model_open_ports(const struct model_args *given, struct model **out, struct err *err);
bool model_ports_ready(struct app *app, const struct model_args *given, const struct model *model,
                       bool profile, struct model_run *out, struct err *err);

/* Whether options that belong to --memory stream are given with it only. */
bool model_check_memory(const struct model_args *given, struct err *err);

bool model_bench(struct app *app, const struct model_args *given, struct err *err);
/* `model cut`: the stages of a network. */
bool model_cut(struct app *app, const struct model_args *given, struct err *err);

/* `model run`: scores of patches in images, folders, tar files and stores. */
bool model_run_patches(struct app *app, const struct model_args *given, const struct model *model,
                       char **paths, int n_paths, struct err *err);
/* `model run --memory stream`: scores, or the map of a layer, of whole images. */
bool model_run_whole(struct app *app, const struct model_args *given, const struct model *model,
                     char **paths, int n_paths, struct err *err);

/* `model vocabulary`: a vocab.txt learnt from tables of texts. */
bool model_vocabulary(struct app *app, const struct model_args *given, char **tables, int n_tables,
                      struct err *err);
#endif
