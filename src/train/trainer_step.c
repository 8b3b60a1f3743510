/* trainer_step.c: one step of training, and an evaluation on another side (trainer.h). */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "train/loss.h"
#include "net/model/model.h"
#include "train/mix.h"
#include "train/trainer.h"

void predictions_free(struct predictions *predictions)
{
    free(predictions->scores);
    free(predictions->labels);
    free(predictions->samples);
    *predictions = (struct predictions){ 0 };
}

static bool make_room(struct predictions *to, int64_t n)
{
    if (to->n + n <= to->room)
        return true;
    int64_t room = 2 * (to->n + n);
    float *scores = realloc(to->scores, (size_t)room * (size_t)to->classes * sizeof *scores);
    to->scores = scores ? scores : to->scores;
    int32_t *labels = realloc(to->labels, (size_t)room * sizeof *labels);
    to->labels = labels ? labels : to->labels;
    int64_t *samples = realloc(to->samples, (size_t)room * sizeof *samples);
    to->samples = samples ? samples : to->samples;
    to->room = scores && labels && samples ? room : to->room;
    return scores && labels && samples;
}

static bool predictions_add(struct predictions *to, const float *logits, const int32_t *labels,
                            const int64_t *samples, int64_t n, double loss_sum, struct err *err)
{
    double *scores = calloc((size_t)to->classes, sizeof *scores);
    if (!scores || !make_room(to, n)) {
        free(scores);
        return err_memory(err, "predictions");
    }
    for (int64_t i = 0; i < n; i++) {
        model_scores(logits + i * to->classes, to->classes, scores);
        for (int64_t c = 0; c < to->classes; c++)
            to->scores[(to->n + i) * to->classes + c] = (float)scores[c];
        to->labels[to->n + i] = labels[i];
        to->samples[to->n + i] = samples ? samples[i] : -1;
    }
    free(scores);
    to->n += n;
    to->loss_sum += loss_sum;
    return true;
}

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

/* The loss of a batch whose logits the network gave, and its gradient if not NULL. */
static bool batch_loss(struct trainer *trainer, const float *logits,
                       const struct loss_classes *spec, const struct batch *batch, double *loss,
                       float *gradient, struct err *err)
{
    uint64_t epoch = gradient ? (uint64_t)trainer->epoch : 0; /* evaluation: always the same */
    if (!trainer->distill)
        return loss_softmax(spec, logits, batch->labels, loss, gradient, err);
    return distill_compare(trainer->distill, batch, epoch, logits, spec->divisor, loss, gradient,
                           err);
}

/* Keeps what was predicted in the batch, or with a teacher in all windows compared. loss_sum: over
 * its samples. */
static bool keep_predictions(struct trainer *trainer, const float *logits,
                             const struct batch *batch, double loss_sum, struct predictions *to,
                             struct err *err)
{
    const struct distill *distill = trainer->distill;
    if (!distill)
        return predictions_add(to, logits, batch->labels, batch->samples, batch->n, loss_sum, err);
    int64_t windows = distill_windows(distill);
    return predictions_add(to, distill_logits(distill), distill_labels(distill),
                           distill_samples(distill), batch->n * windows, loss_sum * (double)windows,
                           err);
}

static void fill_input(struct trainer *trainer, const struct batch *batch)
{
    const struct train_config *config = trainer->config;
    const struct shape *shape = graph_shape(trainer->graph, trainer->graph->inputs[0].value);
    int64_t n = shape_count(shape), count = config->train.batch;
    struct augment_key key = { .seed = (uint64_t)config->seed, .epoch = (uint64_t)trainer->epoch };
    float *input = plan_input(trainer->plan, 0);
    if (trainer->mix_shares)
        mix_batch(batch, count, n / count, config->train.mixup, key, trainer->mix_shares,
                  trainer->mix_others, input);
    else
        memcpy(input, batch->pixels, (size_t)n * sizeof *input);
}

/* Forward, loss and backward of one batch; its gradients are added to those that are there. */
static bool learn_batch(struct trainer *trainer, int64_t number, struct batch *batch, double *loss,
                        struct err *err)
{
    const struct train_config *config = trainer->config;
    int64_t size = config->train.batch, ranks = trainer->request->ranks->size;
    struct loss_classes spec = { .count = size,
                                 .classes = trainer->dataset.n_classes,
                                 .places = 1,
                                 .weights = trainer->class_weights,
                                 .divisor = (double)(size * config->train.accumulate * ranks),
                                 .smoothing = (float)config->train.smoothing,
                                 .shares = trainer->mix_shares,
                                 .others = trainer->mix_others };
    bool ok = loader_next(trainer->train_loader, batch, err);
    if (trainer->peers.sum) /* ranks wait for each other within the passes */
        ok = trainer_agree(trainer, ok, err);
    if (!ok)
        return false;
    uint64_t sequence =
        (uint64_t)((trainer->epoch * loader_n_batches(trainer->train_loader) + number) * ranks +
                   trainer->request->ranks->rank);
    plan_set_random(trainer->plan, (uint64_t)config->seed, sequence * (uint64_t)size);
    fill_input(trainer, batch);
    ok = plan_forward(trainer->plan, err) &&
         batch_loss(trainer, plan_output(trainer->plan, 0), &spec, batch, loss,
                    plan_output_gradient(trainer->plan, 0), err) &&
         trainer_share_backward(trainer, (number + 1) % config->train.accumulate == 0, err);
    trainer->torn = !ok && trainer->peers.sum;
    return ok;
}

/* The first sample of the batch whose logits are not numbers, for the message; NULL if there is
 * none. The caller's. */
static char *bad_sample(const struct trainer *trainer, const struct batch *batch)
{
    const float *logits = plan_output(trainer->plan, 0);
    const struct shape *shape = graph_shape(trainer->graph, trainer->graph->outputs[0].value);
    int64_t each = shape_count(shape) / shape->dim[0];
    for (int64_t i = 0; i < batch->n * each; i++)
        if (!isfinite(logits[i]))
            return dataset_sample_name(&trainer->dataset, batch->samples[i / each]);
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
 * names a sample whose logits are not numbers; the caller's. */
static bool learn_batches(struct trainer *trainer, double sums[2], char **bad, struct err *err)
{
    int64_t accumulate = trainer->config->train.accumulate;
    double scale =
        (double)(trainer->config->train.batch * accumulate) * (double)trainer->request->ranks->size;
    double before = trainer->seen.loss_sum; /* of all ranks */
    trainer->seen.loss_sum = 0;
    for (int64_t i = 0; i < accumulate; i++) {
        double part = 0;
        struct batch batch = { 0 };
        if (!learn_batch(trainer, trainer->step * accumulate + i, &batch, &part, err))
            return false;
        sums[0] += part;
        if (!isfinite(part) && !*bad)
            *bad = bad_sample(trainer, &batch);
        if (isfinite(part) && !keep_predictions(trainer, plan_output(trainer->plan, 0), &batch,
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
    struct plan *plan;
    int ways;               /* to lay a patch: 1, or the 8 of train.tta */
    double *means, *scores; /* [batch, classes], over the ways; [classes], of one */
    float *logits;          /* [batch, classes], of the means */
};

/* Runs a batch. Its logits are the evaluation's until the next one; NULL: failed. Over many ways
 * they are the logarithm of the mean score, whose softmax is that mean, as in predict --tta. */
static const float *evaluate_batch(struct trainer *trainer, struct evaluation *evaluation,
                                   const struct batch *batch, struct err *err)
{
    int64_t count = trainer->config->train.batch, classes = trainer->dataset.n_classes;
    int64_t n = count * classes;
    double *scores = evaluation->scores;
    memset(evaluation->means, 0, (size_t)n * sizeof *evaluation->means);
    for (int way = 0; way < evaluation->ways; way++) {
        model_lay(batch->pixels, 3 * count, trainer->crop_px, way, plan_input(evaluation->plan, 0));
        if (!plan_forward(evaluation->plan, err))
            return NULL;
        const float *logits = plan_output(evaluation->plan, 0);
        if (evaluation->ways == 1)
            return logits;
        for (int64_t i = 0; i < n; i++) {
            if (i % classes == 0)
                model_scores(logits + i, classes, scores);
            evaluation->means[i] += scores[i % classes] / evaluation->ways;
        }
    }
    for (int64_t i = 0; i < n; i++)
        evaluation->logits[i] =
            (float)log(evaluation->means[i] > DBL_MIN ? evaluation->means[i] : DBL_MIN);
    return evaluation->logits;
}

static bool run_batches(struct trainer *trainer, struct loader *loader,
                        struct evaluation *evaluation, struct predictions *out, struct err *err)
{
    struct loss_classes spec = { .count = trainer->config->train.batch,
                                 .classes = trainer->dataset.n_classes,
                                 .places = 1,
                                 .divisor = 1 };
    for (int64_t i = 0; i < loader_n_batches(loader); i++) {
        struct batch batch;
        double loss = 0;
        bool stop = ctx_stopped(trainer->ctx), ok = loader_next(loader, &batch, err);
        const float *logits = ok ? evaluate_batch(trainer, evaluation, &batch, err) : NULL;
        ok = logits && batch_loss(trainer, logits, &spec, &batch, &loss, NULL, err) &&
             keep_predictions(trainer, logits, &batch, loss, out, err);
        if (!ranks_agree(trainer->request->ranks, ok, &stop, err))
            return false;
        if (stop)
            return err_stopped(err);
    }
    return ranks_sum_reals(trainer->request->ranks, &out->loss_sum, 1, err);
}

static bool evaluation_new(struct trainer *trainer, int ways, struct graph *graph,
                           struct evaluation *out, struct err *err)
{
    struct plan_options options = { .mode = PLAN_INFER, .threads = trainer->threads };
    size_t classes = (size_t)trainer->dataset.n_classes,
           n = (size_t)trainer->config->train.batch * classes;
    *out = (struct evaluation){ .ways = ways,
                                .means = calloc(n, sizeof *out->means),
                                .scores = calloc(classes, sizeof *out->scores),
                                .logits = calloc(n, sizeof *out->logits) };
    if (!out->means || !out->scores || !out->logits)
        return err_memory(err, "an evaluation");
    return plan_new(graph, &options, &out->plan, err);
}

static void evaluation_free(struct evaluation *evaluation)
{
    plan_free(evaluation->plan);
    free(evaluation->means);
    free(evaluation->scores);
    free(evaluation->logits);
}

bool trainer_evaluate(struct trainer *trainer, struct loader *loader, bool tta,
                      struct predictions *out, struct err *err)
{
    struct graph *graph = NULL;
    struct evaluation evaluation = { 0 };
    struct predictions mine = { .classes = trainer->dataset.n_classes };
    *out = (struct predictions){ .classes = trainer->dataset.n_classes };
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
