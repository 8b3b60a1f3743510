/* trainer_data.c: a training's data and the runners of its sides (trainer.h). */
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "train/trainer.h"

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
    char each[96] = "", tested[48] = "", made[48] = "";
    int64_t step = trainer_step_images(trainer), used = trainer->steps_per_epoch * step;
    if (used != train && !config_private(trainer->config))
        snprintf(each, sizeof each, " (%lld per epoch: %lld steps of %lld)", (long long)used,
                 (long long)trainer->steps_per_epoch, (long long)step);
    if (test > 0)
        snprintf(tested, sizeof tested, ", %lld for testing", (long long)test);
    if (trainer->dataset.n_synthetic > 0)
        snprintf(made, sizeof made, ", %lld of them synthetic",
                 (long long)trainer->dataset.n_synthetic);
    console_note(trainer->ctx->console,
                 "%lld %s for training%s%s, %lld for validation%s, %d patients", (long long)train,
                 trainer->kind->samples, made, each, (long long)val, tested,
                 dataset_real_patients(&trainer->dataset));
}

/* The runners of the sides that have samples. */
static bool open_sides(struct trainer *trainer, int64_t *count, struct err *err)
{
    const struct runner_kind *kind = trainer->kind;
    int64_t train = dataset_count(&trainer->dataset, DATA_TRAIN, count);
    int64_t val = count_side(trainer, DATA_VAL, "validation", count), test = 0;
    if (trainer->learning.objective->test)
        test = count_side(trainer, DATA_TEST, "test", count);
    if (val == 0 && !config_private(trainer->config))
        console_warn(trainer->ctx->console,
                     "no %s are left for validation, so epochs are not "
                     "validated; list some in data.val, or add patients",
                     kind->samples);
    const struct runner_kind *learns = trainer->staged                   ? &runner_stages
                                       : config_private(trainer->config) ? &runner_private
                                                                         : kind;
    if (!learns->open(trainer, DATA_TRAIN, &trainer->train, err))
        return false;
    trainer->steps_per_epoch =
        learns->n_batches(trainer->train) / learns->step_batches(trainer->config);
    say_counts(trainer, train, val, test);
    if (trainer->steps_per_epoch == 0 && config_private(trainer->config))
        return err_set(
            err, ERR_USAGE,
            "%lld %s (privacy.unit) are fewer than the %lld of a step; lower train.batch "
            "or train.accumulate",
            (long long)trainer->private.units,
            trainer->config->privacy.unit == UNIT_PATIENT ? "patients" : "patches",
            (long long)trainer_step_images(trainer));
    if (trainer->steps_per_epoch == 0)
        return err_set(err, ERR_USAGE,
                       "%lld training %s are too few for one step; lower train.batch or "
                       "train.accumulate",
                       (long long)train, kind->samples);
    return trainer_private_plan(trainer, err) &&
           (val == 0 || kind->open(trainer, DATA_VAL, &trainer->val, err)) &&
           (test == 0 || kind->open(trainer, DATA_TEST, &trainer->tester, err));
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
    if (!trainer_agree(trainer, dataset_open(trainer->config, &trainer->dataset, err), err) ||
        !trainer_hold_out(trainer, err))
        return false;
    trainer->data_hash = dataset_hash(&trainer->dataset);
    model_config_init(&trainer->prepare);
    memcpy(trainer->prepare.mean, trainer->config->data.mean, sizeof trainer->prepare.mean);
    memcpy(trainer->prepare.std, trainer->config->data.std, sizeof trainer->prepare.std);
    if (!trainer->kind->look(trainer, err) || !ask_objective(trainer, err) ||
        !trainer->kind->describe(trainer, err))
        return false;
    int64_t *count = calloc((size_t)trainer->dataset.n_classes, sizeof *count);
    bool ok = count ? open_sides(trainer, count, err) : err_memory(err, "the data set");
    free(count);
    return ok;
}
