/* trainer_compress.c: gradient compression in the trainer (trainer.h): how much is sent, and what
 * each rank keeps, in a separate file next to the checkpoint: step-N.rank-R.safetensors. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#include "train/checkpoint.h"
#include "train/trainer_state.h"
#include "base/text.h"

bool trainer_compresses(const struct trainer *trainer)
{
    return trainer->config->ranks.compress && trainer->data_ranks->size > 1;
}

bool trainer_compress_new(struct trainer *trainer, const int64_t *at, const bool *whole, int64_t n,
                          struct err *err)
{
    const struct optimizer_options *options = &trainer->config->optimizer;
    if (!trainer_compresses(trainer))
        return true;
    if (options->kind != OPTIMIZER_SGD || options->nesterov)
        return err_set(err, ERR_USAGE,
                       "ranks.compress works only with optimizer.name: sgd without nesterov, "
                       "because it applies the momentum itself");
    return sparse_new(at, whole, n, options->momentum, &trainer->sparse, err);
}

/* The share falls by equal factors in every epoch of the warm-up: 0.25, 0.063, 0.016, 0.004, 0.001
 * for 0.001 after 4. */
static double share(const struct trainer *trainer)
{
    double last = trainer->config->ranks.compress_keep;
    double warmup = (double)trainer->config->ranks.compress_warmup;
    double epoch = (double)trainer->epoch;
    return epoch < warmup ? pow(last, (epoch + 1) / (warmup + 1)) : last;
}

bool trainer_compress_sum(struct trainer *trainer, bool ok, double sums[2], struct err *err)
{
    struct ranks *ranks = trainer->data_ranks;
    int64_t count = trainer->n_gradients, bad = 0;
    float *gradients = trainer->gradients;
    double norm = optimizer_norm(gradients, count, trainer->threads);
    bad = !ok || !isfinite(norm) || !isfinite(sums[0]);
    if (!ranks_finish(ranks, RANKS_ALL, err) || !ranks_sum_reals(ranks, sums, 2, err) ||
        !ranks_most(ranks, &bad, 1, err))
        return false;
    if (bad) { /* nothing of it may stay in the rest */
        gradients[0] = NAN;
        return true;
    }
    optimizer_clip(gradients, count, norm, trainer->config->train.clip / sqrt(ranks->size),
                   trainer->threads);
    return sparse_sum(trainer->sparse, ranks, gradients, share(trainer), err);
}

static char *rank_path(const struct trainer *trainer, int64_t step, int rank)
{
    return text_format("%s/checkpoints/step-%010lld.rank-%d.safetensors", trainer->request->folder,
                       (long long)step, rank);
}

bool trainer_compress_save(const struct trainer *trainer, struct err *err)
{
    struct state_array arrays[] = { { .name = "velocity" }, { .name = "rest" } };
    if (!trainer->sparse)
        return true;
    arrays[0].data = sparse_velocity(trainer->sparse, &arrays[0].count);
    arrays[1].data = sparse_rest(trainer->sparse, &arrays[1].count);
    char *path = rank_path(trainer, trainer_steps(trainer), trainer->request->ranks->rank);
    bool ok = path ? checkpoint_write(path, arrays, 2, "{}", err) : err_memory(err, "a checkpoint");
    free(path);
    return trainer_agree(trainer, ok, err);
}

bool trainer_compress_load(const struct trainer *trainer, bool same_ranks, struct err *err)
{
    struct state_array arrays[] = { { .name = "velocity" }, { .name = "rest" } };
    struct checkpoint checkpoint = { 0 };
    if (!trainer->sparse || !same_ranks)
        return true;
    arrays[0].data = sparse_velocity(trainer->sparse, &arrays[0].count);
    arrays[1].data = sparse_rest(trainer->sparse, &arrays[1].count);
    char *path = rank_path(trainer, trainer_steps(trainer), trainer->request->ranks->rank);
    bool ok = path ? checkpoint_open(path, &checkpoint, err) : err_memory(err, "a checkpoint");
    ok = ok && checkpoint_load(&checkpoint, arrays, 2, err);
    checkpoint_close(&checkpoint);
    free(path);
    return trainer_agree(trainer, ok, err);
}

void trainer_compress_remove(const struct trainer *trainer, int64_t step)
{
    bool there = true;
    for (int rank = 0; there; rank++) {
        char *path = rank_path(trainer, step, rank);
        there = path && unlink(path) == 0;
        free(path);
    }
}
