/* score.h: images, folders, tar files and patch stores -> a model's scores, patch by patch: what
 * `microtome model run` prints. A patch is prepared as the model's config.json says, so its scores
 * equal those of validation. Memory does not grow with the pixels; only the table of patches is
 * kept. The same for any number of threads. */
#ifndef TRAIN_SCORE_H
#define TRAIN_SCORE_H
#include "base/ctx.h"
#include "net/model/model.h"

struct score_request {
    const struct model *model;
    char *const *paths;
    size_t n_paths;
    bool tta; /* the mean over the eight rotations and reflections of a patch, which must be square
               */
    bool any_stain; /* use pixels as they are, whatever the model was trained with */
};

struct score_row {
    const char *name;     /* "folder/a.png", "a.tar: b.png", "store.h5 patch 12" */
    const char *slide;    /* of a store; else "" */
    int64_t x_l0, y_l0;   /* of a store; else -1 */
    const char *patient;  /* "" where none is known */
    const char *problem;  /* why there is no score; NULL: there is */
    int32_t label;        /* class; -1: none is known */
    const double *scores; /* [classes], or [features]; valid during the call */
};

/* Called once for every patch, in order, by the calling thread. False ends the run. */
typedef bool (*score_fn)(void *arg, const struct score_row *row, struct err *err);

/* Patches that cannot be scored are given with their problem. Uses HDF5: see patch/store.h. */
bool score_run(const struct score_request *request, const struct ctx *ctx, score_fn fn, void *arg,
               struct err *err);

/* Columns of a table: sample, slide, x, y, patient, label, prob_<class>.., or the name of a number
 */
void score_put_header(FILE *stream, const struct model_config *config);
void score_put_row(FILE *stream, const struct model_config *config, const struct score_row *row);
#endif
