/* model_patches.h: images, folders, tar files and patch stores as a model takes them: listed, with
 * the classes of the model as labels, and with stains that are what it was trained with. */
#ifndef TRAIN_MODEL_PATCHES_H
#define TRAIN_MODEL_PATCHES_H
#include "base/ctx.h"
#include "net/model/model.h"
#include "prepare/stain_need.h"
#include "train/dataset.h"

struct model_patches {
    struct train_config config; /* what the data set was opened with */
    struct dataset dataset;
    struct stain_need stain; /* for stain_need_patch */
};

/* Fails where stains are not those of the model's training, unless any_stain; warns of another
 * um/px. *out is the caller's; free with model_patches_free, also after a failure. HDF5: see
 * patch/store.h. */
bool model_patches_open(const struct model *model, char *const *paths, size_t n_paths,
                        bool any_stain, const struct ctx *ctx, struct model_patches *out,
                        struct err *err);
/* The same with a regular expression for the file names of images, whose first group is the
 * patient; NULL: the usual names. */
bool model_patches_open_by(const struct model *model, char *const *paths, size_t n_paths,
                           bool any_stain, const char *patient, const struct ctx *ctx,
                           struct model_patches *out, struct err *err);
void model_patches_free(struct model_patches *patches); /* also fine on a zeroed struct */
#endif
