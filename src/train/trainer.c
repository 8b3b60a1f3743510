/* trainer.c: sets up a training and runs its epochs (train.h). */
#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/file.h"
#include "base/pool.h"
#include "base/console.h"
#include "train/objectives.h"
#include "base/clock.h"

/* --- setting up --- */

static bool build_network(struct trainer *trainer, struct err *err)
{
    struct learning *learning = &trainer->learning;
    if (!learning->objective->build(learning, &trainer->graph, err))
        return false;
    if (!trainer_tune(trainer, err))
        return false;
    trainer->learnt = trainer->graph;
    trainer->seen.outputs = learning->outputs;
    return trainer_check_ports(trainer, err);
}

const struct graph *trainer_model(const struct trainer *trainer)
{
    const struct learning *learning = &trainer->learning;
    return learning->objective->model ? learning->objective->model(learning)
                                      : trainer_network(trainer);
}

static bool new_buffers(struct trainer *trainer, struct err *err)
{
    size_t count = 1;
    for (value_id v = 0; v < trainer->learnt->n_values; v++)
        if (trainer->learnt->values[v].kind == VALUE_BUFFER)
            count += (size_t)shape_count(&trainer->learnt->values[v].shape);
    bool needed = trainer->config->train.on_nan == NAN_SKIP || trainer->kind->slow;
    if (needed) /* to take a step back that was not finished */
        trainer->buffers = calloc(count, sizeof *trainer->buffers);
    return trainer->buffers || !needed || err_memory(err, "batch norm's statistics");
}

static bool new_gradients(struct trainer *trainer, struct err *err)
{
    trainer->n_gradients = graph_parameter_count(trainer->learnt);
    trainer->gradients = calloc((size_t)trainer->n_gradients + 1, sizeof *trainer->gradients);
    return trainer->gradients || err_memory(err, "gradients");
}

static bool new_optimizer(struct trainer *trainer, struct err *err)
{
    struct optimizer_options options = trainer->config->optimizer;
    options.threads = trainer->threads;
    if (trainer_compresses(trainer))
        options.momentum = 0; /* taken before gradients are sent */
    if (trainer->parts) {
        options.own_begin = trainer->parts[trainer->weight_ranks->rank];
        options.own_end = trainer->parts[trainer->weight_ranks->rank + 1];
    }
    return optimizer_new(trainer->learnt, &options, &trainer->optimizer, err);
}

static bool set_up(struct trainer *trainer, struct err *err)
{
    const struct train_config *config = trainer->config;
    trainer->schedule = config->schedule;
    trainer->schedule.epochs = (double)config->train.epochs;
    if (config->ranks.scale_rate)
        trainer->schedule.learning_rate *= trainer->data_ranks->size;
    schedule_begin(&trainer->judged);
    char *checkpoints = trainer_path(trainer, "checkpoints");
    bool ok = checkpoints || err_memory(err, "the trainer");
    ok = ok && trainer_open_data(trainer, err) && build_network(trainer, err) &&
         trainer_heads_cut(trainer, err) && trainer_stages_cut(trainer, err) &&
         new_gradients(trainer, err) &&
         trainer->train->kind->use(trainer->train, trainer->graph,
                                   trainer->learning.objective->mode, err) &&
         trainer_share_parts(trainer, err) && new_optimizer(trainer, err) &&
         new_buffers(trainer, err) && trainer_share_new(trainer, err) &&
         (config->train.ema <= 0 ||
          ema_new(trainer->learnt, config->train.ema, trainer->threads, &trainer->ema, err)) &&
         (!trainer_leads(trainer) || file_make_folder(checkpoints, err));
    free(checkpoints);
    return trainer_agree(trainer, ok, err) && trainer_check_data(trainer, err) &&
           trainer_share_budget(trainer, err) && trainer_tell(trainer, err);
}

static void tear_down(struct trainer *trainer)
{
    buckets_free(trainer->buckets);
    free(trainer->statistics);
    free(trainer->statistics_shares);
    free(trainer->parts);
    free(trainer->arena_bytes);
    sparse_free(trainer->sparse);
    runner_free(trainer->train);
    runner_free(trainer->val);
    runner_free(trainer->tester);
    free(trainer->gradients);
    optimizer_free(trainer->optimizer);
    ema_free(trainer->ema);
    trainer_stages_free(trainer);
    trainer_heads_free(trainer);
    graph_free(trainer->graph);
    if (trainer->learning.objective->free)
        trainer->learning.objective->free(&trainer->learning);
    dataset_free(&trainer->dataset);
    predictions_free(&trainer->seen);
    free(trainer->buffers);
    free(trainer->rows);
    rank_grid_free(&trainer->grid);
    secret_forget(&trainer->private.secret);
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
    const struct runner_kind *kind = trainer->train->kind;
    int64_t every = trainer->config->checkpoint.every_steps;
    bool ok = kind->begin(trainer->train, (uint64_t)trainer->epoch,
                          trainer->step * kind->step_batches(trainer->config), err);
    trainer->stop = ctx_stopped(trainer->ctx);
    if (!ranks_agree(request->ranks, ok, &trainer->stop, err))
        return false;
    while (trainer->step < trainer->steps_per_epoch) {
        if (request->ranks->size == 1) /* many agree on it within the step */
            trainer->stop = ctx_stopped(trainer->ctx);
        if (trainer->stop)
            return leave(trainer, err);
        if (!trainer_step(trainer, err))
            return err->kind == ERR_STOPPED ? leave(trainer, err) : false;
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
    trainer->epoch_waited_s = trainer->train->kind->waited_s(trainer->train);
    console_begin(trainer->ctx->console, label, (trainer->steps_per_epoch - trainer->step) * images,
                  trainer->kind->samples);
    bool ok = run_steps(trainer, err);
    trainer->train->kind->end(trainer->train);
    console_end(trainer->ctx->console);
    trainer->train_s += clock_monotonic_s() - trainer->epoch_began_s;
    return ok;
}

static bool judge_predictions(const struct trainer *trainer, const struct predictions *predictions,
                              struct quality *out, struct err *err)
{
    const struct learning *learning = &trainer->learning;
    *out = (struct quality){ .n = predictions->n, .loss = NAN };
    for (int i = 0; i < OBJECTIVE_MOST_MEASURES; i++)
        out->values[i] = NAN;
    if (predictions->n == 0)
        return true;
    out->loss = predictions->loss_sum / (double)predictions->n;
    return learning->objective->judge(learning, predictions, out->values, err);
}

/* The value given to the schedule: higher is better. Where the measure is undefined (there is no
 * AUC of only one class) it is the loss. */
static double monitored(const struct trainer *trainer, const struct epoch_row *row)
{
    const struct quality *quality = trainer->val ? &row->val : &row->train;
    int monitor = trainer->config->train.monitor;
    int measure = objective_measure(trainer->learning.objective, config_monitors[monitor]);
    if (monitor == MONITOR_LAST)
        return (double)trainer->epoch;
    if (measure < 0 || isnan(quality->values[measure]))
        return -quality->loss;
    return quality->values[measure];
}

/* "loss 0.6931, accuracy 0.5000, AUC 0.5000" */
static void put_main(const struct objective *objective, const struct quality *quality, char *text,
                     size_t size)
{
    size_t used = (size_t)snprintf(text, size, "loss %.4f", quality->loss);
    for (int i = 0; i < objective->n_measures && used < size; i++)
        if (objective->measures[i].main)
            used += (size_t)snprintf(text + used, size - used, ", %s %.4f",
                                     objective->measures[i].title, quality->values[i]);
}

static void say_row(const struct trainer *trainer, const struct epoch_row *row, bool best)
{
    char train[200], val[200] = "", validation[250] = "";
    put_main(trainer->learning.objective, &row->train, train, sizeof train);
    if (config_private(trainer->config))
        snprintf(train, sizeof train, "epsilon %.4g so far", row->epsilon);
    put_main(trainer->learning.objective, &row->val, val, sizeof val);
    if (trainer->val)
        snprintf(validation, sizeof validation, "; validation: %s%s", val, best ? " (best)" : "");
    console_note(trainer->ctx->console, "epoch %lld: rate %.3g, %s%s; %.1f s, waiting %.0f %%",
                 (long long)trainer->epoch + 1, row->learning_rate, train, validation, row->seconds,
                 100 * row->waiting);
}

/* What the objective says of an evaluation. Collective. */
static bool remark(struct trainer *trainer, const struct predictions *val, struct err *err)
{
    struct learning *learning = &trainer->learning;
    return !learning->objective->remark || !trainer->val ||
           learning->objective->remark(learning, val, err);
}

/* Before anything is learnt, if the objective has something to say about that. */
static bool judge_start(struct trainer *trainer, struct err *err)
{
    struct predictions val = { 0 };
    if (!trainer->learning.objective->remark || !trainer->val)
        return true;
    if (!trainer_evaluate(trainer, trainer->val, false, &val, err)) {
        trainer->request->ranks->failed = true;
        return false;
    }
    bool ok = remark(trainer, &val, err);
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
    row->epsilon = config_private(trainer->config) ? trainer_private_epsilon(trainer) : 0;
    row->learning_rate =
        schedule_rate(&trainer->schedule, &trainer->judged, (double)trainer->epoch);
    row->seconds = clock_monotonic_s() - trainer->epoch_began_s;
    double waited = trainer->train->kind->waited_s(trainer->train) - trainer->epoch_waited_s;
    row->waiting = row->seconds > 0 ? waited / row->seconds : 0;
    trainer->n_rows++;
    struct predictions seen = { 0 };
    bool ok = trainer_gather(trainer, &trainer->seen, &seen, err) &&
              judge_predictions(trainer, &seen, &row->train, err) &&
              judge_predictions(trainer, val, &row->val, err);
    predictions_free(&seen);
    return trainer_agree(trainer, ok, err) && trainer_share_row(trainer, row, err);
}

/* Validation, judgement, files; the trainer is then at the start of the next epoch. */
static bool finish_epoch(struct trainer *trainer, struct err *err)
{
    struct predictions val = { .outputs = trainer->learning.outputs };
    if (!trainer_check_weights(trainer, err) || !trainer_count_waiting(trainer, err) ||
        !trainer_tell(trainer, err))
        return false;
    if (trainer->val && !trainer_evaluate(trainer, trainer->val, false, &val, err))
        return err && err->kind == ERR_STOPPED ? leave(trainer, err) : false;
    bool ok = add_row(trainer, &val, err);
    ok = ok && remark(trainer, &val, err);
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

/* Evaluates the current weights on one side; the objective's files have names that start with
 * `prefix`. Collective. */
static bool judge_side(struct trainer *trainer, struct runner *runner, const char *prefix,
                       struct quality *out, struct err *err)
{
    const struct learning *learning = &trainer->learning;
    struct predictions found = { .outputs = learning->outputs };
    char *path = trainer_path(trainer, prefix);
    bool ok = trainer_agree(trainer, path || err_memory(err, "the scores"), err) &&
              trainer_evaluate(trainer, runner, trainer->config->train.tta, &found, err) &&
              judge_predictions(trainer, &found, out, err) &&
              trainer_agree(trainer,
                            !trainer_leads(trainer) ||
                                learning->objective->write(learning, path, &found, err),
                            err);
    predictions_free(&found);
    free(path);
    return ok;
}

/* Evaluates the best weights once more and writes them; only now is the test data used. */
static bool finish(struct trainer *trainer, struct train_result *out, struct err *err)
{
    bool ok = trainer_load_best(trainer, err);
    out->val = trainer->rows[trainer->judged.best_epoch].train;
    out->val.loss = NAN;
    if (ok && trainer->val)
        ok = judge_side(trainer, trainer->val, "", &out->val, err);
    if (ok && trainer->tester) {
        ok = judge_side(trainer, trainer->tester, "test_", &trainer->test, err);
        trainer->tested = out->tested = ok;
        out->test = trainer->test;
    }
    if (ok && trainer->ema)
        ema_swap(trainer->ema);
    ok = ok && trainer_collect(trainer, err) && trainer_heads_collect(trainer, err) &&
         trainer_lead(trainer, trainer_write_metrics, err) &&
         trainer_lead(trainer, trainer_write_model, err) &&
         trainer_lead(trainer, write_done, err) && trainer_private_end(trainer, err);
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
    return trainer_private_begin(trainer, found, err) &&
           trainer_lead(trainer, trainer_hold_out_write, err) &&
           trainer_lead(trainer, trainer_write_config, err) &&
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
                               .kind = config_whole(request->config)        ? &runner_slides
                                       : config_texts(request->config)      ? &runner_texts
                                       : config_recordings(request->config) ? &runner_recordings
                                                                            : &runner_patches,
                               .threads = pool_workers(ctx->pool),
                               .data_ranks = &trainer.grid.group[GRID_DATA],
                               .began_s = clock_monotonic_s() };
    trainer.learning = (struct learning){ .objective = objective_of(request->config),
                                          .config = request->config,
                                          .ctx = ctx,
                                          .ranks = &trainer.grid.group[GRID_DATA],
                                          .threads = trainer.threads };
    time_t now = time(NULL);
    struct tm parts;
    struct err fallback = { 0 };
    err = err ? err : &fallback;
    *out = (struct train_result){ .objective = trainer.learning.objective };
    gmtime_r(&now, &parts);
    strftime(trainer.began, sizeof trainer.began, "%Y-%m-%dT%H:%M:%SZ", &parts);
    bool ok = trainer_check_program(&trainer, err) && trainer_place(&trainer, err) &&
              set_up(&trainer, err) && begin(&trainer, err) && run_epochs(&trainer, err) &&
              finish(&trainer, out, err);
    out->epochs = trainer.epoch;
    out->steps = trainer_steps(&trainer);
    out->best_epoch = trainer.judged.best_epoch;
    out->train_loss = trainer.n_rows ? trainer.rows[trainer.n_rows - 1].train.loss : NAN;
    out->seconds = clock_monotonic_s() - trainer.began_s;
    out->images_per_s = trainer.train_s > 0 ? (double)trainer.images / trainer.train_s : 0;
    out->samples = trainer.kind->samples;
    out->private = config_private(trainer.config);
    out->epsilon = out->private ? trainer_private_epsilon(&trainer) : 0;
    if (trainer.train && trainer.train_s > 0)
        out->waiting = trainer.train->kind->waited_s(trainer.train) / trainer.train_s;
    if (trainer.train && trainer.train->kind->remark)
        trainer.train->kind->remark(trainer.train);
    tear_down(&trainer);
    return ok;
}
