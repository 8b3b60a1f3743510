/* trainer_data.c: a training's data, how patches are prepared, and the loaders (trainer.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "train/trainer.h"

static bool new_loader(struct trainer *trainer, enum data_side side, struct loader **out,
                       struct err *err)
{
    const struct train_config *config = trainer->config;
    struct loader_options options = {
        .dataset = &trainer->dataset,
        .side = side,
        .train = side == DATA_TRAIN,
        .balanced = side == DATA_TRAIN && config->data.balance == BALANCE_SAMPLING,
        .batch = config->train.batch,
        .input_px = trainer->learning.crop_px,
        .window_bytes = config->data.window_mb << 20,
        .workers = (int)config->data.workers,
        .seed = (uint64_t)config->seed,
        .augment = config->augment,
        .prepare = &trainer->prepare,
        .stain = &trainer->stain,
        .rank = trainer->data_ranks->rank,
        .ranks = trainer->data_ranks->size,
    };
    return loader_new(&options, out, err);
}

/* How the stains of the patches are normalised: what the model expects from then on. */
static bool choose_stain(struct trainer *trainer, struct err *err)
{
    const struct train_config *config = trainer->config;
    const struct dataset *dataset = &trainer->dataset;
    const char *method = stain_method_names[config->data.stain],
               *stored = stain_method_names[dataset->stain.method];
    trainer->stain = (struct stain_need){ .known = true, .target = dataset->stain };
    if (dataset->stain.method != STAIN_NONE && dataset->has_images)
        return err_set(err, ERR_USAGE,
                       "the stores were extracted with --stain %s, but images do not record how "
                       "their stains were normalised; train on stores or on images, not both",
                       stored);
    if (config->data.stain == STAIN_NONE)
        return true;
    if (dataset->stain.method != STAIN_NONE)
        return err_set(err, ERR_USAGE,
                       "data.stain: the stores were already extracted with --stain %s; omit it",
                       stored);
    if (dataset->has_stores)
        console_warn(trainer->ctx->console,
                     "data.stain fits every patch separately, but predict fits the whole slide; "
                     "stores from 'extract --stain %s' match what the model sees in predict",
                     method);
    trainer->stain.per_patch = true;
    return stain_need_target((enum stain_method)config->data.stain, config->data.stain_template,
                             &trainer->stain.target, err);
}

/* One description for training, validation and the model's config.json. Resized patches are cut as
 * they are in the data; others as large as the network sees them. */
static void describe(struct trainer *trainer)
{
    const struct train_config *given = trainer->config;
    struct model_config *config = &trainer->prepare;
    int64_t resized = given->data.resize_px, crop = trainer->learning.crop_px;
    model_config_init(config);
    config->patch_size_pixels = resized > 0 ? trainer->learning.patch_px : crop;
    if (resized > 0)
        config->sizings[config->n_sizings++] =
            (struct model_sizing){ MODEL_RESIZE, resized, resized };
    if (resized != crop)
        config->sizings[config->n_sizings++] =
            (struct model_sizing){ MODEL_CENTER_CROP, crop, crop };
    config->spacing_um_px =
        given->data.spacing_um_px > 0 ? given->data.spacing_um_px : trainer->dataset.mpp;
    memcpy(config->mean, given->data.mean, sizeof config->mean);
    memcpy(config->std, given->data.std, sizeof config->std);
    stain_need_put(&trainer->stain, config);
    config->icc = trainer->dataset.icc;
}

static bool check_sizes(const struct trainer *trainer, struct err *err)
{
    const struct train_config *config = trainer->config;
    if (config->data.resize_px > 0 && config->data.resize_px < config->network.input_px)
        return err_set(err, ERR_USAGE,
                       "data.resize_px %lld is smaller than network.input_px %lld; it must be at "
                       "least as large",
                       (long long)config->data.resize_px, (long long)config->network.input_px);
    if (config->data.spacing_um_px <= 0 && trainer->dataset.mpp <= 0)
        return err_set(err, ERR_USAGE, "the um/px of the data is unknown; set data.spacing_um_px");
    return true;
}

/* Warns about classes missing from a side. Returns how many patches the side has. */
static int64_t count_side(const struct trainer *trainer, enum data_side side, const char *name,
                          int64_t *count)
{
    int64_t n = dataset_count(&trainer->dataset, side, count);
    bool labelled = trainer->config->truth == TRUTH_LABELS;
    for (int64_t c = 0; labelled && n > 0 && c < trainer->dataset.n_classes; c++)
        if (count[c] == 0)
            console_warn(trainer->ctx->console, "class '%s' has no %s sample",
                         trainer->config->classes.items[c], name);
    return n;
}

/* An epoch is whole steps: what is left over is another part of the data in every epoch. */
static void say_counts(const struct trainer *trainer, int64_t train, int64_t val, int64_t test)
{
    char each[96] = "", tested[48] = "";
    int64_t step = trainer_step_images(trainer), used = trainer->steps_per_epoch * step;
    if (used != train)
        snprintf(each, sizeof each, " (%lld per epoch: %lld steps of %lld)", (long long)used,
                 (long long)trainer->steps_per_epoch, (long long)step);
    if (test > 0)
        snprintf(tested, sizeof tested, ", %lld for testing", (long long)test);
    console_note(trainer->ctx->console,
                 "%lld patches for training%s, %lld for validation%s, %d patients",
                 (long long)train, each, (long long)val, tested, trainer->dataset.n_patients);
}

/* The loaders of the sides that have patches. */
static bool open_sides(struct trainer *trainer, int64_t *count, struct err *err)
{
    const struct train_config *config = trainer->config;
    int64_t train = dataset_count(&trainer->dataset, DATA_TRAIN, count);
    int64_t val = count_side(trainer, DATA_VAL, "validation", count), test = 0;
    if (trainer->learning.objective->test)
        test = count_side(trainer, DATA_TEST, "test", count);
    if (val == 0)
        console_warn(trainer->ctx->console, "no patches are left for validation, so epochs are not "
                                            "validated; list some in data.val, or add patients");
    if (!new_loader(trainer, DATA_TRAIN, &trainer->train_loader, err))
        return false;
    trainer->steps_per_epoch = loader_n_batches(trainer->train_loader) / config->train.accumulate;
    say_counts(trainer, train, val, test);
    if (trainer->steps_per_epoch == 0)
        return err_set(err, ERR_USAGE,
                       "%lld training patches are too few for one step; lower train.batch or "
                       "train.accumulate",
                       (long long)train);
    return (val == 0 || new_loader(trainer, DATA_VAL, &trainer->val_loader, err)) &&
           (test == 0 || new_loader(trainer, DATA_TEST, &trainer->test_loader, err));
}

/* What the objective makes of the data. */
static bool ask_objective(struct trainer *trainer, struct err *err)
{
    struct learning *learning = &trainer->learning;
    learning->dataset = &trainer->dataset;
    learning->crop_px = trainer->config->network.input_px;
    return !learning->objective->inputs || learning->objective->inputs(learning, err);
}

bool trainer_open_data(struct trainer *trainer, struct err *err)
{
    if (!dataset_open(trainer->config, &trainer->dataset, err))
        return false;
    trainer->data_hash = dataset_hash(&trainer->dataset);
    if (!check_sizes(trainer, err) ||
        !dataset_patch_px(&trainer->dataset, 0, &trainer->learning.patch_px, err) ||
        !ask_objective(trainer, err) || !choose_stain(trainer, err))
        return false;
    describe(trainer);
    int64_t *count = calloc((size_t)trainer->dataset.n_classes, sizeof *count);
    bool ok = count ? open_sides(trainer, count, err) : err_memory(err, "the data set");
    free(count);
    return ok;
}
