/* trainer_save.c: saves the trainer to checkpoints (trainer.h). Arrays are weights, optimiser,
 * average and the predictions of the current epoch; the rest is JSON, with doubles as hexadecimal
 * text, so that they are restored exactly. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/json.h"
#include "base/version.h"
#include "train/checkpoint.h"
#include "train/trainer_state.h"
#include "base/text.h"

#define MAX_NAMES 100000

/* --- arrays --- */

static void arrays_add(struct trainer_arrays *arrays, const char *kind, const char *name,
                       float *data, int64_t count)
{
    if (arrays->n == arrays->room) {
        size_t room = arrays->room ? 2 * arrays->room : 256;
        struct state_array *more = realloc(arrays->items, room * sizeof *more);
        if (!more) {
            arrays->failed = true;
            return;
        }
        arrays->items = more, arrays->room = room;
    }
    char *full = text_format("%s/%s", kind, name);
    if (full)
        arrays->items[arrays->n++] = (struct state_array){ full, data, count };
    else
        arrays->failed = true;
}

void trainer_arrays_free(struct trainer_arrays *arrays)
{
    for (size_t i = 0; i < arrays->n; i++)
        free((char *)arrays->items[i].name);
    free(arrays->items);
    free(arrays->whole[0]), free(arrays->whole[1]), free(arrays->average), free(arrays->weights);
}

/* Parameters and buffers of the whole network; flat: one after another, or NULL: in place. */
static void add_network(const struct trainer *trainer, const char *kind, float *flat,
                        struct trainer_arrays *arrays)
{
    const struct graph *graph = trainer_network(trainer);
    for (value_id v = 0; v < graph->n_values; v++) {
        if (!graph_is_parameter(graph, v))
            continue;
        const struct value *value = &graph->values[v];
        int64_t count = shape_count(&value->shape);
        arrays_add(arrays, kind, value->name, flat ? flat : graph_data(graph, v), count);
        flat = flat ? flat + count : NULL;
    }
}

/* Room for the arrays of the whole network, where this rank has a part of it. Of heads, only the
 * first rank has it: NULL on the others. */
static float *new_whole(const struct trainer *trainer, bool buffers, struct trainer_arrays *arrays)
{
    const struct graph *graph = trainer_network(trainer);
    int64_t count = buffers ? 0 : graph_parameter_count(graph);
    for (value_id v = 0; buffers && v < graph->n_values; v++)
        if (graph_is_parameter(graph, v))
            count += shape_count(&graph->values[v].shape);
    if (trainer->heads && !trainer_leads(trainer))
        return NULL;
    float *made = calloc((size_t)count + 1, sizeof *made);
    arrays->failed |= !made;
    return made;
}

static void add_average(const struct trainer *trainer, struct trainer_arrays *arrays)
{
    if (trainer->staged || trainer->heads) {
        arrays->average = new_whole(trainer, true, arrays);
        add_network(trainer, "ema", arrays->average, arrays);
        return;
    }
    for (int i = 0; i < ema_n_arrays(trainer->ema); i++) {
        struct state_array array = ema_array(trainer->ema, i);
        arrays_add(arrays, "ema", array.name, array.data, array.count);
    }
}

struct trainer_arrays trainer_arrays(const struct trainer *trainer)
{
    struct trainer_arrays arrays = { 0 };
    if (trainer->heads)
        arrays.weights = new_whole(trainer, true, &arrays);
    add_network(trainer, "weights", arrays.weights, &arrays);
    for (int i = 0; i < optimizer_n_arrays(trainer->optimizer); i++) {
        struct state_array array = optimizer_array(trainer->optimizer, i);
        if (trainer->parts || trainer->staged || trainer->heads) {
            array.count = graph_parameter_count(trainer_network(trainer));
            array.data = arrays.whole[i] = new_whole(trainer, false, &arrays);
            arrays.n_whole++;
        }
        arrays_add(&arrays, "optimizer", array.name, array.data, array.count);
    }
    if (trainer->ema)
        add_average(trainer, &arrays);
    return arrays;
}

/* --- JSON --- */

static void put_real(struct json_out *json, const char *key, double value)
{
    char text[40];
    snprintf(text, sizeof text, "%a", value);
    json_out_text(json, key, text);
}

static void put_quality(struct json_out *json, const char *key, const struct objective *objective,
                        const struct quality *quality)
{
    json_out_object_line(json, key);
    json_out_int(json, "n", quality->n);
    for (int i = 0; i < objective->n_measures; i++)
        put_real(json, objective->measures[i].name, quality->values[i]);
    json_out_close_object(json);
}

static void put_rows(struct json_out *json, const struct trainer *trainer)
{
    json_out_array(json, "rows");
    for (int64_t i = 0; i < trainer->n_rows; i++) {
        const struct epoch_row *row = &trainer->rows[i];
        json_out_object_line(json, NULL);
        put_real(json, "learning_rate", row->learning_rate);
        put_real(json, "train_loss", row->train.loss);
        put_real(json, "val_loss", row->val.loss);
        put_real(json, "seconds", row->seconds);
        put_real(json, "waiting", row->waiting);
        if (config_private(trainer->config))
            put_real(json, "epsilon", row->epsilon);
        put_quality(json, "train", trainer->learning.objective, &row->train);
        put_quality(json, "val", trainer->learning.objective, &row->val);
        json_out_close_object(json);
    }
    json_out_close_array(json);
}

static void put_judged(struct json_out *json, const struct schedule_state *judged)
{
    json_out_object_line(json, "judged");
    put_real(json, "best", judged->best);
    json_out_int(json, "best_epoch", judged->best_epoch);
    json_out_int(json, "epochs_flat", judged->epochs_flat);
    json_out_int(json, "epochs_no_better", judged->epochs_no_better);
    json_out_int(json, "reductions", judged->reductions);
    json_out_close_object(json);
}

void trainer_data_text(const struct trainer *trainer, char out[TRAINER_HASH_TEXT])
{
    snprintf(out, TRAINER_HASH_TEXT, "%016llx", (unsigned long long)trainer->data_hash);
}

static void put_state(struct json_out *json, const struct trainer *trainer,
                      const struct predictions *seen, const char *config)
{
    char data[TRAINER_HASH_TEXT];
    trainer_data_text(trainer, data);
    json_out_object(json, NULL);
    json_out_text(json, "program", "microtome " MICROTOME_VERSION);
    json_out_int(json, "epoch", trainer->epoch);
    json_out_int(json, "step", trainer->step);
    json_out_int(json, "skipped", trainer->skipped);
    json_out_bool(json, "finished", trainer->finished);
    json_out_int(json, "optimizer_steps", optimizer_steps(trainer->optimizer));
    json_out_int(json, "ema_updates", trainer->ema ? ema_updates(trainer->ema) : 0);
    json_out_int(json, "seen", seen->n);
    put_real(json, "seen_loss", seen->loss_sum);
    json_out_text(json, "data", data);
    json_out_int(json, "ranks", trainer->data_ranks->size);
    json_out_int(json, "step_images", trainer_step_images(trainer));
    json_out_int(json, "steps", trainer_steps(trainer));
    put_real(json, "learning_rate", trainer->schedule.learning_rate);
    json_out_int(json, "threads", trainer->threads);
    json_out_int(json, "plan_budget", (int64_t)trainer->plan_budget);
    json_out_text(json, "config", config);
    put_judged(json, &trainer->judged);
    put_rows(json, trainer);
    json_out_close_object(json);
}

static char *state_text(const struct trainer *trainer, const struct predictions *seen)
{
    char *text = NULL, *config = config_text(trainer->config);
    size_t size = 0;
    FILE *memory = config ? open_memstream(&text, &size) : NULL;
    if (memory) {
        struct json_out json;
        json_out_begin(&json, memory);
        put_state(&json, trainer, seen, config);
        json_out_end(&json);
        if (fclose(memory) != 0) {
            free(text);
            text = NULL;
        }
    }
    free(config);
    return text;
}

/* --- files --- */

char *trainer_step_path(const struct trainer *trainer, int64_t step)
{
    return text_format("%s/checkpoints/step-%010lld.safetensors", trainer->request->folder,
                       (long long)step);
}

char *trainer_best_path(const struct trainer *trainer, int64_t epoch)
{
    return text_format("%s/checkpoints/best-%010lld.safetensors", trainer->request->folder,
                       (long long)epoch);
}

int64_t trainer_steps(const struct trainer *trainer)
{
    return trainer->epoch * trainer->steps_per_epoch + trainer->step + trainer->other_steps;
}

int64_t trainer_step_images(const struct trainer *trainer)
{
    return trainer->config->train.batch * trainer->config->train.accumulate *
           trainer->data_ranks->size;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* The numbers of the files "<kind>-<number>.safetensors", ascending; the caller's. */
int64_t *trainer_list(const struct trainer *trainer, const char *kind, size_t *n)
{
    char *path = trainer_path(trainer, "checkpoints"), format[64];
    int64_t *numbers = calloc(MAX_NAMES, sizeof *numbers);
    DIR *folder = path ? opendir(path) : NULL;
    struct dirent *entry;
    snprintf(format, sizeof format, "%s-%%10lld.safetensors%%n", kind);
    *n = 0;
    while (folder && numbers && *n < MAX_NAMES && (entry = readdir(folder))) {
        long long number = 0;
        int end = 0;
        if (sscanf(entry->d_name, format, &number, &end) == 1 && end > 0 && !entry->d_name[end])
            numbers[(*n)++] = number;
    }
    if (folder)
        closedir(folder);
    free(path);
    if (numbers)
        qsort(numbers, *n, sizeof *numbers, by_number);
    return numbers;
}

static void remove_file(char *path)
{
    if (path)
        unlink(path); /* if it stays, the disk is fuller; no result depends on it */
    free(path);
}

/* The last few steps stay, and the best weights that those may still need. */
static void prune(const struct trainer *trainer)
{
    size_t n = 0, keep = (size_t)trainer->config->checkpoint.keep, known = 0;
    int64_t *steps = trainer_list(trainer, "step", &n);
    for (size_t i = 0; steps && i + keep < n; i++) {
        remove_file(trainer_step_path(trainer, steps[i]));
        trainer_compress_remove(trainer, steps[i]);
    }
    free(steps);
    int64_t *best = trainer_list(trainer, "best", &n);
    while (best && known < n && best[known] <= trainer->judged.best_epoch)
        known++;
    for (size_t i = 0; best && i + keep < known; i++)
        remove_file(trainer_best_path(trainer, best[i]));
    free(best);
}

/* arrays and seen: of all ranks. */
static bool write_as(const struct trainer *trainer, struct trainer_arrays *arrays,
                     const struct predictions *seen, const char *path, struct err *err)
{
    char *state = state_text(trainer, seen);
    arrays_add(arrays, "seen", "scores", seen->values, seen->n * seen->outputs);
    arrays_add(arrays, "seen", "labels", seen->truths, seen->n);
    bool ok = state && !arrays->failed;
    ok = ok ? checkpoint_write(path, arrays->items, arrays->n, state, err)
            : err_memory(err, "a checkpoint");
    free(state);
    return ok;
}

/* Collective: all ranks tell what they have, the first writes. Frees the path. */
static bool save_as(const struct trainer *trainer, char *path, struct err *err)
{
    struct predictions seen = { 0 };
    struct trainer_arrays arrays = trainer_arrays(trainer);
    bool ok = (path && !arrays.failed) || err_memory(err, "a checkpoint");
    ok = trainer_agree(trainer, ok, err) && trainer_gather(trainer, &trainer->seen, &seen, err) &&
         trainer_arrays_gather(trainer, &arrays, err) &&
         trainer_agree(
             trainer, !trainer_leads(trainer) || write_as(trainer, &arrays, &seen, path, err), err);
    predictions_free(&seen);
    trainer_arrays_free(&arrays);
    free(path);
    return ok;
}

bool trainer_save(struct trainer *trainer, struct err *err)
{
    if (!trainer_compress_save(trainer, err) ||
        !save_as(trainer, trainer_step_path(trainer, trainer_steps(trainer)), err))
        return false;
    if (trainer_leads(trainer))
        prune(trainer);
    return true;
}

bool trainer_save_best(struct trainer *trainer, struct err *err)
{
    return save_as(trainer, trainer_best_path(trainer, trainer->epoch), err);
}

bool trainer_has_checkpoint(const struct trainer *trainer)
{
    size_t n = 0;
    free(trainer_list(trainer, "step", &n));
    return n > 0;
}

void trainer_clear(const struct trainer *trainer)
{
    size_t n = 0;
    int64_t *steps = trainer_list(trainer, "step", &n);
    for (size_t i = 0; steps && i < n; i++) {
        remove_file(trainer_step_path(trainer, steps[i]));
        trainer_compress_remove(trainer, steps[i]);
    }
    free(steps);
    int64_t *best = trainer_list(trainer, "best", &n);
    for (size_t i = 0; best && i < n; i++)
        remove_file(trainer_best_path(trainer, best[i]));
    free(best);
}
