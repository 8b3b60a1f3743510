/* trainer.c: sets up a training and runs its epochs (train.h). */
#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/file.h"
#include "base/pool.h"
#include "base/console.h"
#include "net/model/weights.h"
#include "net/zoo/zoo.h"
#include "base/clock.h"

/* --- setting up --- */

static bool start_weights(struct trainer *trainer, struct err *err)
{
    const struct train_config *config = trainer->config;
    if (!graph_initialize(trainer->graph, (uint64_t)config->seed, err))
        return false;
    if (!config->network.weights[0])
        return true;
    struct weights_options options = { .fresh = (const char *const *)config->network.fresh.items,
                                       .n_fresh = config->network.fresh.n,
                                       .any_unexpected = true };
    struct weights_report report = { 0 };
    bool ok = weights_read(trainer->graph, config->network.weights, &options, &report, err);
    if (ok)
        console_note(trainer->ctx->console, "%s: %zu parameters loaded, %zu start from scratch",
                     config->network.weights, report.n_loaded, report.fresh.n);
    weights_report_free(&report);
    return ok;
}

static bool name_a_size(const struct train_config *config, const struct zoo_options *options,
                        struct err *err)
{
    int64_t px = zoo_larger_px(config->network.name, options);
    char setting[80] = "network.input_px";
    if (px > 0)
        snprintf(setting, sizeof setting, "network.input_px: %lld is too small (%lld fits)",
                 (long long)config->network.input_px, (long long)px);
    return err_prefix(err, setting);
}

static bool build_network(struct trainer *trainer, struct err *err)
{
    const struct train_config *config = trainer->config;
    int64_t classes = trainer->dataset.n_classes;
    struct graph *graph = NULL;
    struct zoo_options options = { .batch = config->train.batch,
                                   .height = config->network.input_px,
                                   .width = config->network.input_px,
                                   .classes = classes };
    if (config->distill.teacher[0])
        return distill_new(config, trainer->crop_px, trainer->threads, &trainer->distill,
                           &trainer->graph, err) &&
               distill_check_data(trainer->distill, &trainer->dataset, trainer->patch_px, err);
    const struct zoo_network *network = zoo_find(config->network.name, err);
    if (!network)
        return err_prefix(err, "network.name");
    if (!zoo_build(config->network.name, &options, &graph, err))
        return name_a_size(config, &options, err);
    const struct shape *logits = graph_shape(graph, graph->outputs[0].value);
    bool ok = network->input == ZOO_IMAGE && logits->rank == 2 && logits->dim[1] == classes;
    if (!ok)
        err_set(err, ERR_USAGE, "network.name: %s is not an image classifier",
                config->network.name);
    if (ok && config->network.padding != PADDING_ZERO)
        ok = transform_padding(graph, (enum padding)config->network.padding, &trainer->graph, err);
    else if (ok)
        trainer->graph = graph, graph = NULL;
    graph_free(graph);
    return ok && start_weights(trainer, err);
}

const struct graph *trainer_model(const struct trainer *trainer)
{
    return trainer->distill ? distill_model(trainer->distill) : trainer->graph;
}

static bool new_buffers(struct trainer *trainer, struct err *err)
{
    size_t count = 1;
    for (value_id v = 0; v < trainer->graph->n_values; v++)
        if (trainer->graph->values[v].kind == VALUE_BUFFER)
            count += (size_t)shape_count(&trainer->graph->values[v].shape);
    if (trainer->config->train.on_nan == NAN_SKIP)
        trainer->buffers = calloc(count, sizeof *trainer->buffers);
    return trainer->buffers || trainer->config->train.on_nan != NAN_SKIP ||
           err_memory(err, "batch norm's statistics");
}

static bool new_mix(struct trainer *trainer, struct err *err)
{
    size_t batch = (size_t)trainer->config->train.batch;
    if (trainer->config->train.mixup <= 0)
        return true;
    if (trainer->config->distill.teacher[0])
        return err_set(err, ERR_USAGE, "train.mixup: distillation uses no labels to mix; omit it");
    trainer->mix_shares = calloc(batch, sizeof *trainer->mix_shares);
    trainer->mix_others = calloc(batch, sizeof *trainer->mix_others);
    return (trainer->mix_shares && trainer->mix_others) || err_memory(err, "mixed patches");
}

static bool new_optimizer(struct trainer *trainer, struct err *err)
{
    struct optimizer_options options = trainer->config->optimizer;
    options.threads = trainer->threads;
    if (trainer_compresses(trainer))
        options.momentum = 0; /* taken before gradients are sent */
    if (trainer->parts) {
        options.own_begin = trainer->parts[trainer->request->ranks->rank];
        options.own_end = trainer->parts[trainer->request->ranks->rank + 1];
    }
    return optimizer_new(trainer->graph, &options, &trainer->optimizer, err);
}

static bool set_up(struct trainer *trainer, struct err *err)
{
    const struct train_config *config = trainer->config;
    bool distilling = config->distill.teacher[0] != 0;
    struct plan_options plan = { .mode = distilling ? PLAN_TUNE : PLAN_TRAIN,
                                 .peers = { [PEERS_DATA] = trainer_peers(trainer) },
                                 .norm_peers = 1u << PEERS_DATA,
                                 .threads = trainer->threads,
                                 .saving = (enum plan_saving)config->train.memory,
                                 .arena_budget = (size_t)config->train.memory_mb << 20 };
    trainer->schedule = config->schedule;
    trainer->schedule.epochs = (double)config->train.epochs;
    if (config->ranks.scale_rate)
        trainer->schedule.learning_rate *= trainer->request->ranks->size;
    schedule_begin(&trainer->judged);
    trainer->seen.classes = (int64_t)config->classes.n;
    char *checkpoints = trainer_path(trainer, "checkpoints");
    bool ok = checkpoints || err_memory(err, "the trainer");
    ok = ok && trainer_open_data(trainer, err) && build_network(trainer, err) &&
         plan_new(trainer->graph, &plan, &trainer->plan, err) &&
         trainer_share_parts(trainer, err) && new_optimizer(trainer, err) &&
         new_buffers(trainer, err) && new_mix(trainer, err) && trainer_share_new(trainer, err) &&
         (config->train.ema <= 0 ||
          ema_new(trainer->graph, config->train.ema, trainer->threads, &trainer->ema, err)) &&
         (!trainer_leads(trainer) || file_make_folder(checkpoints, err));
    free(checkpoints);
    return trainer_agree(trainer, ok, err) && trainer_check_data(trainer, err);
}

static void tear_down(struct trainer *trainer)
{
    buckets_free(trainer->buckets);
    free(trainer->statistics);
    free(trainer->parts);
    sparse_free(trainer->sparse);
    loader_free(trainer->train_loader);
    loader_free(trainer->val_loader);
    loader_free(trainer->test_loader);
    plan_free(trainer->plan);
    optimizer_free(trainer->optimizer);
    ema_free(trainer->ema);
    graph_free(trainer->graph);
    distill_free(trainer->distill);
    dataset_free(&trainer->dataset);
    predictions_free(&trainer->seen);
    free(trainer->class_weights);
    free(trainer->mix_shares);
    free(trainer->mix_others);
    free(trainer->buffers);
    free(trainer->rows);
}

/* --- epochs --- */

static bool write_running(const struct trainer *trainer, struct err *err)
{
    return trainer_write_run(trainer, "running", err);
}

static bool write_stopped(const struct trainer *trainer, struct err *err)
{
    return trainer_write_run(trainer, "stopped", err);
}

static bool write_done(const struct trainer *trainer, struct err *err)
{
    return trainer_write_run(trainer, "done", err);
}

/* Saves the current state; the error says how to continue. */
static bool leave(struct trainer *trainer, struct err *err)
{
    struct err problem = { 0 };
    if (!trainer_save(trainer, &problem) || !trainer_lead(trainer, write_stopped, &problem)) {
        if (err)
            *err = problem;
        return false;
    }
    trainer->request->ranks->failed = true;
    return err_set(
        err, ERR_REQUEUE,
        "stopped in epoch %lld after step %lld of %lld and saved; continue with --resume",
        (long long)trainer->epoch + 1, (long long)trainer->step,
        (long long)trainer->steps_per_epoch);
}

static bool run_steps(struct trainer *trainer, struct err *err)
{
    const struct train_request *request = trainer->request;
    int64_t every = trainer->config->checkpoint.every_steps;
    int64_t images = trainer_step_images(trainer);
    bool ok = loader_begin(trainer->train_loader, (uint64_t)trainer->epoch,
                           trainer->step * trainer->config->train.accumulate, err);
    trainer->stop = ctx_stopped(trainer->ctx);
    if (!ranks_agree(request->ranks, ok, &trainer->stop, err))
        return false;
    while (trainer->step < trainer->steps_per_epoch) {
        if (request->ranks->size == 1) /* many agree on it within the step */
            trainer->stop = ctx_stopped(trainer->ctx);
        if (trainer->stop)
            return leave(trainer, err);
        if (!trainer_step(trainer, err))
            return false;
        console_advance(trainer->ctx->console, images);
        int64_t total = trainer_steps(trainer);
        if (every > 0 && total % every == 0 && trainer->step < trainer->steps_per_epoch &&
            !trainer_save(trainer, err))
            return false;
        if (request->on_step)
            request->on_step(request->arg, total);
    }
    return true;
}

static bool train_epoch(struct trainer *trainer, struct err *err)
{
    char label[64];
    int64_t images = trainer_step_images(trainer);
    snprintf(label, sizeof label, "epoch %lld of %lld", (long long)trainer->epoch + 1,
             (long long)trainer->config->train.epochs);
    trainer->epoch_began_s = clock_monotonic_s();
    trainer->epoch_waited_s = loader_waited_s(trainer->train_loader);
    console_begin(trainer->ctx->console, label, (trainer->steps_per_epoch - trainer->step) * images,
                  "patches");
    bool ok = run_steps(trainer, err);
    loader_end(trainer->train_loader);
    console_end(trainer->ctx->console);
    trainer->train_s += clock_monotonic_s() - trainer->epoch_began_s;
    return ok;
}

static bool judge_predictions(const struct predictions *predictions, struct metrics *metrics,
                              double *loss, int64_t *confusion, struct err *err)
{
    *metrics = (struct metrics){ .accuracy = NAN, .balanced_accuracy = NAN, .auc = NAN, .f1 = NAN };
    *loss = NAN;
    if (predictions->n == 0)
        return true;
    *loss = predictions->loss_sum / (double)predictions->n;
    return metrics_compute(predictions->scores, predictions->labels, predictions->n,
                           predictions->classes, metrics, confusion, err);
}

/* The value given to the schedule: higher is better. With only one class there is no AUC: then the
 * loss. */
static double monitored(const struct trainer *trainer, const struct epoch_row *row)
{
    bool val = trainer->val_loader != NULL;
    const struct metrics *metrics = val ? &row->val : &row->train;
    double minus_loss = val ? -row->val_loss : -row->train_loss;
    switch ((enum train_monitor)trainer->config->train.monitor) {
    case MONITOR_AUC:
        return isnan(metrics->auc) ? minus_loss : metrics->auc;
    case MONITOR_ACCURACY:
        return metrics->accuracy;
    case MONITOR_LAST:
        return (double)trainer->epoch;
    case MONITOR_LOSS:
        break;
    }
    return minus_loss;
}

static void say_row(const struct trainer *trainer, const struct epoch_row *row, bool best)
{
    char val[160] = "";
    if (trainer->val_loader)
        snprintf(val, sizeof val, "; validation: loss %.4f, accuracy %.4f, AUC %.4f%s",
                 row->val_loss, row->val.accuracy, row->val.auc, best ? " (best)" : "");
    console_note(trainer->ctx->console,
                 "epoch %lld: rate %.3g, loss %.4f, accuracy %.4f, AUC %.4f%s; %.1f s, waiting "
                 "%.0f %%",
                 (long long)trainer->epoch + 1, row->learning_rate, row->train_loss,
                 row->train.accuracy, row->train.auc, val, row->seconds, 100 * row->waiting);
}

/* Reports how far dense and window scores differ, with a teacher. Collective. */
static bool say_difference(struct trainer *trainer, const struct predictions *val, struct err *err)
{
    struct metrics metrics = { 0 };
    double sums[2];
    if (!trainer->distill || !trainer->val_loader)
        return true;
    distill_difference(trainer->distill, &sums[0], &sums[1]);
    if (!ranks_sum_reals(trainer->request->ranks, sums, 2, err))
        return false;
    if (val->n == 0)
        return true;
    if (!metrics_compute(val->scores, val->labels, val->n, val->classes, &metrics, NULL, err))
        return false;
    console_note(trainer->ctx->console,
                 "dense and window scores: mean |dp| %.4f, %.2f %% of decisions differ",
                 sums[0] / sums[1], 100 * (1 - metrics.accuracy));
    return true;
}

/* With a teacher: the difference before anything is learnt. */
static bool judge_start(struct trainer *trainer, struct err *err)
{
    struct predictions val = { 0 };
    if (!trainer->distill || !trainer->val_loader)
        return true;
    if (!trainer_evaluate(trainer, trainer->val_loader, false, &val, err)) {
        trainer->request->ranks->failed = true;
        return false;
    }
    bool ok = say_difference(trainer, &val, err);
    predictions_free(&val);
    return ok;
}

static bool add_row(struct trainer *trainer, const struct predictions *val, struct err *err)
{
    struct epoch_row *more = realloc(trainer->rows, ((size_t)trainer->n_rows + 1) * sizeof *more);
    if (!more)
        return err_memory(err, "metrics");
    trainer->rows = more;
    struct epoch_row *row = &more[trainer->n_rows];
    *row = (struct epoch_row){ 0 };
    row->learning_rate =
        schedule_rate(&trainer->schedule, &trainer->judged, (double)trainer->epoch);
    row->seconds = clock_monotonic_s() - trainer->epoch_began_s;
    double waited = loader_waited_s(trainer->train_loader) - trainer->epoch_waited_s;
    row->waiting = row->seconds > 0 ? waited / row->seconds : 0;
    trainer->n_rows++;
    struct predictions seen = { 0 };
    bool ok = trainer_gather(trainer, &trainer->seen, &seen, err) &&
              judge_predictions(&seen, &row->train, &row->train_loss, NULL, err) &&
              judge_predictions(val, &row->val, &row->val_loss, NULL, err);
    predictions_free(&seen);
    return ok;
}

/* Validation, judgement, files; the trainer is then at the start of the next epoch. */
static bool finish_epoch(struct trainer *trainer, struct err *err)
{
    struct predictions val = { .classes = trainer->dataset.n_classes };
    if (!trainer_check_weights(trainer, err) || !trainer_count_waiting(trainer, err))
        return false;
    if (trainer->distill)
        distill_difference(trainer->distill, &(double){ 0 }, &(double){ 0 }); /* of training */
    if (trainer->val_loader && !trainer_evaluate(trainer, trainer->val_loader, false, &val, err))
        return err && err->kind == ERR_STOPPED ? leave(trainer, err) : false;
    bool ok = add_row(trainer, &val, err);
    ok = ok && say_difference(trainer, &val, err);
    predictions_free(&val);
    if (!ok)
        return false;
    const struct epoch_row *row = &trainer->rows[trainer->n_rows - 1];
    struct schedule_verdict verdict = schedule_judge(&trainer->schedule, &trainer->judged,
                                                     trainer->epoch, monitored(trainer, row));
    if (trainer->judged.best_epoch < 0) { /* not a number: something must be the best */
        verdict.best = true;
        trainer->judged.best_epoch = trainer->epoch;
        trainer->judged.best = -INFINITY;
    }
    say_row(trainer, row, verdict.best);
    if (verdict.best && !trainer_save_best(trainer, err))
        return false;
    if (verdict.reduce) {
        console_note(trainer->ctx->console,
                     "no improvement: reducing the learning rate and returning to epoch %lld",
                     (long long)trainer->judged.best_epoch + 1);
        if (!trainer_load_best(trainer, err))
            return false;
    }
    trainer->epoch++;
    trainer->step = 0;
    trainer->seen.n = 0;
    trainer->seen.loss_sum = 0;
    trainer->finished = verdict.stop || trainer->epoch == trainer->config->train.epochs;
    if (verdict.stop && trainer->epoch < trainer->config->train.epochs)
        console_note(trainer->ctx->console, "no improvement: stopping early");
    return trainer_save(trainer, err) && trainer_lead(trainer, trainer_write_metrics, err) &&
           trainer_lead(trainer, write_running, err);
}

/* --- the end --- */

/* Evaluates the current weights on one side; scores are written to files whose names start with
 * `prefix`. Collective. */
static bool judge_side(struct trainer *trainer, struct loader *loader, const char *prefix,
                       struct metrics *metrics, double *loss, struct err *err)
{
    struct predictions found = { .classes = trainer->dataset.n_classes };
    size_t classes = (size_t)trainer->dataset.n_classes;
    int64_t *confusion = calloc(classes * classes, sizeof *confusion);
    bool ok = trainer_agree(trainer, confusion || err_memory(err, "the confusion matrix"), err) &&
              trainer_evaluate(trainer, loader, trainer->config->train.tta, &found, err) &&
              judge_predictions(&found, metrics, loss, confusion, err) &&
              trainer_agree(trainer,
                            !trainer_leads(trainer) ||
                                trainer_write_scores(trainer, prefix, &found, confusion, err),
                            err);
    predictions_free(&found);
    free(confusion);
    return ok;
}

/* Evaluates the best weights once more and writes them; only now is the test data used. */
static bool finish(struct trainer *trainer, struct train_result *out, struct err *err)
{
    bool ok = trainer_load_best(trainer, err);
    out->val = trainer->rows[trainer->judged.best_epoch].train;
    out->val_loss = NAN;
    if (ok && trainer->val_loader)
        ok = judge_side(trainer, trainer->val_loader, "", &out->val, &out->val_loss, err);
    if (ok && trainer->test_loader) {
        ok = judge_side(trainer, trainer->test_loader, "test_", &trainer->test, &trainer->test_loss,
                        err);
        trainer->tested = out->tested = ok;
        out->test = trainer->test;
        out->test_loss = trainer->test_loss;
    }
    if (ok && trainer->ema)
        ema_swap(trainer->ema);
    ok = ok && trainer_lead(trainer, trainer_write_metrics, err) &&
         trainer_lead(trainer, trainer_write_model, err) && trainer_lead(trainer, write_done, err);
    if (!ok && err->kind == ERR_STOPPED) { /* the last checkpoint was saved before this */
        trainer->request->ranks->failed = true;
        err_set(err, ERR_REQUEUE, "stopped after the last epoch and saved; continue with --resume");
    }
    return ok;
}

/* For a training that starts from scratch. */
static bool make_place(const struct trainer *trainer, struct err *err)
{
    if (!trainer->request->overwrite && trainer_has_checkpoint(trainer))
        return err_set(err, ERR_USAGE,
                       "%s: already contains a training run; pass --resume to continue it, "
                       "--overwrite to start over, or use another folder",
                       trainer->request->folder);
    trainer_clear(trainer);
    return true;
}

static bool begin(struct trainer *trainer, struct err *err)
{
    const struct train_request *request = trainer->request;
    bool found = false;
    if (request->resume) {
        if (!trainer_resume(trainer, &found, err))
            return false;
        if (found && trainer->finished)
            console_note(trainer->ctx->console, "%s: already finished", request->folder);
        else if (found)
            console_note(trainer->ctx->console, "resuming in epoch %lld after step %lld",
                         (long long)trainer->epoch + 1, (long long)trainer->step);
        else
            console_note(trainer->ctx->console, "no checkpoint in %s: starting from scratch",
                         request->folder);
    } else if (!trainer_lead(trainer, make_place, err)) {
        return false;
    }
    return trainer_lead(trainer, trainer_write_config, err) &&
           trainer_lead(trainer, write_running, err) && (found || judge_start(trainer, err));
}

static bool run_epochs(struct trainer *trainer, struct err *err)
{
    while (!trainer->finished)
        if (!train_epoch(trainer, err) || !finish_epoch(trainer, err))
            return false;
    return true;
}

bool train_run(const struct train_request *request, const struct ctx *ctx, struct train_result *out,
               struct err *err)
{
    struct trainer trainer = { .request = request,
                               .config = request->config,
                               .ctx = ctx,
                               .threads = pool_workers(ctx->pool),
                               .began_s = clock_monotonic_s() };
    time_t now = time(NULL);
    struct tm parts;
    struct err fallback = { 0 };
    err = err ? err : &fallback;
    *out = (struct train_result){ 0 };
    gmtime_r(&now, &parts);
    strftime(trainer.began, sizeof trainer.began, "%Y-%m-%dT%H:%M:%SZ", &parts);
    bool ok = trainer_check_program(&trainer, err) && set_up(&trainer, err) &&
              begin(&trainer, err) && run_epochs(&trainer, err) && finish(&trainer, out, err);
    out->epochs = trainer.epoch;
    out->steps = trainer_steps(&trainer);
    out->best_epoch = trainer.judged.best_epoch;
    out->train_loss = trainer.n_rows ? trainer.rows[trainer.n_rows - 1].train_loss : NAN;
    out->seconds = clock_monotonic_s() - trainer.began_s;
    out->images_per_s = trainer.train_s > 0 ? (double)trainer.images / trainer.train_s : 0;
    if (trainer.train_loader && trainer.train_s > 0)
        out->waiting = loader_waited_s(trainer.train_loader) / trainer.train_s;
    tear_down(&trainer);
    return ok;
}
