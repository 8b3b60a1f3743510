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
    for (value_id v = 0; v < trainer->learnt->n_values; v++) {
        const struct value *value = &trainer->learnt->values[v];
        if (value->kind != VALUE_BUFFER)
            continue;
        size_t count = (size_t)shape_count(&value->shape);
        float *data = graph_data(trainer->learnt, v);
        memcpy(back ? data : place, back ? place : data, count * sizeof *data);
        place += count;
    }
}

/* What a step has found so far. */
struct found {
    struct trainer *trainer;
    double loss;
    char *bad; /* a sample whose outputs are not numbers, or NULL */
};

/* The first sample of the batch whose outputs are not numbers, for the message; NULL if there is
 * none. The caller's. */
static char *bad_sample(const struct trainer *trainer, const struct step_batch *now)
{
    int output = trainer_output(trainer, trainer->graph);
    const struct shape *shape = graph_shape(trainer->graph, trainer->graph->outputs[output].value);
    int64_t each = shape_count(shape) / shape->dim[0];
    for (int64_t i = 0; i < now->batch.n * each; i++)
        if (!isfinite(now->outputs[i]))
            return dataset_sample_name(&trainer->dataset,
                                       batch_int64(&now->batch, "sample")[i / each]);
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

/* The loss of a batch, and what is kept of it. */
static bool learn_from(void *arg, const struct step_batch *now, struct err *err)
{
    struct found *found = arg;
    struct trainer *trainer = found->trainer;
    const struct objective *objective = trainer->learning.objective;
    bool private = config_private(trainer->config); /* a batch is a unit: the mean of its copies */
    double loss = 0, images = (double)(private ? now->batch.n : trainer_step_images(trainer));
    struct comparison c = { .batch = &now->batch,
                            .outputs = now->outputs,
                            .divisor = images,
                            .gradient = now->gradient,
                            .epoch = (uint64_t)trainer->epoch };
    if (!objective->loss(&trainer->learning, &c, &loss, err))
        return false;
    if (private)
        return true; /* what was seen is not kept; a loss that is no number: see clip_factor */
    found->loss += loss;
    if (!isfinite(loss) && !found->bad)
        found->bad = bad_sample(trainer, now);
    struct comparison known = { .batch = &now->batch, .outputs = now->outputs };
    return !isfinite(loss) ||
           objective->keep(&trainer->learning, &known, loss * images, &trainer->seen, err);
}

/* All batches of a step. sums: the loss, and that of the finite batches over their samples. *bad
 * names a sample whose outputs are not numbers; the caller's. */
static bool learn_batches(struct trainer *trainer, double sums[2], char **bad, struct err *err)
{
    struct found found = { .trainer = trainer };
    double before = trainer->seen.loss_sum; /* of all ranks */
    trainer->seen.loss_sum = 0;
    bool ok = trainer->train->kind->step(trainer->train, trainer->step, learn_from, &found, err);
    sums[0] = found.loss;
    sums[1] = trainer->seen.loss_sum;
    *bad = found.bad;
    trainer->seen.loss_sum = before;
    return ok;
}

static bool update(struct trainer *trainer, double norm, struct err *err)
{
    double place =
        (double)trainer->epoch + (double)trainer->step / (double)trainer->steps_per_epoch;
    if (!trainer->sparse) /* else clipped before it was sent */
        optimizer_clip(trainer->gradients, trainer->n_gradients, norm, trainer->config->train.clip,
                       trainer->threads);
    optimizer_step(trainer->optimizer, trainer->gradients,
                   schedule_rate(&trainer->schedule, &trainer->judged, place));
    if (trainer->parts && !trainer_share_weights(trainer, trainer->gradients, err))
        return false;
    if (trainer->ema)
        ema_update(trainer->ema);
    return true;
}

bool trainer_step(struct trainer *trainer, struct err *err)
{
    double sums[2] = { 0 };
    int64_t seen = trainer->seen.n;
    double seen_loss = trainer->seen.loss_sum;
    char *bad = NULL;
    if (trainer->buffers)
        move_buffers(trainer, false);
    memset(trainer->gradients, 0, (size_t)trainer->n_gradients * sizeof *trainer->gradients);
    trainer_share_begin(trainer);
    bool ok = learn_batches(trainer, sums, &bad, err);
    ok = trainer_share_finish(trainer, ok, sums, err) && trainer_private_finish(trainer, err);
    if (!ok) { /* as before the step: one that was stopped is done again */
        trainer->seen.n = seen;
        trainer->seen.loss_sum = seen_loss;
        if (trainer->buffers)
            move_buffers(trainer, true);
    }
    if (ok) {
        double loss = sums[0], norm = loss;
        if (isfinite(loss))
            ok = trainer_norm(trainer, &norm, err);
        trainer->seen.loss_sum += sums[1];
        if (ok && isfinite(norm))
            ok = update(trainer, norm, err);
        else if (ok)
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
    struct runner *runner;
    int64_t batch;          /* samples */
    int ways;               /* to lay an image: 1, or the 8 of train.tta */
    double *means, *values; /* [batch, outputs], over the ways; [outputs], of one */
    float *outputs;         /* [batch, outputs], of the means */
};

/* Runs a batch. Its outputs are the evaluation's until the next one; NULL: failed. Over many ways
 * they are those of the mean prediction, as in predict --tta. */
static const float *evaluate_batch(struct trainer *trainer, struct evaluation *evaluation,
                                   const struct batch *batch, struct err *err)
{
    const struct learning *learning = &trainer->learning;
    int64_t count = evaluation->batch, each = learning->outputs;
    double *values = evaluation->values, *means = evaluation->means;
    memset(means, 0, (size_t)(count * each) * sizeof *means);
    for (int way = 0; way < evaluation->ways; way++) {
        struct run_key key = { .way = way };
        const float *outputs =
            evaluation->runner->kind->forward(evaluation->runner, batch, &key, err);
        if (!outputs || evaluation->ways == 1)
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

static bool run_batches(struct trainer *trainer, struct evaluation *evaluation,
                        struct predictions *out, struct err *err)
{
    struct learning *learning = &trainer->learning;
    for (int64_t i = 0; i < evaluation->runner->kind->n_batches(evaluation->runner); i++) {
        struct batch batch = { 0 };
        double loss = 0;
        struct comparison c = { .batch = &batch, .divisor = 1 };
        bool stop = ctx_stopped(trainer->ctx);
        bool ok = evaluation->runner->kind->next(evaluation->runner, &batch, err);
        if (trainer_divides(trainer) || trainer->heads) /* parts wait for each other in it */
            ok = trainer_agree(trainer, ok, err);
        c.outputs = ok ? evaluate_batch(trainer, evaluation, &batch, err) : NULL;
        ok = c.outputs && learning->objective->loss(learning, &c, &loss, err) &&
             learning->objective->keep(learning, &c, loss, out, err);
        trainer->torn = !ok && trainer->amid;
        if (trainer->torn || !ranks_agree(trainer->request->ranks, ok, &stop, err))
            return false;
        if (stop)
            return err_stopped(err);
        if (trainer->kind->slow)
            console_advance(trainer->ctx->console, batch.n * trainer->sample_ranks->size);
    }
    return ranks_sum_reals(trainer->sample_ranks, &out->loss_sum, 1, err);
}

static bool evaluation_new(const struct trainer *trainer, struct runner *runner, int ways,
                           struct evaluation *out, struct err *err)
{
    size_t each = (size_t)trainer->learning.outputs;
    int64_t batch = trainer->kind->batch(trainer->config);
    size_t n = (size_t)batch * each;
    *out = (struct evaluation){ .runner = runner,
                                .batch = batch,
                                .ways = ways,
                                .means = calloc(n, sizeof *out->means),
                                .values = calloc(each, sizeof *out->values),
                                .outputs = calloc(n, sizeof *out->outputs) };
    return (out->means && out->values && out->outputs) || err_memory(err, "an evaluation");
}

static void evaluation_free(struct evaluation *evaluation)
{
    free(evaluation->means);
    free(evaluation->values);
    free(evaluation->outputs);
}

/* Where one sample takes long, an evaluation is a piece of work of its own to the user. */
static void begin_progress(const struct trainer *trainer, const struct runner *runner)
{
    int64_t samples = dataset_count(&trainer->dataset, runner->side, NULL);
    if (trainer->kind->slow)
        console_begin(trainer->ctx->console, runner->side == DATA_TEST ? "testing" : "validation",
                      samples, trainer->kind->samples);
}

bool trainer_evaluate(struct trainer *trainer, struct runner *runner, bool tta,
                      struct predictions *out, struct err *err)
{
    const struct runner_kind *kind = runner->kind;
    struct graph *graph = NULL;
    struct evaluation evaluation = { 0 };
    struct predictions mine = { .outputs = trainer->learning.outputs };
    *out = (struct predictions){ .outputs = trainer->learning.outputs };
    if (trainer->ema)
        ema_swap(trainer->ema);
    bool ok = trainer_collect(trainer, err) &&
              transform_for_inference(trainer->graph, NULL, 0, &graph, err) &&
              evaluation_new(trainer, runner, tta ? MODEL_WAYS : 1, &evaluation, err) &&
              kind->use(runner, graph, PLAN_INFER, err) && kind->begin(runner, 0, 0, err);
    begin_progress(trainer, runner);
    ok = trainer_agree(trainer, ok, err) && run_batches(trainer, &evaluation, &mine, err) &&
         trainer_gather(trainer, &mine, out, err);
    kind->end(runner);
    if (kind->slow)
        console_end(trainer->ctx->console);
    if (trainer->ema)
        ema_swap(trainer->ema);
    kind->use(runner, NULL, PLAN_INFER, NULL);
    evaluation_free(&evaluation);
    graph_free(graph);
    predictions_free(&mine);
    return ok;
}
