/* runner.c: what kinds of runners share (runner.h). */
#include "base/console.h"
#include "train/trainer.h"

void runner_free(struct runner *runner)
{
    if (runner)
        runner->kind->free(runner);
}

uint64_t runner_first_sample(const struct runner *runner, int64_t number)
{
    const struct trainer *trainer = runner->trainer;
    const struct runner_kind *kind = runner->kind;
    uint64_t sequence =
        (uint64_t)((trainer->epoch * kind->n_batches(runner) + number) * trainer->data_ranks->size +
                   trainer->data_ranks->rank);
    return sequence * (uint64_t)kind->batch(trainer->config);
}

bool runner_coming_bytes(const struct trainer *trainer, const struct graph *graph, size_t *out,
                         struct err *err)
{
    const struct train_config *config = trainer->config;
    struct plan_options evaluation = { .mode = PLAN_INFER, .threads = trainer->threads };
    struct plan_estimate estimate;
    size_t copies = 3 + (config->train.ema > 0);
    trainer_space_peers(trainer, &evaluation);
    trainer_heads_peers(trainer, &evaluation);
    if (!plan_estimate(graph, &evaluation, &estimate, err))
        return false;
    *out = copies * (size_t)trainer->n_gradients * sizeof(float) + estimate.arena + estimate.plan +
           (2 * (size_t)config->data.window_mb << 20);
    return true;
}

/* Whether a rank waits for others within its passes: none may be late or leave alone. */
static bool is_coupled(const struct trainer *trainer)
{
    return trainer->peers.sum || trainer_divides(trainer) || trainer->heads;
}

/* Forward, loss and backward of one batch; its gradients are added to those that are there. */
static bool learn_batch(struct runner *runner, int64_t number, step_loss_fn loss, void *arg,
                        struct err *err)
{
    struct trainer *trainer = runner->trainer;
    const struct runner_kind *kind = runner->kind;
    struct step_batch now = { 0 };
    bool ok = kind->next(runner, &now.batch, err);
    if (is_coupled(trainer) || trainer->bands.size > 1)
        ok = trainer_agree(trainer, ok, err);
    if (!ok)
        return false;
    struct run_key key = { .first_sample = runner_first_sample(runner, number) };
    now.outputs = kind->forward(runner, &now.batch, &key, err);
    now.gradient = now.outputs ? kind->gradient(runner) : NULL;
    ok = now.outputs && loss(arg, &now, err) &&
         kind->backward(runner, (number + 1) % kind->step_batches(trainer->config) == 0, err);
    trainer->torn = !ok && (is_coupled(trainer) || trainer->amid);
    return ok;
}

bool runner_step(struct runner *runner, int64_t number, step_loss_fn loss, void *arg,
                 struct err *err)
{
    const struct trainer *trainer = runner->trainer;
    int64_t batches = runner->kind->step_batches(trainer->config);
    for (int64_t i = 0; i < batches; i++) {
        if (!learn_batch(runner, number * batches + i, loss, arg, err))
            return false;
        console_advance(trainer->ctx->console, trainer_step_images(trainer) / batches);
    }
    return true;
}
