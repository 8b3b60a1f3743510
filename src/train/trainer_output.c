/* trainer_output.c: the output files of a training (trainer.h). Every file is written to a
 * temporary file and renamed. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/csv.h"
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

/* The columns of a row, in the order of metrics.csv. */
struct column {
    const char *name;
    double (*value)(const struct epoch_row *row);
};

#define COLUMN(name, expression)                                                                   \
    static double get_##name(const struct epoch_row *row)                                          \
    {                                                                                              \
        return expression;                                                                         \
    }
COLUMN(learning_rate, row->learning_rate)
COLUMN(train_loss, row->train_loss)
COLUMN(train_accuracy, row->train.accuracy)
COLUMN(train_auc, row->train.auc)
COLUMN(val_loss, row->val_loss)
COLUMN(val_accuracy, row->val.accuracy)
COLUMN(val_balanced_accuracy, row->val.balanced_accuracy)
COLUMN(val_auc, row->val.auc)
COLUMN(val_f1, row->val.f1)
COLUMN(seconds, row->seconds)
COLUMN(waiting, row->waiting)
#undef COLUMN

static const struct column columns[] = {
    { "learning_rate", get_learning_rate },
    { "train_loss", get_train_loss },
    { "train_accuracy", get_train_accuracy },
    { "train_auc", get_train_auc },
    { "val_loss", get_val_loss },
    { "val_accuracy", get_val_accuracy },
    { "val_balanced_accuracy", get_val_balanced_accuracy },
    { "val_auc", get_val_auc },
    { "val_f1", get_val_f1 },
    { "seconds", get_seconds },
    { "waiting", get_waiting },
};
#define N_COLUMNS (sizeof columns / sizeof *columns)

static bool write_csv(const struct trainer *trainer, struct err *err)
{
    struct file_out out;
    if (!begin(trainer, "metrics.csv", &out, err))
        return false;
    fputs("epoch", out.stream);
    for (size_t c = 0; c < N_COLUMNS; c++)
        fprintf(out.stream, ",%s", columns[c].name);
    fputc('\n', out.stream);
    for (int64_t i = 0; i < trainer->n_rows; i++) {
        fprintf(out.stream, "%lld", (long long)i + 1);
        for (size_t c = 0; c < N_COLUMNS; c++) {
            double value = columns[c].value(&trainer->rows[i]);
            if (isfinite(value))
                fprintf(out.stream, ",%.9g", value);
            else
                fputc(',', out.stream);
        }
        fputc('\n', out.stream);
    }
    return file_out_commit(&out, err);
}

static void write_test(struct json_out *json, const struct metrics *test, double loss)
{
    json_out_object(json, "test");
    json_out_int(json, "patches", test->n);
    json_out_real(json, "loss", loss);
    json_out_real(json, "accuracy", test->accuracy);
    json_out_real(json, "balanced_accuracy", test->balanced_accuracy);
    json_out_real(json, "auc", test->auc);
    json_out_real(json, "f1", test->f1);
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
        for (size_t c = 0; c < N_COLUMNS; c++)
            json_out_real(&json, columns[c].name, columns[c].value(&trainer->rows[i]));
        json_out_close_object(&json);
    }
    json_out_close_array(&json);
    if (trainer->tested)
        write_test(&json, &trainer->test, trainer->test_loss);
    json_out_close_object(&json);
    json_out_end(&json);
    return file_out_commit(&out, err);
}

/* values [8, n]: room for the curves and x. */
static bool draw(const struct trainer *trainer, double *values, const char *svg, const char *png,
                 struct err *err)
{
    static double (*const get[])(const struct epoch_row *row) = {
        get_train_loss,     get_val_loss,     get_train_auc,     get_val_auc,
        get_train_accuracy, get_val_accuracy, get_learning_rate,
    };
    enum { CURVES = sizeof get / sizeof *get };
    int64_t n = trainer->n_rows;
    double *x = values + CURVES * n;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t c = 0; c < CURVES; c++)
            values[c * n + i] = get[c](&trainer->rows[i]);
        x[i] = (double)i + 1;
    }
    struct curve loss[] = { { "training", values, true }, { "validation", values + n, false } };
    struct curve auc[] = { { "training", values + 2 * n, true },
                           { "validation", values + 3 * n, false } };
    struct curve accuracy[] = { { "training", values + 4 * n, true },
                                { "validation", values + 5 * n, false } };
    struct curve rate[] = { { "learning rate", values + 6 * n, false } };
    struct curve_panel panels[] = {
        { .title = "loss", .curves = loss, .n_curves = 2 },
        { .title = "AUC", .curves = auc, .n_curves = 2 },
        { .title = "accuracy", .curves = accuracy, .n_curves = 2 },
        { .title = "learning rate", .curves = rate, .n_curves = 1 },
    };
    return curves_write(svg, png, trainer->config->network.name, "epoch", x, n, panels, 4,
                        (double)trainer->judged.best_epoch + 1, err);
}

static bool write_curves(const struct trainer *trainer, struct err *err)
{
    char *svg = trainer_path(trainer, "curves.svg"), *png = trainer_path(trainer, "curves.png");
    double *values = calloc((size_t)trainer->n_rows * 8 + 1, sizeof *values);
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

/* How patches are prepared is what validation did, or with a teacher what the teacher says. */
static void describe_model(const struct trainer *trainer, struct model_config *config)
{
    *config = trainer->distill ? *distill_described(trainer->distill) : trainer->prepare;
    config->num_classes = trainer->dataset.n_classes;
    config->class_names = trainer->config->classes.items;
    config->network = config->architecture = trainer->config->network.name;
    config->padding = (enum padding)trainer->config->network.padding;
}

static bool write_onnx(const struct trainer *trainer, const struct model_config *config,
                       const char *path, struct err *err)
{
    struct graph *graph = NULL;
    char *text = NULL;
    bool ok = model_config_text(config, &text, err) &&
              transform_resize(trainer_model(trainer), 1, 0, 0, &graph, err);
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
    describe_model(trainer, &config);
    bool ok = (weights && onnx && path) || err_memory(err, "the model");
    ok = ok && weights_write(trainer_model(trainer), weights, &note, 1, err) &&
         model_config_write(path, &config, err) && write_onnx(trainer, &config, onnx, err);
    free(weights);
    free(onnx);
    free(path);
    return ok;
}

/* --- scores of the best weights --- */

/* "<prefix><name>" in the folder, the caller's. */
static char *prefixed(const struct trainer *trainer, const char *prefix, const char *name)
{
    return text_format("%s/%s%s", trainer->request->folder, prefix, name);
}

static bool write_scores(const struct trainer *trainer, const char *path,
                         const struct predictions *val, struct err *err)
{
    struct file_out out;
    if (!file_out_open(&out, path, err))
        return false;
    fputs("sample,patient,label", out.stream);
    for (size_t c = 0; c < trainer->config->classes.n; c++) {
        fputs(",prob_", out.stream);
        csv_write_cell(out.stream, trainer->config->classes.items[c]);
    }
    fputc('\n', out.stream);
    for (int64_t i = 0; i < val->n; i++) {
        char *name = dataset_sample_name(&trainer->dataset, val->samples[i]);
        csv_write_cell(out.stream, name ? name : "");
        fputc(',', out.stream);
        csv_write_cell(out.stream, dataset_patient(&trainer->dataset, val->samples[i]));
        fprintf(out.stream, ",%d", val->labels[i]);
        for (int64_t c = 0; c < val->classes; c++)
            fprintf(out.stream, ",%.9g", (double)val->scores[i * val->classes + c]);
        fputc('\n', out.stream);
        free(name);
    }
    return file_out_commit(&out, err);
}

static bool write_confusion(const struct texts *classes, const char *path, const int64_t *confusion,
                            struct err *err)
{
    struct file_out out;
    if (!file_out_open(&out, path, err))
        return false;
    fputs("truth", out.stream);
    for (size_t c = 0; c < classes->n; c++) {
        fputc(',', out.stream);
        csv_write_cell(out.stream, classes->items[c]);
    }
    for (size_t r = 0; r < classes->n; r++) {
        fputc('\n', out.stream);
        csv_write_cell(out.stream, classes->items[r]);
        for (size_t c = 0; c < classes->n; c++)
            fprintf(out.stream, ",%lld", (long long)confusion[r * classes->n + c]);
    }
    fputc('\n', out.stream);
    return file_out_commit(&out, err);
}

bool trainer_write_scores(const struct trainer *trainer, const char *prefix,
                          const struct predictions *found, const int64_t *confusion,
                          struct err *err)
{
    const struct texts *classes = &trainer->config->classes;
    char *scores = prefixed(trainer, prefix, "scores.csv");
    char *csv = prefixed(trainer, prefix, "confusion.csv");
    char *svg = prefixed(trainer, prefix, "confusion.svg");
    char *png = prefixed(trainer, prefix, "confusion.png");
    bool ok = (scores && csv && svg && png) || err_memory(err, "the scores");
    ok = ok && write_scores(trainer, scores, found, err) &&
         write_confusion(classes, csv, confusion, err) &&
         curves_confusion(svg, png, confusion, (const char *const *)classes->items,
                          (int64_t)classes->n, err);
    free(scores);
    free(csv);
    free(svg);
    free(png);
    return ok;
}

/* --- the record of the run --- */

static void write_data(const struct trainer *trainer, struct json_out *json)
{
    static const char *const names[] = { "train", "val", "test" };
    int64_t *count = calloc((size_t)trainer->dataset.n_classes + 1, sizeof *count);
    bool labelled = !trainer->config->distill.teacher[0]; /* else labels are not looked at */
    json_out_object(json, "data");
    json_out_int(json, "patients", trainer->dataset.n_patients);
    for (int side = DATA_TRAIN; count && side <= DATA_TEST; side++) {
        int64_t all = dataset_count(&trainer->dataset, (enum data_side)side, count);
        if (side == DATA_TEST && !trainer->test_loader)
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
    json_out_int(&json, "parameters", graph_parameter_count(trainer->graph));
    write_data(trainer, &json);
    json_out_int(&json, "ranks", request->ranks->size);
    write_sums(trainer, &json);
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
