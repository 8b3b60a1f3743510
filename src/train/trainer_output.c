/* trainer_output.c: the output files of a training (trainer.h). Every file is written to a
 * temporary file and renamed. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/file.h"
#include "base/json.h"
#include "base/run.h"
#include "base/version.h"
#include "net/model/model_config.h"
#include "net/onnx/onnx.h"
#include "net/model/weights.h"
#include "plot/curves.h"
#include "train/trainer.h"
#include "base/text.h"
#include "base/clock.h"

char *trainer_path(const struct trainer *trainer, const char *name)
{
    return text_format("%s/%s", trainer->request->folder, name);
}

static bool begin(const struct trainer *trainer, const char *name, struct file_out *out,
                  struct err *err)
{
    return file_out_open_in(out, trainer->request->folder, name, err);
}

bool trainer_write_config(const struct trainer *trainer, struct err *err)
{
    struct file_out out;
    if (!begin(trainer, "config.yaml", &out, err))
        return false;
    config_print(trainer->config, out.stream);
    return file_out_commit(&out, err);
}

/* --- metrics --- */

/* Takes the columns of a row one by one, in the order of metrics.csv. */
typedef void (*column_fn)(void *arg, const char *name, double value);

static void put_measures(const struct objective *objective, const char *side, bool only_main,
                         const struct quality *quality, column_fn put, void *arg)
{
    char name[64];
    snprintf(name, sizeof name, "%s_loss", side);
    put(arg, name, quality->loss);
    for (int i = 0; i < objective->n_measures; i++) {
        snprintf(name, sizeof name, "%s_%s", side, objective->measures[i].name);
        if (objective->measures[i].main || !only_main)
            put(arg, name, quality->values[i]);
    }
}

static void put_columns(const struct trainer *trainer, const struct epoch_row *row, column_fn put,
                        void *arg)
{
    const struct objective *objective = trainer->learning.objective;
    put(arg, "learning_rate", row->learning_rate);
    put_measures(objective, "train", true, &row->train, put, arg);
    put_measures(objective, "val", false, &row->val, put, arg);
    put(arg, "seconds", row->seconds);
    put(arg, "waiting", row->waiting);
    if (config_private(trainer->config))
        put(arg, "epsilon", row->epsilon);
}

static void put_name(void *arg, const char *name, double value)
{
    (void)value;
    fprintf(arg, ",%s", name);
}

static void put_value(void *arg, const char *name, double value)
{
    (void)name;
    if (isfinite(value))
        fprintf(arg, ",%.9g", value);
    else
        fputc(',', arg);
}

static void put_json(void *arg, const char *name, double value)
{
    json_out_real(arg, name, value);
}

static bool write_csv(const struct trainer *trainer, struct err *err)
{
    struct file_out out;
    if (!begin(trainer, "metrics.csv", &out, err))
        return false;
    fputs("epoch", out.stream);
    put_columns(trainer, &(struct epoch_row){ 0 }, put_name, out.stream);
    fputc('\n', out.stream);
    for (int64_t i = 0; i < trainer->n_rows; i++) {
        fprintf(out.stream, "%lld", (long long)i + 1);
        put_columns(trainer, &trainer->rows[i], put_value, out.stream);
        fputc('\n', out.stream);
    }
    return file_out_commit(&out, err);
}

static void write_test(struct json_out *json, const struct objective *objective,
                       const struct quality *test)
{
    json_out_object(json, "test");
    json_out_int(json, "patches", test->n);
    json_out_real(json, "loss", test->loss);
    for (int i = 0; i < objective->n_measures; i++)
        json_out_real(json, objective->measures[i].name, test->values[i]);
    json_out_close_object(json);
}

static bool write_json(const struct trainer *trainer, struct err *err)
{
    struct file_out out;
    struct json_out json;
    if (!begin(trainer, "metrics.json", &out, err))
        return false;
    json_out_begin(&json, out.stream);
    json_out_object(&json, NULL);
    json_out_int(&json, "best_epoch", trainer->judged.best_epoch + 1);
    json_out_int(&json, "steps_skipped", trainer->skipped);
    json_out_array(&json, "epochs");
    for (int64_t i = 0; i < trainer->n_rows; i++) {
        json_out_object_line(&json, NULL);
        json_out_int(&json, "epoch", i + 1);
        put_columns(trainer, &trainer->rows[i], put_json, &json);
        json_out_close_object(&json);
    }
    json_out_close_array(&json);
    if (trainer->tested)
        write_test(&json, trainer->learning.objective, &trainer->test);
    json_out_close_object(&json);
    json_out_end(&json);
    return file_out_commit(&out, err);
}

#define MOST_PANELS (OBJECTIVE_MOST_MEASURES + 2)

/* A panel with the curves of the training and the validation data; measure -1: the loss. values [2,
 * n] and pair [2] are room for them. */
static struct curve_panel draw_pair(const struct trainer *trainer, int measure, double *values,
                                    struct curve *pair)
{
    const struct objective *objective = trainer->learning.objective;
    int64_t n = trainer->n_rows;
    for (int64_t i = 0; i < n; i++) {
        const struct epoch_row *row = &trainer->rows[i];
        values[i] = measure < 0 ? row->train.loss : row->train.values[measure];
        values[n + i] = measure < 0 ? row->val.loss : row->val.values[measure];
    }
    pair[0] = (struct curve){ "training", values, true };
    pair[1] = (struct curve){ "validation", values + n, false };
    return (struct curve_panel){ .title = measure < 0 ? "loss" : objective->measures[measure].title,
                                 .curves = pair,
                                 .n_curves = 2 };
}

/* values [2 * MOST_PANELS, n]: room for the curves and x. */
static bool draw(const struct trainer *trainer, double *values, const char *svg, const char *png,
                 struct err *err)
{
    const struct objective *objective = trainer->learning.objective;
    struct curve pairs[MOST_PANELS][2];
    struct curve_panel panels[MOST_PANELS];
    int64_t n = trainer->n_rows;
    int n_panels = 1;
    panels[0] = draw_pair(trainer, -1, values, pairs[0]);
    for (; objective->plots[n_panels - 1]; n_panels++)
        panels[n_panels] =
            draw_pair(trainer, objective_measure(objective, objective->plots[n_panels - 1]),
                      values + 2 * n_panels * n, pairs[n_panels]);
    double *rate = values + 2 * n_panels * n, *x = rate + n;
    for (int64_t i = 0; i < n; i++) {
        rate[i] = trainer->rows[i].learning_rate;
        x[i] = (double)i + 1;
    }
    struct curve rates = { "learning rate", rate, false };
    panels[n_panels++] =
        (struct curve_panel){ .title = "learning rate", .curves = &rates, .n_curves = 1 };
    return curves_write(svg, png, trainer->config->network.name, "epoch", x, n, panels, n_panels,
                        (double)trainer->judged.best_epoch + 1, err);
}

static bool write_curves(const struct trainer *trainer, struct err *err)
{
    char *svg = trainer_path(trainer, "curves.svg"), *png = trainer_path(trainer, "curves.png");
    double *values = calloc((size_t)trainer->n_rows * 2 * MOST_PANELS + 1, sizeof *values);
    bool ok =
        svg && png && values ? draw(trainer, values, svg, png, err) : err_memory(err, "curves");
    free(values);
    free(svg);
    free(png);
    return ok;
}

bool trainer_write_metrics(const struct trainer *trainer, struct err *err)
{
    return write_csv(trainer, err) && write_json(trainer, err) &&
           (trainer->n_rows == 0 || write_curves(trainer, err));
}

/* --- the model --- */

static void describe_output(const char *name, struct model_config *config)
{
    struct model_output *output = &config->outputs[0];
    if (strcmp(name, "logits") != 0) /* of an encoder or a generator */
        return;
    snprintf(output->name, sizeof output->name, "%s", name);
    output->meaning = config->objective == OBJECTIVE_REGRESS ? MEANING_NUMBER : MEANING_LOGITS;
    config->n_outputs = 1;
}

/* How patches are prepared is what validation did; the objective knows better, or adds what is
 * predicted. */
static void describe_model(const struct trainer *trainer, struct model_config *config)
{
    *config = trainer->prepare;
    trainer->learning.objective->describe(&trainer->learning, config);
    config->network = config->architecture = trainer->config->network.name;
    config->padding = (enum padding)trainer->config->network.padding;
    config->head = (enum head_kind)trainer->config->network.head;
    config->norm = (enum norm_rule)trainer->config->network.norm;
    describe_output(trainer->learning.objective->output, config);
    trainer_private_describe(trainer, &config->privacy);
}

static bool write_onnx(const struct graph *model, const struct model_config *config,
                       const char *path, struct err *err)
{
    struct graph *graph = NULL;
    char *text = NULL;
    bool ok =
        model_config_text(config, &text, err) && transform_resize(model, 1, 0, 0, &graph, err);
    struct onnx_write_options options = { .config = text };
    ok = ok && onnx_write(graph, path, &options, err);
    graph_free(graph);
    free(text);
    return ok;
}

bool trainer_write_model(const struct trainer *trainer, struct err *err)
{
    char *weights = trainer_path(trainer, "model.safetensors");
    char *onnx = trainer_path(trainer, "model.onnx"), *path = trainer_path(trainer, "config.json");
    struct safetensors_note note = { "program", "microtome " MICROTOME_VERSION };
    struct model_config config;
    struct graph *model = NULL;
    describe_model(trainer, &config);
    bool ok = (weights && onnx && path) || err_memory(err, "the model");
    ok = ok && trainer_merge(trainer, &model, err) &&
         weights_write(model, weights, &note, 1, err) && model_config_write(path, &config, err) &&
         (!model_config_images(&config) ||
          write_onnx(model, &config, onnx, err)); /* ONNX: of images */
    const struct learning *learning = &trainer->learning;
    if (ok && learning->objective->accompany)
        ok = learning->objective->accompany(learning, trainer->request->folder, err);
    graph_free(model);
    free(weights);
    free(onnx);
    free(path);
    return ok;
}

/* --- the record of the run --- */

static void write_data(const struct trainer *trainer, struct json_out *json)
{
    static const char *const names[] = { "train", "val", "test" };
    int64_t *count = calloc((size_t)trainer->dataset.n_classes + 1, sizeof *count);
    bool labelled = trainer->config->truth == TRUTH_LABELS && /* else they are not looked at */
                    !config_private(trainer->config);
    json_out_object(json, "data");
    json_out_int(json, "patients", dataset_real_patients(&trainer->dataset));
    if (trainer->dataset.n_synthetic > 0)
        json_out_int(json, "synthetic", trainer->dataset.n_synthetic);
    for (int side = DATA_TRAIN; count && side <= DATA_TEST; side++) {
        int64_t all = dataset_count(&trainer->dataset, (enum data_side)side, count);
        if (side == DATA_TEST && !trainer->tester)
            continue;
        json_out_object_line(json, names[side]);
        if (!labelled)
            json_out_int(json, "patches", all);
        for (int64_t c = 0; labelled && c < trainer->dataset.n_classes; c++)
            json_out_int(json, trainer->config->classes.items[c], count[c]);
        json_out_close_object(json);
    }
    json_out_close_object(json);
    free(count);
}

/* On many ranks: how well summing gradients hid behind the backward pass, in this process. */
static void write_sums(const struct trainer *trainer, struct json_out *json)
{
    if (!trainer->buckets)
        return;
    struct buckets_times times = buckets_times(trainer->buckets);
    json_out_object_line(json, "sums");
    json_out_int(json, "buckets", times.buckets);
    json_out_int(json, "hidden_buckets", times.hidden_buckets);
    json_out_int(json, "bytes", times.bytes);
    json_out_int(json, "hidden_bytes", times.hidden_bytes);
    json_out_real(json, "waited_s", times.waited_s);
    json_out_real(json, "exposed_s", times.exposed_s);
    json_out_close_object(json);
}

bool trainer_write_run(const struct trainer *trainer, const char *state, struct err *err)
{
    const struct train_request *request = trainer->request;
    struct file_out out;
    struct json_out json;
    char host[HOST_NAME_MAX + 1] = "";
    gethostname(host, sizeof host - 1);
    if (!begin(trainer, "run.json", &out, err))
        return false;
    json_out_begin(&json, out.stream);
    json_out_object(&json, NULL);
    run_put_command(&json, request->argc, request->argv, host);
    json_out_text(&json, "began", trainer->began);
    json_out_real(&json, "seconds", clock_monotonic_s() - trainer->began_s);
    json_out_text(&json, "state", state);
    json_out_text(&json, "network", trainer->config->network.name);
    json_out_int(&json, "parameters", graph_parameter_count(trainer_network(trainer)));
    write_data(trainer, &json);
    trainer_private_record(trainer, &json);
    json_out_int(&json, "ranks", request->ranks->size);
    write_sums(trainer, &json);
    if (trainer->train->kind->record)
        trainer->train->kind->record(trainer->train, &json);
    json_out_int(&json, "threads", trainer->threads);
    json_out_int(&json, "steps_per_epoch", trainer->steps_per_epoch);
    json_out_int(&json, "epochs", trainer->epoch);
    json_out_int(&json, "epochs_planned", trainer->config->train.epochs);
    json_out_int(&json, "steps", trainer_steps(trainer));
    json_out_int(&json, "best_epoch", trainer->judged.best_epoch + 1);
    json_out_close_object(&json);
    json_out_end(&json);
    return file_out_commit(&out, err);
}
