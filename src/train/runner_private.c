/* runner_private.c: differentially private training on patches (runner.h). The units of a step are
 * drawn by Poisson sampling from the key; the gradient of each is clipped and added to the sum of
 * the step (clipped.h). Ranks take units in turn. The noise is added once, to the sum over all
 * ranks (trainer_private.c). A step finds its samples by itself: they depend on seed, key and step.
 *
 * Nothing that was seen is kept: no loss, no predictions. */
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "privacy/poisson.h"
#include "train/clipped.h"
#include "train/loader.h"
#include "train/trainer.h"
#include "train/private_units.h"

/* What is kept of the batch of a unit, beside the inputs of its network. */
struct kept_batch {
    struct batch batch;
    struct batch_room room;
};

struct private_runner {
    struct runner runner;
    struct private_units units;
    struct loader *loader; /* a batch is a unit */
    struct clipped *clipped;
    struct kept_batch *kept; /* [slots] */
    int slots;
    int64_t *drawn;           /* [units]: room for those of a step */
    struct order_item *items; /* of the step, on this rank */
    int64_t room_items;
};

static struct private_runner *of(struct runner *runner)
{
    return (struct private_runner *)runner;
}

static const struct private_runner *of_const(const struct runner *runner)
{
    return (const struct private_runner *)runner;
}

/* --- opening --- */

static bool new_loader(const struct trainer *trainer, struct loader **out, struct err *err)
{
    const struct train_config *config = trainer->config;
    struct loader_options options = {
        .dataset = &trainer->dataset,
        .side = DATA_TRAIN,
        .train = true,
        .batch = config->privacy.multiplicity,
        .input_px = trainer->learning.crop_px,
        .window_bytes = config->data.window_mb << 20,
        .workers = (int)config->data.workers,
        .seed = (uint64_t)config->seed,
        .augment = config->augment,
        .prepare = &trainer->prepare,
        .stain = &trainer->stain,
        .ranks = 1,
    };
    return loader_new(&options, out, err);
}

static void free_network(struct private_runner *r)
{
    clipped_free(r->clipped);
    for (int i = 0; r->kept && i < r->slots; i++)
        free(r->kept[i].room.data);
    free(r->kept);
    r->clipped = NULL, r->kept = NULL;
}

static void private_free(struct runner *runner)
{
    struct private_runner *r = of(runner);
    loader_free(r->loader);
    free_network(r);
    private_units_free(&r->units);
    free(r->drawn);
    free(r->items);
    free(r);
}

static bool private_open(struct trainer *trainer, enum data_side side, struct runner **out,
                         struct err *err)
{
    struct private_runner *r = calloc(1, sizeof *r);
    if (!r)
        return err_memory(err, "batches");
    r->runner = (struct runner){ &runner_private, trainer, side };
    bool ok = private_units_new(&trainer->dataset, (enum privacy_unit)trainer->config->privacy.unit,
                                &r->units, err) &&
              new_loader(trainer, &r->loader, err);
    if (ok && r->units.n > CIPHER_MOST_WORDS)
        ok = err_set(err, ERR_USAGE, "privacy: there are more units than can be sampled");
    r->drawn = ok ? calloc((size_t)r->units.n + 1, sizeof *r->drawn) : NULL;
    if (ok && !r->drawn)
        ok = err_memory(err, "the units of a private training");
    trainer->private.units = r->units.n;
    *out = &r->runner;
    if (!ok)
        private_free(&r->runner);
    return ok;
}

/* Batches of an epoch: those of all steps. */
static int64_t private_n_batches(const struct runner *runner)
{
    const struct trainer *trainer = runner->trainer;
    return of_const(runner)->units.n / trainer_step_images(trainer) *
           config_micro_batches(trainer->config);
}

static bool private_begin(struct runner *runner, uint64_t epoch, int64_t first, struct err *err)
{
    (void)runner, (void)epoch, (void)first, (void)err; /* each step finds its own samples */
    return true;
}

static void private_end(struct runner *runner)
{
    loader_end(of(runner)->loader);
}

static double private_waited_s(const struct runner *runner)
{
    return loader_waited_s(of_const(runner)->loader);
}

/* --- the network --- */

static bool private_use(struct runner *runner, const struct graph *graph, enum plan_mode mode,
                        struct err *err)
{
    struct private_runner *r = of(runner);
    const struct train_config *config = runner->trainer->config;
    struct clipped_options options = {
        .copies = config->privacy.multiplicity,
        .step_units = config->train.batch * config->train.accumulate,
        .clip = config->privacy.clip,
        .threads = runner->trainer->threads,
        .plan = { .mode = mode,
                  .norm_frozen = config->network.norm == NORM_FROZEN,
                  .saving = config_half(config)                        ? SAVING_HALF
                            : config->train.memory == MEMORY_RECOMPUTE ? SAVING_RECOMPUTE
                                                                       : SAVING_ALL,
                  .arena_budget = (size_t)config->train.memory_mb << 20 },
    };
    free_network(r);
    if (!graph)
        return true;
    if (!clipped_new(graph, &options, &r->clipped, err))
        return false;
    r->slots = clipped_slots(r->clipped);
    r->kept = calloc((size_t)r->slots, sizeof *r->kept);
    return r->kept || err_memory(err, "batches");
}

/* --- a step --- */

static bool room_for(struct private_runner *r, int64_t items, struct err *err)
{
    if (items <= r->room_items)
        return true;
    struct order_item *more = realloc(r->items, (size_t)items * sizeof *more);
    if (!more)
        return err_memory(err, "the units of a step");
    r->items = more, r->room_items = items;
    return true;
}

/* The items of this rank's units of a step. *n: units; r->drawn begins with them. */
static bool draw(struct private_runner *r, uint64_t step, int64_t *n, struct err *err)
{
    const struct trainer *trainer = r->runner.trainer;
    const struct ranks *ranks = trainer->data_ranks;
    int64_t copies = trainer->config->privacy.multiplicity, mine = 0;
    int64_t all = poisson_draw(&trainer->private.secret, CIPHER_SAMPLE, step,
                               trainer->private.cost.rate, r->units.n, r->drawn);
    for (int64_t i = ranks->rank; i < all; i += ranks->size)
        r->drawn[mine++] = r->drawn[i];
    if (!room_for(r, mine * copies, err))
        return false;
    for (int64_t i = 0; i < mine; i++)
        private_units_items(&r->units, r->drawn[i], (uint64_t)trainer->config->seed, step, copies,
                            r->items + i * copies);
    *n = mine;
    return true;
}

/* The next unit into a slot: its tensors to the inputs of the network, the others are kept. */
static bool fill(struct private_runner *r, int slot, uint64_t first_sample, struct err *err)
{
    struct trainer *trainer = r->runner.trainer;
    struct learning *learning = &trainer->learning;
    struct batch batch = { 0 };
    if (!loader_next(r->loader, &batch, err) ||
        (learning->objective->prepare &&
         !learning->objective->prepare(learning, &batch, true, (uint64_t)trainer_steps(trainer),
                                       err)))
        return false;
    for (const struct objective_feed *feed = learning->objective->feeds; feed->tensor; feed++) {
        const struct batch_item *item = batch_find(&batch, feed->tensor);
        if (!item) /* optional */
            continue;
        int input = trainer_input(clipped_graph(r->clipped), feed->port);
        memcpy(clipped_input(r->clipped, slot, input), item->data,
               (size_t)shape_count(&item->shape) * sizeof(float));
    }
    clipped_set_random(r->clipped, slot, (uint64_t)trainer->config->seed, first_sample);
    return batch_copy(&batch, "image", &r->kept[slot].room, &r->kept[slot].batch, err);
}

/* Units first, first + 1, .. of the step, one in each slot: their clipped gradients are added to
 * those of the step. */
static bool learn_units(struct private_runner *r, uint64_t step, int64_t first, int n,
                        step_loss_fn loss, void *arg, struct err *err)
{
    struct trainer *trainer = r->runner.trainer;
    int output = trainer_output(trainer, clipped_graph(r->clipped));
    bool ok = true;
    for (int i = 0; ok && i < n; i++) {
        uint64_t number = step * (uint64_t)r->units.n + (uint64_t)r->drawn[first + i];
        ok = fill(r, i, number * (uint64_t)trainer->config->privacy.multiplicity, err);
    }
    ok = ok && clipped_forward(r->clipped, n, err);
    for (int i = 0; ok && i < n; i++) { /* objectives are used by one thread */
        struct step_batch now = { r->kept[i].batch, clipped_output(r->clipped, i, output),
                                  clipped_output_gradient(r->clipped, i, output) };
        ok = loss(arg, &now, err);
    }
    return ok && clipped_backward(r->clipped, n, trainer->gradients, NULL, err);
}

static bool private_step(struct runner *runner, int64_t number, step_loss_fn loss, void *arg,
                         struct err *err)
{
    struct private_runner *r = of(runner);
    struct trainer *trainer = runner->trainer;
    uint64_t step = (uint64_t)trainer_steps(trainer);
    int64_t n = 0, copies = trainer->config->privacy.multiplicity;
    (void)number;
    bool ok = clipped_refresh(r->clipped, err) && draw(r, step, &n, err) &&
              (n == 0 || loader_begin_items(r->loader, step, r->items, n * copies, err));
    for (int64_t i = 0; ok && i < n; i += r->slots) {
        if (ctx_stopped(trainer->ctx)) /* the step is done again when the training goes on */
            ok = err_stopped(err);
        int many = n - i < r->slots ? (int)(n - i) : r->slots;
        ok = ok && learn_units(r, step, i, many, loss, arg, err);
    }
    loader_end(r->loader);
    console_advance(trainer->ctx->console, trainer_step_images(trainer));
    return ok;
}

const struct runner_kind runner_private = {
    .samples = "patches",
    .batch = config_micro_batch,
    .step_batches = config_micro_batches,
    .open = private_open,
    .free = private_free,
    .n_batches = private_n_batches,
    .begin = private_begin,
    .end = private_end,
    .waited_s = private_waited_s,
    .use = private_use,
    .step = private_step,
};
