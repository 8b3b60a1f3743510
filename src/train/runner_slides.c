/* runner_slides.c: whole slides, one at a time: each is read region by region while it is computed,
 * in a plan for its size (runner.h). A batch is one slide; those of a step add to the same
 * gradients. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/console.h"
#include "base/divide.h"
#include "base/json.h"
#include "base/room.h"
#include "net/stream/budget.h"
#include "net/stream/choose.h"
#include "net/stream/divide.h"
#include "prepare/slide_image.h"
#include "train/loss.h"
#include "train/order.h"
#include "train/trainer.h"

/* What a row of background costs, of one of tissue: all of it is computed, only less is decoded. */
#define BACKGROUND_WORK 0.95

/* The largest plan so far. */
struct largest {
    int64_t height, width;
    struct memory_chosen chosen;
    struct plan_streamed streamed; /* zeros: not tile by tile */
    char text[CHOSEN_TEXT];
};

struct slides {
    struct runner runner;
    struct slide_image **images; /* [samples of the data set]; NULL: of another side */
    struct slide_access access;
    /* one epoch */
    struct order order;
    struct order_item *items; /* of the order, [order.n] */
    uint64_t epoch;
    int64_t next; /* batch */
    /* the batch */
    struct slide_image *image; /* NULL: padding */
    struct augment_key key;
    int32_t label;
    int64_t sample;
    float target;
    float *nothing; /* outputs of padding */
    /* the network */
    const struct graph *graph;
    enum plan_mode mode;
    struct graph *sized; /* for the image */
    struct plan *plan;
    int64_t height, width; /* of the plan */
    int64_t *band_rows;    /* [bands + 1]; NULL: one band */
    struct plan_source source;
    /* reads of the plan's image so far, and in one pass, for the progress within a slide */
    atomic_int_least64_t reads;
    int64_t tiles;
    double waited_s;
    struct largest largest;
};

static struct slides *of(struct runner *runner)
{
    return (struct slides *)runner;
}

static const struct slides *of_const(const struct runner *runner)
{
    return (const struct slides *)runner;
}

static int64_t slides_batch(const struct train_config *config)
{
    (void)config;
    return 1;
}

static int64_t slides_step_batches(const struct train_config *config)
{
    return config->train.batch * config->train.accumulate;
}

static bool slides_look(struct trainer *trainer, struct err *err)
{
    (void)err;
    trainer->learning.patch_px = trainer->config->network.input_px; /* nothing is cropped */
    return true;
}

static struct slide_image_options image_options(const struct trainer *trainer)
{
    const struct train_config *config = trainer->config;
    struct slide_image_options options = slide_image_defaults();
    options.mpp = config->data.mpp;
    options.long_side_px = config->data.long_side_px;
    options.of_config = true;
    options.target = trainer->stain.target;
    memcpy(options.mean, config->data.mean, sizeof options.mean);
    memcpy(options.std, config->data.std, sizeof options.std);
    return options;
}

static bool slides_describe(struct trainer *trainer, struct err *err)
{
    const struct train_config *config = trainer->config;
    trainer->stain = (struct stain_need){ .known = true };
    if (config->data.stain != STAIN_NONE &&
        !stain_need_target((enum stain_method)config->data.stain, config->data.stain_template,
                           &trainer->stain.target, err))
        return false;
    struct slide_image_options options = image_options(trainer);
    trainer->prepare.patch_size_pixels = config->network.input_px;
    slide_image_put(&options, &trainer->prepare);
    stain_need_put(&trainer->stain, &trainer->prepare);
    return true;
}

/* --- opening --- */

/* Finds the tissue of all slides of the side: one without any is told before work begins. */
static bool open_images(struct slides *slides, struct err *err)
{
    const struct trainer *trainer = slides->runner.trainer;
    const struct dataset *dataset = &trainer->dataset;
    const struct slide_image_options options = image_options(trainer);
    static const char *const labels[] = { "tissue for training", "tissue for validation",
                                          "tissue for testing" };
    bool ok = true;
    console_begin(trainer->ctx->console, labels[slides->runner.side],
                  dataset_count(dataset, slides->runner.side, NULL), "slides");
    for (int64_t i = 0; ok && i < dataset->n_samples; i++) {
        if (dataset_side(dataset, i) != slides->runner.side)
            continue;
        ok = slide_image_open(dataset_slide(dataset, i), &slides->access, &options, trainer->ctx,
                              &slides->images[i], err);
        if (ok) {
            slide_image_warn(slides->images[i], trainer->ctx->console);
            slide_image_rest(slides->images[i]);
        }
        console_advance(trainer->ctx->console, 1);
        if (ctx_stopped(trainer->ctx))
            ok = err_stopped(err);
    }
    console_end(trainer->ctx->console);
    return ok;
}

static void drop_plan(struct slides *slides)
{
    plan_free(slides->plan);
    graph_free(slides->sized);
    slides->plan = NULL;
    slides->sized = NULL;
}

static void end_order(struct slides *slides)
{
    order_free(&slides->order);
    free(slides->items);
    slides->items = NULL;
}

static void slides_free(struct runner *runner)
{
    struct slides *slides = of(runner);
    drop_plan(slides);
    end_order(slides);
    for (int64_t i = 0; slides->images && i < runner->trainer->dataset.n_samples; i++)
        slide_image_close(slides->images[i]);
    free(slides->images);
    free(slides->nothing);
    free(slides->band_rows);
    free(slides);
}

static bool read_pixels(void *arg, int64_t y, int64_t x, int64_t h, int64_t w, float *out,
                        struct err *err);

static bool slides_open(struct trainer *trainer, enum data_side side, struct runner **out,
                        struct err *err)
{
    struct slides *slides = calloc(1, sizeof *slides);
    if (!slides)
        return err_memory(err, "slides");
    slides->runner = (struct runner){ &runner_slides, trainer, side };
    slides->access = (struct slide_access){ .results = trainer->request->folder };
    slides->source = (struct plan_source){ slides, read_pixels };
    slides->images = calloc((size_t)trainer->dataset.n_samples, sizeof *slides->images);
    bool ok = slides->images ? open_images(slides, err) : err_memory(err, "slides");
    if (!ok) {
        slides_free(&slides->runner);
        return false;
    }
    *out = &slides->runner;
    return true;
}

/* --- batches --- */

static struct order_options order_options(const struct runner *runner, uint64_t epoch)
{
    const struct train_config *config = runner->trainer->config;
    bool train = runner->side == DATA_TRAIN;
    return (struct order_options){ .side = runner->side,
                                   .shuffle = train,
                                   .balanced = train && config->data.balance == BALANCE_SAMPLING,
                                   .seed = (uint64_t)config->seed,
                                   .epoch = epoch };
}

static int64_t slides_n_batches(const struct runner *runner)
{
    struct order_options options = order_options(runner, 0);
    int64_t n = order_count(&runner->trainer->dataset, &options);
    int64_t ranks = runner->trainer->data_ranks->size;
    return runner->side == DATA_TRAIN ? n / ranks : ceil_div(n, ranks);
}

static bool slides_begin(struct runner *runner, uint64_t epoch, int64_t first, struct err *err)
{
    struct slides *slides = of(runner);
    struct order_options options = order_options(runner, epoch);
    end_order(slides);
    if (!order_new(&runner->trainer->dataset, &options, &slides->order, err))
        return false;
    slides->epoch = epoch;
    slides->next = first;
    slides->items = calloc((size_t)slides->order.n + 1, sizeof *slides->items);
    bool ok = slides->items || err_memory(err, "the order of slides");
    for (int32_t w = 0; ok && w < slides->order.n_windows; w++)
        ok = order_window(&slides->order, w, slides->items + slides->order.windows[w].first, err);
    return ok;
}

static void slides_end(struct runner *runner)
{
    struct slides *slides = of(runner);
    if (slides->image)
        slide_image_rest(slides->image);
    slides->image = NULL;
    end_order(slides);
}

static void describe_batch(struct slides *slides, struct batch *out)
{
    *out = (struct batch){ .n = slides->image ? 1 : 0 };
    batch_put(out, (struct batch_item){ "label", BATCH_INT32, SHAPE(1), &slides->label });
    batch_put(out, (struct batch_item){ "sample", BATCH_INT64, SHAPE(1), &slides->sample });
    if (slides->runner.trainer->dataset.targets)
        batch_put(out, (struct batch_item){ "target", BATCH_FLOAT, SHAPE(1), &slides->target });
}

static bool slides_next(struct runner *runner, struct batch *out, struct err *err)
{
    struct slides *slides = of(runner);
    const struct dataset *dataset = &runner->trainer->dataset;
    const struct ranks *ranks = runner->trainer->data_ranks;
    int64_t position = slides->next++ * ranks->size + ranks->rank;
    (void)err;
    if (slides->image)
        slide_image_rest(slides->image);
    slides->image = NULL;
    slides->label = LOSS_IGNORE;
    slides->sample = -1;
    if (position < slides->order.n) {
        struct order_item item = slides->items[position];
        slides->image = slides->images[item.sample];
        slides->sample = item.sample;
        slides->label = dataset_label(dataset, item.sample);
        slides->target = dataset->targets ? dataset->targets[item.sample] : 0;
        slides->key = (struct augment_key){ .seed = order_options(runner, 0).seed,
                                            .epoch = slides->epoch | (uint64_t)item.copy << 32,
                                            .sample = (uint64_t)item.sample };
    }
    describe_batch(slides, out);
    return true;
}

static double slides_waited_s(const struct runner *runner)
{
    const struct slides *slides = of_const(runner);
    struct plan_streamed now = { 0 };
    if (slides->plan)
        plan_streamed(slides->plan, &now);
    return slides->waited_s + now.waited_source_s;
}

/* --- the network --- */

/* Pixels of the current slide, and how far it is. */
static bool read_pixels(void *arg, int64_t y, int64_t x, int64_t h, int64_t w, float *out,
                        struct err *err)
{
    struct slides *slides = arg;
    const struct ctx *ctx = slides->runner.trainer->ctx;
    struct plan_source source = slide_image_source(slides->image);
    if (ctx_stopped(ctx) && slides->runner.trainer->bands.size == 1) /* others would wait forever */
        return err_stopped(err);
    int64_t done = atomic_fetch_add(&slides->reads, 1), passes = slides->mode == PLAN_INFER ? 1 : 2;
    if (slides->tiles > 1)
        console_inside(ctx->console, done, slides->tiles * passes, "tile");
    return source.read(source.arg, y, x, h, w, out, err);
}

/* What is left of train.memory_mb for the plan of a slide. */
static bool set_budget(const struct slides *slides, struct err *err)
{
    struct trainer *trainer = slides->runner.trainer;
    const struct train_config *config = trainer->config;
    struct plan_stream stream = { 0 };
    size_t copies = 3 + (config->train.ema > 0); /* gradients and what the optimizer keeps */
    size_t reading = 0;
    for (int64_t i = 0; i < trainer->dataset.n_samples; i++)
        if (slides->images[i] && slide_image_bytes(slides->images[i]) > reading)
            reading = slide_image_bytes(slides->images[i]);
    budget_of_process(config->train.memory_mb,
                      copies * (size_t)trainer->n_gradients * sizeof(float) + reading, &stream);
    trainer->plan_besides = stream.besides;
    trainer->plan_budget = stream.budget;
    return stream.budget != 1 ||
           err_set(err, ERR_USAGE,
                   "train.memory_mb: %lld is less than the %zu MB that training takes besides the "
                   "tiles of a slide; raise it",
                   (long long)config->train.memory_mb, stream.besides / 1000000 + 1);
}

/* Without its plan until the next image. */
static void rest(struct slides *slides)
{
    slides->waited_s = slides_waited_s(&slides->runner);
    drop_plan(slides);
}

static bool slides_use(struct runner *runner, const struct graph *graph, enum plan_mode mode,
                       struct err *err)
{
    struct slides *slides = of(runner);
    rest(slides);
    if (runner->trainer->train && graph) /* an evaluation: both plans would not fit */
        rest(of(runner->trainer->train));
    slides->graph = graph;
    slides->mode = mode;
    free(slides->nothing);
    slides->nothing = calloc((size_t)runner->trainer->learning.outputs + 1, sizeof(float));
    return (slides->nothing || err_memory(err, "slides")) &&
           (mode == PLAN_INFER || set_budget(slides, err));
}

/* Keeps the largest of all plans, for the record; the first is told. */
static void note_plan(struct slides *slides, struct memory_chosen chosen)
{
    const struct trainer *trainer = slides->runner.trainer;
    struct largest *largest = &slides->largest;
    struct plan_streamed now = { 0 };
    bool first = largest->height == 0 && slides->mode != PLAN_INFER;
    plan_streamed(slides->plan, &now);
    slides->tiles = now.tiles_down * now.tiles_across;
    if (slides->height * slides->width <= largest->height * largest->width)
        return;
    *largest = (struct largest){ slides->height, slides->width, chosen, now, "" };
    choose_describe(slides->plan, &chosen, largest->text);
    if (first)
        console_note(trainer->ctx->console, "%s: %lld x %lld px: %s",
                     dataset_slide(&trainer->dataset, slides->sample)->name,
                     (long long)slides->width, (long long)slides->height, largest->text);
}

/* The plan for the graph at its size, in the way that train.memory says. */
static bool make_plan(struct slides *slides, struct memory_chosen *chosen, struct err *err)
{
    const struct trainer *trainer = slides->runner.trainer;
    const struct train_config *config = trainer->config;
    bool bf16 = config->train.store == STORE_BF16;
    struct plan_stream stream = { .source = &slides->source,
                                  .tile_px = config->train.tile_px,
                                  .budget = trainer->plan_budget,
                                  .besides = trainer->plan_besides,
                                  .spill = config->train.spill[0] ? config->train.spill
                                                                  : trainer->request->folder,
                                  .bf16 = bf16,
                                  .band_rows = slides->band_rows };
    struct memory_limit limit = { .peak_mb = config->train.memory_mb,
                                  .budget = trainer->plan_budget,
                                  .besides = trainer->plan_besides,
                                  .bf16 = bf16 };
    struct plan_options options = { .mode = slides->mode, .threads = trainer->threads };
    options.gradients = slides->mode == PLAN_INFER ? NULL : trainer->gradients;
    options.norm_frozen = trainer->config->network.norm == NORM_FROZEN;
    bool divided = trainer->bands.size > 1;
    options.peers[PEERS_BANDS] = divided ? &trainer->bands : NULL;
    if (config->train.memory == MEMORY_AUTO || config->train.memory == MEMORY_STREAM)
        options.stream = &stream;
    if (config->train.memory == MEMORY_AUTO && !divided)
        return choose_plan(slides->sized, &options, &limit, &slides->plan, chosen, err);
    static const enum memory_way ways[] = { [MEMORY_PLAIN] = WAY_PLAIN,
                                            [MEMORY_RECOMPUTE] = WAY_RECOMPUTE,
                                            [MEMORY_HALF] = WAY_HALF,
                                            [MEMORY_STREAM] = WAY_STREAM };
    static const enum plan_saving savings[] = { [MEMORY_PLAIN] = SAVING_ALL,
                                                [MEMORY_RECOMPUTE] = SAVING_RECOMPUTE,
                                                [MEMORY_HALF] = SAVING_HALF,
                                                [MEMORY_STREAM] = SAVING_ALL };
    int memory = divided ? MEMORY_STREAM : config_half(config) ? MEMORY_HALF : config->train.memory;
    chosen->way = ways[memory];
    options.saving = savings[memory];
    if (options.saving == SAVING_RECOMPUTE)
        options.arena_budget = trainer->plan_budget;
    if (!plan_new(slides->sized, &options, &slides->plan, err))
        return false;
    struct plan_streamed streamed = { 0 };
    chosen->predicted = trainer->plan_besides + (plan_streamed(slides->plan, &streamed)
                                                     ? streamed.predicted_bytes
                                                     : plan_memory(slides->plan).arena);
    return true;
}

/* The rows of the bands of the current image, whose graph is there. */
static bool divide(struct slides *slides, struct err *err)
{
    int bands = slides->runner.trainer->bands.size;
    free(slides->band_rows);
    slides->band_rows = NULL;
    if (bands == 1)
        return true;
    slides->band_rows = calloc((size_t)bands + 1, sizeof *slides->band_rows);
    double *work = calloc((size_t)slides->height, sizeof *work);
    bool ok = (slides->band_rows && work) || err_memory(err, "bands");
    if (ok)
        slide_image_tissue_rows(slides->image, work);
    for (int64_t y = 0; ok && y < slides->height; y++)
        work[y] = BACKGROUND_WORK + (1 - BACKGROUND_WORK) * work[y];
    struct plan_options options = { .mode = slides->mode };
    options.norm_frozen = slides->runner.trainer->config->network.norm == NORM_FROZEN;
    ok = ok && bands_divide(slides->sized, &options, work, bands, slides->band_rows, err);
    free(work);
    return ok;
}

/* After an error of the network's shapes at the size of the image. */
static bool refuse_size(const struct slides *slides, struct err *err)
{
    const struct train_config *config = slides->runner.trainer->config;
    int64_t side = config->network.input_px; /* which it is known to take */
    bool small = slides->height < side || slides->width < side;
    if (!err || err->kind == ERR_MEMORY)
        return false;
    struct err why = *err;
    return err_set(
        err, ERR_USAGE, "%s cannot take the slide as an image of %lld x %lld px (%.400s); %s",
        config->network.name, (long long)slides->width, (long long)slides->height, why.text,
        !small                 ? "choose a network that takes images of any size"
        : config->data.mpp > 0 ? "lower data.mpp, or remove the slide from the list"
                               : "raise data.long_side_px, or remove the slide from "
                                 "the list");
}

/* The plan for the current image; the one before is kept if it has the same size. */
static bool fit_plan(struct slides *slides, struct err *err)
{
    struct memory_chosen chosen = { 0 };
    int64_t height, width;
    slide_image_size(slides->image, &height, &width);
    if (slides->plan && height == slides->height && width == slides->width && !slides->band_rows)
        return true;
    rest(slides);
    slides->height = height;
    slides->width = width;
    if (!transform_resize(slides->graph, 1, height, width, &slides->sized, err))
        return refuse_size(slides, err);
    if (!divide(slides, err) || !make_plan(slides, &chosen, err))
        return false;
    note_plan(slides, chosen);
    return true;
}

/* A rank that fails in a pass over its band leaves the others waiting. */
static bool pass(struct slides *slides, bool (*run_plan)(struct plan *plan, struct err *err),
                 struct err *err)
{
    struct trainer *trainer = slides->runner.trainer;
    trainer->amid = trainer->bands.size > 1;
    bool ok = run_plan(slides->plan, err);
    trainer->amid = trainer->amid && !ok;
    return ok;
}

static bool run(struct slides *slides, const struct run_key *key, struct err *err)
{
    const struct trainer *trainer = slides->runner.trainer;
    struct plan_streamed streamed;
    bool learns = slides->mode != PLAN_INFER;
    if (!slide_image_view(slides->image, learns ? &trainer->config->augment : NULL, slides->key,
                          err) ||
        !fit_plan(slides, err))
        return false;
    atomic_store(&slides->reads, 0);
    if (!plan_streamed(slides->plan, &streamed)) {
        double began_s = clock_monotonic_s();
        float *input = plan_input(slides->plan, trainer_input(slides->sized, "input"));
        if (!read_pixels(slides, 0, 0, slides->height, slides->width, input, err))
            return false;
        slides->waited_s += clock_monotonic_s() - began_s;
    }
    plan_set_random(slides->plan, (uint64_t)trainer->config->seed, key->first_sample);
    return pass(slides, plan_forward, err);
}

/* Errors name the slide. */
static bool named(const struct slides *slides, bool ok, struct err *err)
{
    const struct slide_entry *entry =
        dataset_slide(&slides->runner.trainer->dataset, slides->sample);
    if (!ok && err && err->kind != ERR_STOPPED && !strstr(err->text, entry->path))
        err_prefix(err, entry->path);
    return ok;
}

static const float *slides_forward(struct runner *runner, const struct batch *batch,
                                   const struct run_key *key, struct err *err)
{
    struct slides *slides = of(runner);
    (void)batch;
    if (!slides->image)
        return slides->nothing;
    return named(slides, run(slides, key, err), err)
               ? plan_output(slides->plan, trainer_output(runner->trainer, slides->sized))
               : NULL;
}

static float *slides_gradient(struct runner *runner)
{
    const struct slides *slides = of(runner);
    return plan_output_gradient(slides->plan, trainer_output(runner->trainer, slides->sized));
}

static bool slides_backward(struct runner *runner, bool last, struct err *err)
{
    (void)last; /* all gradients are complete with the last tile: there is nothing to hide behind */
    return named(of(runner), pass(of(runner), plan_backward, err), err);
}

/* --- what it did --- */

static void slides_record(const struct runner *runner, struct json_out *json)
{
    const struct largest *largest = &of_const(runner)->largest;
    const struct plan_streamed *streamed = &largest->streamed;
    if (largest->height == 0)
        return;
    json_out_object(json, "memory");
    json_out_object_line(json, "largest_slide");
    json_out_int(json, "width_px", largest->width);
    json_out_int(json, "height_px", largest->height);
    json_out_text(json, "how", largest->text);
    json_out_int(json, "tile_px", streamed->tile_px);
    json_out_int(json, "tiles", streamed->tiles_down * streamed->tiles_across);
    json_out_int(json, "strip_bytes", (int64_t)streamed->strip_bytes);
    json_out_int(json, "spilled_bytes", (int64_t)streamed->strips_spilled);
    json_out_close_object(json);
    json_out_int(json, "predicted_bytes", (int64_t)largest->chosen.predicted);
    json_out_int(json, "peak_bytes", (int64_t)room_peak());
    json_out_close_object(json);
}

static void slides_remark(const struct runner *runner)
{
    const struct largest *largest = &of_const(runner)->largest;
    if (largest->height > 0)
        console_note(runner->trainer->ctx->console,
                     "largest slide: %lld x %lld px: %s, measured peak %.0f MB",
                     (long long)largest->width, (long long)largest->height, largest->text,
                     (double)room_peak() / 1e6);
}

const struct runner_kind runner_slides = {
    .samples = "slides",
    .slow = true,
    .batch = slides_batch,
    .step_batches = slides_step_batches,
    .look = slides_look,
    .describe = slides_describe,
    .open = slides_open,
    .free = slides_free,
    .n_batches = slides_n_batches,
    .begin = slides_begin,
    .end = slides_end,
    .next = slides_next,
    .waited_s = slides_waited_s,
    .use = slides_use,
    .forward = slides_forward,
    .gradient = slides_gradient,
    .backward = slides_backward,
    .step = runner_step,
    .record = slides_record,
    .remark = slides_remark,
};
