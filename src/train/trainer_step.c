/* trainer_step.c: one step of training, and an evaluation on another side (trainer.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "net/model/model.h"
#include "train/trainer.h"

/* --- a step --- */

/* Copies the graph's buffers (batch norm's statistics) out or back. */
static void move_buffers(struct trainer *trainer, bool back)
{
    float *place = trainer->buffers;
    for (value_id v = 0; v < trainer->graph->n_values; v++) {
        const struct value *value = &trainer->graph->values[v];
        if (value->kind != VALUE_BUFFER)
            continue;
        size_t count = (size_t)shape_count(&value->shape);
        float *data = graph_data(trainer->graph, v);
        memcpy(back ? data : place, back ? place : data, count * sizeof *data);
        place += count;
    }
}

/* Forward, loss and backward of one batch; its gradients are added to those that are there. */
static bool learn_batch(struct trainer *trainer, int64_t number, struct batch *batch, double *loss,
                        struct err *err)
{
    const struct train_config *config = trainer->config;
    int64_t size = config->train.batch, ranks = trainer->data_ranks->size;
    int output = trainer_output(trainer, trainer->graph);
    struct comparison c = { .batch = batch,
                            .divisor = (double)(size * config->train.accumulate * ranks),
                            .epoch = (uint64_t)trainer->epoch };
    bool ok = loader_next(trainer->train_loader, batch, err);
    if (trainer->peers.sum) /* ranks wait for each other within the passes */
        ok = trainer_agree(trainer, ok, err);
    if (!ok)
        return false;
    uint64_t sequence =
        (uint64_t)((trainer->epoch * loader_n_batches(trainer->train_loader) + number) * ranks +
                   trainer->data_ranks->rank);
    plan_set_random(trainer->plan, (uint64_t)config->seed, sequence * (uint64_t)size);
    if (trainer->mix_shares)
        trainer_mix(trainer, batch);
    trainer_feed(trainer, batch, trainer->graph, 0, trainer->plan);
    ok = plan_forward(trainer->plan, err);
    c.outputs = plan_output(trainer->plan, output);
    c.gradient = plan_output_gradient(trainer->plan, output);
    ok = ok && trainer->learning.objective->loss(&trainer->learning, &c, loss, err) &&
         trainer_share_backward(trainer, (number + 1) % config->train.accumulate == 0, err);
    trainer->torn = !ok && trainer->peers.sum;
    return ok;
}

/* The first sample of the batch whose outputs are not numbers, for the message; NULL if there is
 * none. The caller's. */
static char *bad_sample(const struct trainer *trainer, const struct batch *batch)
{
    int output = trainer_output(trainer, trainer->graph);
    const float *outputs = plan_output(trainer->plan, output);
    const struct shape *shape = graph_shape(trainer->graph, trainer->graph->outputs[output].value);
    int64_t each = shape_count(shape) / shape->dim[0];
    for (int64_t i = 0; i < batch->n * each; i++)
        if (!isfinite(outputs[i]))
            return dataset_sample_name(&trainer->dataset, batch_int64(batch, "sample")[i / each]);
    return NULL;
}

/* sample: of this rank, or NULL. */
static bool not_a_number(struct trainer *trainer, const char *sample, double loss, struct err *err)
{
    char text[700];
    struct err named = { 0 }; /* carries the name from the rank that has it to all */
    if (sample)
        err_set(&named, ERR_FORMAT, "%.500s", sample);
    sample = ranks_agree(trainer->request->ranks, !sample, NULL, &named) ? NULL : named.text;
    trainer->request->ranks->failed = trainer->config->train.on_nan == NAN_STOP;
    snprintf(text, sizeof text, "epoch %lld, step %lld: %s is not a number%s%.500s",
             (long long)trainer->epoch + 1, (long long)trainer->step + 1,
             isfinite(loss) ? "the gradient" : "the loss", sample ? ", first at " : "",
             sample ? sample : "");
    if (trainer->config->train.on_nan == NAN_STOP)
        return err_set(err, ERR_FORMAT,
                       "%s; lower schedule.learning_rate, set train.clip, or train.on_nan: skip",
                       text);
    console_warn(trainer->ctx->console, "%s; step skipped", text);
    trainer->skipped++;
    move_buffers(trainer, true);
    return true;
}

/* All batches of a step. sums: the loss, and that of the finite batches over their samples. *bad
 * names a sample whose outputs are not numbers; the caller's. */
static bool learn_batches(struct trainer *trainer, double sums[2], char **bad, struct err *err)
{
    int64_t accumulate = trainer->config->train.accumulate;
    double scale =
        (double)(trainer->config->train.batch * accumulate) * (double)trainer->data_ranks->size;
    double before = trainer->seen.loss_sum; /* of all ranks */
    int output = trainer_output(trainer, trainer->graph);
    trainer->seen.loss_sum = 0;
    for (int64_t i = 0; i < accumulate; i++) {
        double part = 0;
        struct batch batch = { 0 };
        if (!learn_batch(trainer, trainer->step * accumulate + i, &batch, &part, err))
            return false;
        sums[0] += part;
        if (!isfinite(part) && !*bad)
            *bad = bad_sample(trainer, &batch);
        struct comparison c = { .batch = &batch, .outputs = plan_output(trainer->plan, output) };
        if (isfinite(part) && !trainer->learning.objective->keep(&trainer->learning, &c,
                                                                 part * scale, &trainer->seen, err))
            return false;
    }
    sums[1] = trainer->seen.loss_sum;
    trainer->seen.loss_sum = before;
    return true;
}

static bool update(struct trainer *trainer, float *gradients, int64_t count, double norm,
                   struct err *err)
{
    double place =
        (double)trainer->epoch + (double)trainer->step / (double)trainer->steps_per_epoch;
    if (!trainer->sparse) /* else clipped before it was sent */
        optimizer_clip(gradients, count, norm, trainer->config->train.clip, trainer->threads);
    optimizer_step(trainer->optimizer, gradients,
                   schedule_rate(&trainer->schedule, &trainer->judged, place));
    if (trainer->parts && !trainer_share_weights(trainer, gradients, err))
        return false;
    if (trainer->ema)
        ema_update(trainer->ema);
    return true;
}

bool trainer_step(struct trainer *trainer, struct err *err)
{
    int64_t count = 0;
    double sums[2] = { 0 };
    char *bad = NULL;
    if (trainer->buffers)
        move_buffers(trainer, false);
    plan_zero_gradients(trainer->plan);
    float *gradients = plan_gradients(trainer->plan, &count);
    trainer_share_begin(trainer);
    bool ok = learn_batches(trainer, sums, &bad, err);
    ok = trainer_share_finish(trainer, ok, sums, err);
    if (ok) {
        double loss = sums[0];
        double norm = isfinite(loss) ? optimizer_norm(gradients, count, trainer->threads) : loss;
        trainer->seen.loss_sum += sums[1];
        if (isfinite(norm))
            ok = update(trainer, gradients, count, norm, err);
        else
            ok = not_a_number(trainer, bad, loss, err);
        trainer->step++;
        trainer->images += trainer_step_images(trainer);
    }
    free(bad);
    return ok;
}

/* --- evaluation --- */

/* What an evaluation works with. */
struct evaluation {
    const struct graph *graph;
    struct plan *plan;
    int ways;               /* to lay a patch: 1, or the 8 of train.tta */
    double *means, *values; /* [batch, outputs], over the ways; [outputs], of one */
    float *outputs;         /* [batch, outputs], of the means */
};

/* Runs a batch. Its outputs are the evaluation's until the next one; NULL: failed. Over many ways
 * they are those of the mean prediction, as in predict --tta. */
static const float *evaluate_batch(struct trainer *trainer, struct evaluation *evaluation,
                                   const struct batch *batch, struct err *err)
{
    const struct learning *learning = &trainer->learning;
    int64_t count = trainer->config->train.batch, each = learning->outputs;
    int output = trainer_output(trainer, evaluation->graph);
    double *values = evaluation->values, *means = evaluation->means;
    memset(means, 0, (size_t)(count * each) * sizeof *means);
    for (int way = 0; way < evaluation->ways; way++) {
        trainer_feed(trainer, batch, evaluation->graph, way, evaluation->plan);
        if (!plan_forward(evaluation->plan, err))
            return NULL;
        const float *outputs = plan_output(evaluation->plan, output);
        if (evaluation->ways == 1)
            return outputs;
        for (int64_t i = 0; i < count * each; i++) {
            if (i % each == 0)
                learning->objective->predict(learning, outputs + i, values);
            means[i] += values[i % each] / evaluation->ways;
        }
    }
    for (int64_t i = 0; i < count; i++)
        learning->objective->restore(learning, means + i * each, evaluation->outputs + i * each);
    return evaluation->outputs;
}

static bool run_batches(struct trainer *trainer, struct loader *loader,
                        struct evaluation *evaluation, struct predictions *out, struct err *err)
{
    struct learning *learning = &trainer->learning;
    for (int64_t i = 0; i < loader_n_batches(loader); i++) {
        struct batch batch;
        double loss = 0;
        struct comparison c = { .batch = &batch, .divisor = 1 };
        bool stop = ctx_stopped(trainer->ctx), ok = loader_next(loader, &batch, err);
        c.outputs = ok ? evaluate_batch(trainer, evaluation, &batch, err) : NULL;
        ok = c.outputs && learning->objective->loss(learning, &c, &loss, err) &&
             learning->objective->keep(learning, &c, loss, out, err);
        if (!ranks_agree(trainer->request->ranks, ok, &stop, err))
            return false;
        if (stop)
            return err_stopped(err);
    }
    return ranks_sum_reals(trainer->data_ranks, &out->loss_sum, 1, err);
}

static bool evaluation_new(struct trainer *trainer, int ways, const struct graph *graph,
                           struct evaluation *out, struct err *err)
{
    struct plan_options options = { .mode = PLAN_INFER, .threads = trainer->threads };
    size_t each = (size_t)trainer->learning.outputs;
    size_t n = (size_t)trainer->config->train.batch * each;
    *out = (struct evaluation){ .graph = graph,
                                .ways = ways,
                                .means = calloc(n, sizeof *out->means),
                                .values = calloc(each, sizeof *out->values),
                                .outputs = calloc(n, sizeof *out->outputs) };
    if (!out->means || !out->values || !out->outputs)
        return err_memory(err, "an evaluation");
    return plan_new(graph, &options, &out->plan, err);
}

static void evaluation_free(struct evaluation *evaluation)
{
    plan_free(evaluation->plan);
    free(evaluation->means);
    free(evaluation->values);
    free(evaluation->outputs);
}

bool trainer_evaluate(struct trainer *trainer, struct loader *loader, bool tta,
                      struct predictions *out, struct err *err)
{
    struct graph *graph = NULL;
    struct evaluation evaluation = { 0 };
    struct predictions mine = { .outputs = trainer->learning.outputs };
    *out = (struct predictions){ .outputs = trainer->learning.outputs };
    if (trainer->ema)
        ema_swap(trainer->ema);
    bool ok = transform_for_inference(trainer->graph, NULL, 0, &graph, err) &&
              evaluation_new(trainer, tta ? MODEL_WAYS : 1, graph, &evaluation, err) &&
              loader_begin(loader, 0, 0, err);
    ok = trainer_agree(trainer, ok, err) && run_batches(trainer, loader, &evaluation, &mine, err) &&
         trainer_gather(trainer, &mine, out, err);
    loader_end(loader);
    if (trainer->ema)
        ema_swap(trainer->ema);
    evaluation_free(&evaluation);
    graph_free(graph);
    predictions_free(&mine);
    return ok;
}
