/* trainer_resume.c: restores the trainer from checkpoints (trainer.h). */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/console.h"
#include "train/checkpoint.h"
#include "train/objectives.h"
#include "train/trainer_state.h"

#define MAX_COUNT INT64_C(0x7fffffff) /* of epochs, steps, ...: products of two are no overflow */

static double get_real(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? strtod(text, NULL) : NAN;
}

static int64_t get_int(const json_t *object, const char *key)
{
    return (int64_t)json_integer_value(json_object_get(object, key));
}

static struct quality quality_of(const struct objective *objective, const json_t *json, double loss)
{
    struct quality quality = { .n = get_int(json, "n"), .loss = loss };
    for (int i = 0; i < objective->n_measures; i++)
        quality.values[i] = get_real(json, objective->measures[i].name);
    return quality;
}

static bool rows_of(struct trainer *trainer, const json_t *rows, struct err *err)
{
    size_t n = json_array_size(rows);
    trainer->rows = realloc(trainer->rows, (n + 1) * sizeof *trainer->rows);
    if (!trainer->rows)
        return err_memory(err, "metrics");
    trainer->n_rows = (int64_t)n;
    for (size_t i = 0; i < n; i++) {
        const json_t *row = json_array_get(rows, i);
        trainer->rows[i] = (struct epoch_row){
            .learning_rate = get_real(row, "learning_rate"),
            .seconds = get_real(row, "seconds"),
            .waiting = get_real(row, "waiting"),
            .epsilon = get_real(row, "epsilon"),
            .train = quality_of(trainer->learning.objective, json_object_get(row, "train"),
                                get_real(row, "train_loss")),
            .val = quality_of(trainer->learning.objective, json_object_get(row, "val"),
                              get_real(row, "val_loss")),
        };
    }
    return true;
}

bool trainer_load_best(struct trainer *trainer, struct err *err)
{
    struct checkpoint checkpoint = { 0 };
    struct trainer_arrays arrays = trainer_arrays(trainer);
    char *path = trainer_best_path(trainer, trainer->judged.best_epoch), *text = NULL;
    bool ok = (path && !arrays.failed) || err_memory(err, "a checkpoint");
    if (ok && trainer_leads(trainer))
        ok = checkpoint_open(path, &checkpoint, err) &&
             checkpoint_load(&checkpoint, arrays.items, arrays.n, err);
    ok = trainer_agree(trainer, ok, err) &&
         trainer_share_text(trainer, checkpoint.state, &text, err) &&
         trainer_share_arrays(trainer, &arrays, err);
    ok = ok && trainer_arrays_take(trainer, &arrays, err);
    if (trainer->sparse)
        sparse_clear(trainer->sparse); /* what is left belongs to the weights that are left */
    json_t *state = ok ? json_loads(text, 0, NULL) : NULL;
    if (ok) {
        optimizer_set_steps(trainer->optimizer, get_int(state, "optimizer_steps"));
        if (trainer->ema)
            ema_set_updates(trainer->ema, get_int(state, "ema_updates"));
    }
    json_decref(state);
    trainer_arrays_free(&arrays);
    checkpoint_close(&checkpoint);
    free(text);
    free(path);
    return ok;
}

/* Steps of the epoch that are done, as steps of this run; a step that is done in part is done
 * again. */
static int64_t place_of(const struct trainer *trainer, const json_t *state)
{
    return get_int(state, "step") * get_int(state, "step_images") / trainer_step_images(trainer);
}

/* The rate goes with the patches in a step, where it did so before. */
static double rate_of(const struct trainer *trainer, const json_t *state)
{
    double rate = get_real(state, "learning_rate");
    int64_t then = get_int(state, "step_images"), now = trainer_step_images(trainer);
    return then == now || !trainer->config->ranks.scale_rate ? rate
                                                             : rate * (double)now / (double)then;
}

static bool counts_fit(const json_t *object, const char *const *keys, int64_t least)
{
    bool fit = true;
    for (; *keys; keys++)
        fit = fit && get_int(object, *keys) >= least && get_int(object, *keys) <= MAX_COUNT;
    return fit;
}

/* Numbers that are multiplied later, and number files. */
static bool counts_are_sane(const json_t *state)
{
    static const char *const counts[] = { "seen",        "epoch",   "step",  "skipped",
                                          "ranks",       "threads", "steps", "optimizer_steps",
                                          "ema_updates", NULL };
    static const char *const ones[] = { "step_images", NULL };
    static const char *const judged[] = { "epochs_flat", "epochs_no_better", "reductions", NULL };
    static const char *const best[] = { "best_epoch", NULL }; /* -1: none yet */
    const json_t *object = json_object_get(state, "judged");
    return counts_fit(state, counts, 0) && counts_fit(state, ones, 1) &&
           counts_fit(object, judged, 0) && counts_fit(object, best, -1);
}

/* A row for every epoch that is done, and the best is one of them. */
static bool rows_fit(const struct trainer *trainer, const json_t *state)
{
    int64_t rows = (int64_t)json_array_size(json_object_get(state, "rows"));
    int64_t best = get_int(json_object_get(state, "judged"), "best_epoch");
    return get_int(state, "epoch") == rows && rows <= trainer->config->train.epochs &&
           (rows == 0 ? best == -1 : best >= 0 && best < rows);
}

static bool check_state(const struct trainer *trainer, const char *path, const json_t *state,
                        struct err *err)
{
    char hash[TRAINER_HASH_TEXT], *config = config_text(trainer->config);
    const char *then = json_string_value(json_object_get(state, "config"));
    const char *data = json_string_value(json_object_get(state, "data"));
    trainer_data_text(trainer, hash);
    bool ok = config || err_memory(err, "a checkpoint");
    bool same_ranks = get_int(state, "ranks") == trainer->data_ranks->size;
    if (ok && (!then || !data || !counts_are_sane(state) || !rows_fit(trainer, state) ||
               place_of(trainer, state) > trainer->steps_per_epoch))
        ok = err_set(err, ERR_FORMAT,
                     "%s: not a checkpoint of this version; pass --overwrite to start over", path);
    ok = ok && config_same(path, then, config, same_ranks, err);
    if (ok && strcmp(data, hash) != 0)
        ok = err_set(err, ERR_USAGE,
                     "%s: started with different data; use the same data or another folder", path);
    if (ok && config_private(trainer->config) &&
        get_int(state, "step_images") != trainer_step_images(trainer))
        ok = err_set(err, ERR_USAGE,
                     "%s: privacy: started with %lld patches per step over all ranks, now there "
                     "would be %lld; set train.batch and train.accumulate so that they are the "
                     "same",
                     path, (long long)get_int(state, "step_images"),
                     (long long)trainer_step_images(trainer));
    if (ok && !same_ranks)
        console_note(trainer->ctx->console,
                     "started on %lld ranks with %lld patches per step, now on %d with %lld: %s",
                     (long long)get_int(state, "ranks"), (long long)get_int(state, "step_images"),
                     trainer->data_ranks->size, (long long)trainer_step_images(trainer),
                     get_int(state, "step_images") == trainer_step_images(trainer)
                         ? "the last digits may differ"
                         : "results will differ from here on");
    free(config);
    return ok;
}

/* Predictions of the epoch so far. */
static bool load_seen(struct trainer *trainer, const struct checkpoint *checkpoint,
                      const json_t *state, struct err *err)
{
    struct predictions *seen = &trainer->seen;
    int64_t n = get_int(state, "seen");
    const struct safetensors_tensor *found = safetensors_find(&checkpoint->file, "seen/labels");
    if (n > 0 && (!found || found->count != n))
        return err_set(err, ERR_FORMAT,
                       "%s: not a checkpoint of this version; pass --overwrite to start over",
                       checkpoint->file.path);
    seen->values = calloc((size_t)(n * seen->outputs) + 1, sizeof *seen->values);
    seen->truths = calloc((size_t)n + 1, sizeof *seen->truths);
    seen->samples = calloc((size_t)n + 1, sizeof *seen->samples);
    bool ok = (seen->values && seen->truths && seen->samples) || err_memory(err, "a checkpoint");
    struct state_array arrays[] = { { "seen/scores", seen->values, n * seen->outputs },
                                    { "seen/labels", seen->truths, n } };
    ok = ok && checkpoint_load(checkpoint, arrays, 2, err);
    seen->n = seen->room = n;
    return ok;
}

static bool load_state(struct trainer *trainer, const struct checkpoint *checkpoint,
                       const json_t *state, struct err *err)
{
    const json_t *judged = json_object_get(state, "judged");
    struct trainer_arrays arrays = trainer_arrays(trainer);
    bool ok = !arrays.failed || err_memory(err, "a checkpoint");
    if (ok && trainer_leads(trainer)) /* what all have seen in this epoch counts once */
        ok = checkpoint_load(checkpoint, arrays.items, arrays.n, err) &&
             load_seen(trainer, checkpoint, state, err);
    ok = ok && rows_of(trainer, json_object_get(state, "rows"), err);
    ok = trainer_agree(trainer, ok, err) && trainer_share_arrays(trainer, &arrays, err);
    ok = ok && trainer_arrays_take(trainer, &arrays, err);
    trainer->seen.loss_sum = get_real(state, "seen_loss");
    trainer_arrays_free(&arrays);
    trainer->epoch = get_int(state, "epoch");
    trainer->step = place_of(trainer, state);
    trainer->other_steps = get_int(state, "steps") - trainer_steps(trainer);
    trainer->schedule.learning_rate = rate_of(trainer, state);
    trainer->skipped = get_int(state, "skipped");
    trainer->plan_budget = (size_t)get_int(state, "plan_budget");
    trainer->finished = json_is_true(json_object_get(state, "finished"));
    trainer->judged =
        (struct schedule_state){ .best = get_real(judged, "best"),
                                 .best_epoch = get_int(judged, "best_epoch"),
                                 .epochs_flat = get_int(judged, "epochs_flat"),
                                 .epochs_no_better = get_int(judged, "epochs_no_better"),
                                 .reductions = get_int(judged, "reductions") };
    optimizer_set_steps(trainer->optimizer, get_int(state, "optimizer_steps"));
    if (trainer->ema)
        ema_set_updates(trainer->ema, get_int(state, "ema_updates"));
    return ok;
}

/* checkpoint: empty on all ranks but the first; text: its state, on all. */
static bool resume_from(struct trainer *trainer, const struct checkpoint *checkpoint,
                        const char *text, struct err *err)
{
    const char *path = trainer_leads(trainer) ? checkpoint->file.path : trainer->request->folder;
    json_t *state = json_loads(text, 0, NULL);
    bool ok =
        state
            ? check_state(trainer, path, state, err)
            : err_set(err, ERR_FORMAT,
                      "%s: not a checkpoint of this version; pass --overwrite to start over", path);
    ok = trainer_agree(trainer, ok, err) && load_state(trainer, checkpoint, state, err) &&
         trainer_compress_load(trainer, get_int(state, "ranks") == trainer->data_ranks->size, err);
    json_decref(state);
    return ok;
}

/* The newest that is whole; out->state is NULL if there is none. */
static void open_newest(const struct trainer *trainer, struct checkpoint *out)
{
    size_t n = 0;
    int64_t *steps = trainer_list(trainer, "step", &n);
    for (size_t i = n; steps && !out->state && i-- > 0;) {
        struct err damage = { 0 };
        char *path = trainer_step_path(trainer, steps[i]);
        if (path && !checkpoint_open(path, out, &damage)) {
            console_warn(trainer->ctx->console, "%s; using the previous checkpoint", damage.text);
            if (damage.kind == ERR_FORMAT) /* not where the system refused to read it */
                unlink(path);
        }
        free(path);
    }
    free(steps);
}

bool trainer_resume(struct trainer *trainer, bool *found, struct err *err)
{
    struct checkpoint checkpoint = { 0 };
    char *text = NULL;
    if (trainer_leads(trainer))
        open_newest(trainer, &checkpoint);
    bool ok = trainer_share_text(trainer, checkpoint.state, &text, err);
    *found = text != NULL;
    ok = ok && (!text || resume_from(trainer, &checkpoint, text, err));
    checkpoint_close(&checkpoint);
    free(text);
    return ok;
}
