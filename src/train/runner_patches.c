/* runner_patches.c: patches of one size, texts or recordings: batches from a loader, run in one
 * plan (runner.h).
 */
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "base/room.h"
#include "net/graph/transform.h"
#include "net/model/model.h"
#include "net/stream/choose.h"
#include "train/loader.h"
#include "train/mix.h"
#include "train/runner_recordings.h"
#include "train/runner_texts.h"

struct patches {
    struct runner runner;
    struct loader *loader;
    const struct graph *graph; /* that the plan is of */
    struct graph *few;         /* see take_graph; NULL: the trainer's */
    struct graph *part;        /* the same, where patches are divided; NULL: they are not */
    struct plan *plan;
    float *laid; /* room for a channel of a patch, where they are divided */
    /* train.mixup; NULL: patches are not mixed */
    float *mix_shares;   /* [batch] */
    int32_t *mix_others; /* [batch] */
    float *mix_images;   /* as the batch's */
    uint64_t epoch;
    /* texts in windows (data.long), in evaluations; NULL: not so */
    float *averaged; /* [batch, outputs] */
};

static struct patches *of(struct runner *runner)
{
    return (struct patches *)runner;
}

static const struct patches *of_const(const struct runner *runner)
{
    return (const struct patches *)runner;
}

/* --- how patches are prepared --- */

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

static bool patches_look(struct trainer *trainer, struct err *err)
{
    const struct train_config *config = trainer->config;
    if (config->data.resize_px > 0 && config->data.resize_px < config->network.input_px)
        return err_set(err, ERR_USAGE,
                       "data.resize_px %lld is smaller than network.input_px %lld; it must be at "
                       "least as large",
                       (long long)config->data.resize_px, (long long)config->network.input_px);
    if (config->data.spacing_um_px <= 0 && trainer->dataset.mpp <= 0)
        return err_set(err, ERR_USAGE, "the um/px of the data is unknown; set data.spacing_um_px");
    return dataset_patch_px(&trainer->dataset, 0, &trainer->learning.patch_px, err);
}

/* One description for training, validation and the model's config.json. Resized patches are cut as
 * they are in the data; others as large as the network sees them. */
static bool patches_describe(struct trainer *trainer, struct err *err)
{
    const struct train_config *given = trainer->config;
    struct model_config *config = &trainer->prepare;
    int64_t resized = given->data.resize_px, crop = trainer->learning.crop_px;
    if (!choose_stain(trainer, err))
        return false;
    config->patch_size_pixels = resized > 0 ? trainer->learning.patch_px : crop;
    if (resized > 0)
        config->sizings[config->n_sizings++] =
            (struct model_sizing){ MODEL_RESIZE, resized, resized };
    if (resized != crop)
        config->sizings[config->n_sizings++] =
            (struct model_sizing){ MODEL_CENTER_CROP, crop, crop };
    config->spacing_um_px =
        given->data.spacing_um_px > 0 ? given->data.spacing_um_px : trainer->dataset.mpp;
    stain_need_put(&trainer->stain, config);
    config->icc = trainer->dataset.icc;
    return true;
}

/* --- opening --- */

static bool new_loader(struct trainer *trainer, enum data_side side, struct loader **out,
                       struct err *err)
{
    const struct train_config *config = trainer->config;
    const struct ranks *ranks = side == DATA_TRAIN ? trainer->data_ranks : trainer->sample_ranks;
    struct loader_options options = {
        .dataset = &trainer->dataset,
        .side = side,
        .train = side == DATA_TRAIN,
        .balanced = side == DATA_TRAIN && config->data.balance == BALANCE_SAMPLING,
        .synthetic_share = side == DATA_TRAIN ? config->data.synthetic_share : 0,
        .batch = config_micro_batch(config),
        .input_px = trainer->learning.crop_px,
        .window_bytes = config->data.window_mb << 20,
        .workers = (int)config->data.workers,
        .seed = (uint64_t)config->seed,
        .augment = config->augment,
        .prepare = &trainer->prepare,
        .stain = &trainer->stain,
        .rank = ranks->rank,
        .ranks = ranks->size,
    };
    return loader_new(&options, out, err);
}

static bool new_mix(struct patches *patches, struct err *err)
{
    const struct trainer *trainer = patches->runner.trainer;
    size_t batch = (size_t)config_micro_batch(trainer->config),
           side = (size_t)trainer->learning.crop_px;
    if (trainer->config->train.mixup <= 0 || patches->runner.side != DATA_TRAIN)
        return true;
    patches->mix_shares = calloc(batch, sizeof *patches->mix_shares);
    patches->mix_others = calloc(batch, sizeof *patches->mix_others);
    patches->mix_images = calloc(batch * 3 * side * side, sizeof *patches->mix_images);
    return (patches->mix_shares && patches->mix_others && patches->mix_images) ||
           err_memory(err, "mixed patches");
}

static void patches_free(struct runner *runner)
{
    struct patches *patches = of(runner);
    loader_free(patches->loader);
    plan_free(patches->plan);
    graph_free(patches->part), graph_free(patches->few);
    free(patches->laid);
    free(patches->mix_shares);
    free(patches->mix_others);
    free(patches->mix_images);
    free(patches->averaged);
    free(patches);
}

static bool patches_open(struct trainer *trainer, enum data_side side, struct runner **out,
                         struct err *err)
{
    struct patches *patches = calloc(1, sizeof *patches);
    if (!patches)
        return err_memory(err, "batches");
    patches->runner = (struct runner){ trainer->kind, trainer, side };
    if (!new_loader(trainer, side, &patches->loader, err) || !new_mix(patches, err)) {
        patches_free(&patches->runner);
        return false;
    }
    *out = &patches->runner;
    return true;
}

/* --- batches --- */

static int64_t patches_n_batches(const struct runner *runner)
{
    return loader_n_batches(of_const(runner)->loader);
}

static bool patches_begin(struct runner *runner, uint64_t epoch, int64_t first, struct err *err)
{
    of(runner)->epoch = epoch;
    return loader_begin(of(runner)->loader, epoch, first, err);
}

static void patches_end(struct runner *runner)
{
    loader_end(of(runner)->loader);
}

static double patches_waited_s(const struct runner *runner)
{
    return loader_waited_s(of_const(runner)->loader);
}

/* Blends the batch (train.mixup): it then has other images, and "share" and "other_label" (mix.h).
 */
static void mix(struct patches *patches, struct batch *batch)
{
    const struct train_config *config = patches->runner.trainer->config;
    const struct batch_item *image = batch_find(batch, "image");
    int64_t count = config_micro_batch(config), n = shape_count(&image->shape);
    struct augment_key key = { .seed = (uint64_t)config->seed, .epoch = patches->epoch };
    mix_batch(batch, count, n / count, config->train.mixup, key, patches->mix_shares,
              patches->mix_others, patches->mix_images);
    batch_put(batch,
              (struct batch_item){ "image", BATCH_FLOAT, image->shape, patches->mix_images });
    batch_put(batch,
              (struct batch_item){ "share", BATCH_FLOAT, SHAPE(count), patches->mix_shares });
    batch_put(batch,
              (struct batch_item){ "other_label", BATCH_INT32, SHAPE(count), patches->mix_others });
}

static bool patches_next(struct runner *runner, struct batch *out, struct err *err)
{
    struct patches *patches = of(runner);
    if (!loader_next(patches->loader, out, err))
        return false;
    if (patches->mix_shares)
        mix(patches, out);
    struct learning *learning = &runner->trainer->learning;
    return !learning->objective->prepare ||
           learning->objective->prepare(learning, out, runner->side == DATA_TRAIN, patches->epoch,
                                        err);
}

/* --- the network --- */

static enum plan_saving saving_of(const struct train_config *config)
{
    if (config_half(config))
        return SAVING_HALF;
    return config->train.memory == MEMORY_RECOMPUTE ? SAVING_RECOMPUTE : SAVING_ALL;
}

/* train.memory: auto. Neither choice changes a bit. */
static bool choose(struct patches *patches, const struct plan_options *options, struct err *err)
{
    struct trainer *trainer = patches->runner.trainer;
    struct memory_limit limit = { .peak_mb = trainer->config->train.memory_mb };
    struct memory_chosen chosen;
    char text[CHOSEN_TEXT];
    if (!runner_coming_bytes(trainer, patches->graph, &limit.coming, err) ||
        !choose_plan(patches->graph, options, &limit, &patches->plan, &chosen, err))
        return false;
    choose_describe(patches->plan, &chosen, text);
    if (trainer_leads(trainer))
        console_note(trainer->ctx->console, "train.memory: %s", text);
    return true;
}

/* The graph that runs from now on: that one, in training without tokens that nobody reads, or the
 * part of it that this rank computes. */
static bool take_graph(struct patches *patches, const struct graph *graph, enum plan_mode mode,
                       struct err *err)
{
    const struct trainer *trainer = patches->runner.trainer;
    size_t side = (size_t)trainer->learning.crop_px;
    graph_free(patches->part), graph_free(patches->few);
    patches->part = patches->few = NULL;
    patches->graph = graph;
    if (graph && mode != PLAN_INFER && !trainer_divides(trainer) && !trainer->heads) {
        if (!transform_rows(graph, NULL, 0, &patches->few, err))
            return false;
        patches->graph = patches->few;
    }
    if (!graph || !trainer_divides(trainer))
        return true;
    if (!patches->laid && !(patches->laid = calloc(side * side, sizeof *patches->laid)))
        return err_memory(err, "a patch");
    if (!trainer_space_graph(trainer, graph, &patches->part, err))
        return false;
    patches->graph = patches->part;
    return true;
}

static bool patches_use(struct runner *runner, const struct graph *graph, enum plan_mode mode,
                        struct err *err)
{
    struct patches *patches = of(runner);
    struct trainer *trainer = runner->trainer;
    struct plan_options options = { .mode = mode, .threads = trainer->threads };
    plan_free(patches->plan);
    patches->plan = NULL;
    if (!take_graph(patches, graph, mode, err))
        return false;
    trainer_space_peers(trainer, &options);
    trainer_heads_peers(trainer, &options);
    if (mode != PLAN_INFER) {
        options.peers[PEERS_DATA] = trainer_peers(trainer);
        options.norm_peers |= 1u << PEERS_DATA;
        options.norm_frozen = trainer->config->network.norm == NORM_FROZEN;
        options.gradients = trainer->gradients;
        options.saving = saving_of(trainer->config);
        if (graph && trainer->config->train.memory == MEMORY_AUTO)
            return choose(patches, &options, err);
        options.arena_budget = (size_t)trainer->config->train.memory_mb << 20;
    }
    return !graph || plan_new(patches->graph, &options, &patches->plan, err);
}

/* The tensors that the objective names to the inputs of the network; images in one of MODEL_WAYS.
 */
static void feed(const struct patches *patches, const struct batch *batch, int way)
{
    const struct objective_feed *feed = patches->runner.trainer->learning.objective->feeds;
    for (; feed->tensor; feed++) {
        const struct batch_item *item = batch_find(batch, feed->tensor);
        if (!item) /* optional */
            continue;
        float *input = plan_input(patches->plan, trainer_input(patches->graph, feed->port));
        if (patches->part)
            trainer_space_cut(patches->runner.trainer, item->data,
                              item->shape.dim[0] * item->shape.dim[1], item->shape.dim[2], way,
                              patches->laid, input);
        else if (way == 0)
            memcpy(input, item->data, (size_t)shape_count(&item->shape) * sizeof *input);
        else
            model_lay(item->data, item->shape.dim[0] * item->shape.dim[1], item->shape.dim[2], way,
                      input);
    }
}

static const float *patches_forward(struct runner *runner, const struct batch *batch,
                                    const struct run_key *key, struct err *err)
{
    struct patches *patches = of(runner);
    struct trainer *trainer = runner->trainer;
    plan_set_random(patches->plan, (uint64_t)trainer->config->seed, key->first_sample);
    feed(patches, batch, key->way);
    trainer->amid = patches->part || trainer->heads;
    if (!plan_forward(patches->plan, err))
        return NULL;
    trainer->amid = false;
    return plan_output(patches->plan, trainer_output(trainer, patches->graph));
}

/* Of texts in windows the mean of all, where there is something to average. */
static const float *texts_forward(struct runner *runner, const struct batch *batch,
                                  const struct run_key *key, struct err *err)
{
    struct patches *patches = of(runner);
    struct trainer *trainer = runner->trainer;
    const struct learning *learning = &trainer->learning;
    if (runner->side == DATA_TRAIN || !learning->objective->predict ||
        trainer->dataset.texts->sequence.rule != SEQUENCE_WINDOWS)
        return patches_forward(runner, batch, key, err);
    size_t count = (size_t)(batch_rows(batch) * learning->outputs);
    if (!patches->averaged && !(patches->averaged = calloc(count, sizeof *patches->averaged))) {
        err_memory(err, "windows of texts");
        return NULL;
    }
    struct text_windows how = {
        .sequence = &trainer->dataset.texts->sequence,
        .plan = patches->plan,
        .ids = trainer_input(patches->graph, "input"),
        .mask = trainer_input(patches->graph, "mask"),
        .output = trainer_output(trainer, patches->graph),
        .batch = batch_rows(batch),
        .classes = learning->outputs,
        .independent = trainer->config->network.activation == ACTIVATION_SIGMOID,
    };
    return texts_average(trainer, &how, batch, patches->averaged, err) ? patches->averaged : NULL;
}

static float *patches_gradient(struct runner *runner)
{
    struct patches *patches = of(runner);
    return plan_output_gradient(patches->plan, trainer_output(runner->trainer, patches->graph));
}

static bool patches_backward(struct runner *runner, bool last, struct err *err)
{
    struct patches *patches = of(runner);
    struct trainer *trainer = runner->trainer;
    trainer_space_gradient(trainer, patches->graph, trainer_output(trainer, patches->graph),
                           patches_gradient(runner));
    return trainer_share_backward(trainer, patches->plan, last, err);
}

static bool patches_tell(struct runner *runner, struct err *err)
{
    int64_t bytes = (int64_t)plan_memory(of(runner)->plan).arena;
    return trainer_share_memory(runner->trainer, bytes, err) &&
           trainer_heads_tell(runner->trainer, bytes, err);
}

static void patches_record(const struct runner *runner, struct json_out *json)
{
    trainer_space_record(runner->trainer, json);
    trainer_heads_record(runner->trainer, json);
}

static void patches_remark(const struct runner *runner)
{
    const struct trainer *trainer = runner->trainer;
    if (trainer->config->train.memory == MEMORY_AUTO && of_const(runner)->plan)
        console_note(trainer->ctx->console, "train.memory: measured peak %.0f MB",
                     (double)room_peak() / 1e6);
}

/* What all runners of batches have in common, whatever their samples are. */
#define RUNNER_OF_BATCHES                                                                          \
    .batch = config_micro_batch, .step_batches = config_micro_batches, .open = patches_open,       \
    .free = patches_free, .n_batches = patches_n_batches, .begin = patches_begin,                  \
    .end = patches_end, .next = patches_next, .waited_s = patches_waited_s, .use = patches_use,    \
    .gradient = patches_gradient, .backward = patches_backward, .step = runner_step,               \
    .tell = patches_tell, .record = patches_record, .remark = patches_remark

const struct runner_kind runner_patches = {
    RUNNER_OF_BATCHES,          .samples = "patches",
    .look = patches_look,       .describe = patches_describe,
    .forward = patches_forward,
};

const struct runner_kind runner_texts = {
    RUNNER_OF_BATCHES,          .samples = "texts",       .look = texts_look,
    .describe = texts_describe, .forward = texts_forward,
};

const struct runner_kind runner_recordings = {
    RUNNER_OF_BATCHES,          .samples = "recordings",
    .look = recordings_look,    .describe = recordings_describe,
    .forward = patches_forward,
};
