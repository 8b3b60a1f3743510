/* score_recordings.c: see score_recordings.h. */
#include "train/score_recordings.h"
#include <stdlib.h>
#include <string.h>
#include "base/csv.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/text.h"
#include "net/graph/transform.h"
#include "net/model/model.h"
#include "net/model/weights.h"
#include "net/plan/plan.h"
#include "net/zoo/zoo.h"
#include "train/dataset_origin.h"
#include "train/dataset_recordings.h"
#include "train/score_table.h"

enum { BATCH = 8 };

struct audio_model {
    struct model_config config;
    struct mel *mel;
    struct frames_rule rule;
    struct graph *graph; /* for inference, of BATCH recordings */
    struct plan *plan;
};

bool score_recordings_takes(const char *model)
{
    struct model_config config = { 0 };
    char *path = file_beside(model, "config.json");
    bool takes = path && file_exists(path) && model_config_read(path, &config, NULL) &&
                 config.audio.column != NULL;
    model_config_free(&config);
    free(path);
    return takes;
}

static void close_model(struct audio_model *m)
{
    plan_free(m->plan);
    graph_free(m->graph);
    mel_free(m->mel);
    model_config_free(&m->config);
}

/* Frames as the model's card says. */
static bool open_frames(struct audio_model *m, const char *card, struct err *err)
{
    const struct model_audio *audio = &m->config.audio;
    struct mel_options options = { audio->sample_rate_hz, audio->window_samples, audio->hop_samples,
                                   audio->mels };
    if (!mel_new(&options, &m->mel, err))
        return err_prefix(err, card);
    m->rule = (struct frames_rule){ m->mel, audio->max_frames, audio->refuse };
    return true;
}

static bool open_network(const char *weights, const struct ctx *ctx, struct audio_model *m,
                         struct err *err)
{
    const struct model_config *config = &m->config;
    struct zoo_options options = { .batch = BATCH,
                                   .channels = config->audio.mels,
                                   .height = config->audio.max_frames,
                                   .classes = config->num_classes };
    struct plan_options how = { .mode = PLAN_INFER, .threads = pool_workers(ctx->pool) };
    const struct zoo_network *network = config->network ? zoo_find(config->network, err) : NULL;
    struct graph *graph = NULL;
    if (!network || network->input != ZOO_AUDIO)
        return err_set(err, ERR_FORMAT, "config.json: '%s' is not a network of recordings",
                       config->network ? config->network : "");
    bool ok = zoo_build(network->name, &options, &graph, err) && graph_allocate(graph, err) &&
              weights_read(graph, weights, NULL, NULL, err) &&
              transform_for_inference(graph, NULL, 0, &m->graph, err) &&
              plan_new(m->graph, &how, &m->plan, err);
    graph_free(graph);
    return ok;
}

static bool open_model(const char *model, const struct ctx *ctx, struct audio_model *m,
                       struct err *err)
{
    char *card = file_beside(model, "config.json");
    char *weights = file_is_folder(model) ? file_beside(model, "model.safetensors") : strdup(model);
    bool ok = (card && weights) || err_memory(err, "the model");
    ok = ok && model_config_read(card, &m->config, err) && open_frames(m, card, err) &&
         open_network(weights, ctx, m, err);
    free(card);
    free(weights);
    return ok;
}

static bool find_columns(const struct csv *csv, const struct model_audio *audio, int *file,
                         struct score_table_row *out, struct err *err)
{
    *file = csv_column(csv, audio->column);
    out->csv = csv;
    out->label = audio->label ? csv_column(csv, audio->label) : -1;
    out->id = audio->id ? csv_column(csv, audio->id) : -1;
    if (*file < 0)
        return err_set(err, ERR_USAGE,
                       "%s: no column '%s', which had the files in the model's training; rename "
                       "the column that has them",
                       csv->path, audio->column);
    return out->id >= 0 || !audio->id ||
           err_set(err, ERR_USAGE, "%s: no column '%s', which is the id (data.id)", csv->path,
                   audio->id);
}

/* The inputs of slot i of a batch. */
static bool fill_slot(struct audio_model *m, const struct csv *csv, int column, size_t row,
                      int64_t slot, bool *cut, struct err *err)
{
    int64_t frames = m->rule.frames, bands = m->config.audio.mels;
    struct frames read = { 0 };
    if (!text_check(csv, row, column, err))
        return false;
    char *path = recording_path(csv->path, csv_cell(csv, row, column));
    char *line = text_format("%s:%d", csv->path, csv->lines[row]);
    bool ok = (path && line) || err_memory(err, "a recording");
    ok = ok && (frames_read(&m->rule, path, &read, err) || err_prefix(err, line));
    if (ok)
        frames_fill(&m->rule, &read, plan_input(m->plan, 0) + slot * frames * bands,
                    plan_input(m->plan, 1) + slot * (frames / FRAMES_PER_TOKEN));
    *cut = read.cut;
    frames_free(&read);
    free(path);
    free(line);
    return ok;
}

static bool score_rows(struct audio_model *m, const struct csv *csv, const struct ctx *ctx,
                       FILE *stream, struct score_texts_result *result, struct err *err)
{
    struct score_table_row at;
    int column;
    int64_t classes = m->config.num_classes;
    double *scores = calloc((size_t)classes, sizeof *scores);
    bool ok = (scores || err_memory(err, "scores")) &&
              find_columns(csv, &m->config.audio, &column, &at, err);
    if (ok)
        score_table_header(stream, &m->config);
    for (size_t first = 0; ok && first < csv->n_rows; first += BATCH) {
        size_t end = first + BATCH < csv->n_rows ? first + BATCH : csv->n_rows;
        ok = !ctx_stopped(ctx) || err_stopped(err);
        for (int64_t i = 0; ok && i < BATCH; i++) { /* a batch that is not full: its first again */
            bool cut, real = first + (size_t)i < end;
            ok = fill_slot(m, csv, column, real ? first + (size_t)i : first, i, &cut, err);
            result->cut += ok && real && cut;
        }
        ok = ok && plan_forward(m->plan, err);
        for (at.row = first; ok && at.row < end; at.row++)
            score_table_write(stream, &m->config, &at,
                              plan_output(m->plan, 0) + (int64_t)(at.row - first) * classes, scores,
                              result);
    }
    free(scores);
    return ok;
}

/* Scores to the file, which is complete or not there. */
static bool write_scores(struct audio_model *m, const struct csv *csv, const struct ctx *ctx,
                         const char *path, struct score_texts_result *out, struct err *err)
{
    struct file_out file;
    if (!file_out_open(&file, path, err))
        return false;
    if (score_rows(m, csv, ctx, file.stream, out, err))
        return file_out_commit(&file, err);
    file_out_discard(&file);
    return false;
}

bool score_recordings_run(const struct score_texts_request *request, const struct ctx *ctx,
                          struct score_texts_result *out, struct err *err)
{
    struct audio_model m = { 0 };
    struct csv csv = { 0 };
    char *path = text_format("%s/scores.csv", request->folder);
    bool ok = path || err_memory(err, "the scores");
    *out = (struct score_texts_result){ 0 };
    if (ok && file_exists(path) && !request->overwrite)
        ok = err_set(err, ERR_USAGE, "%s: exists; pass --overwrite to replace it", path);
    ok = ok && csv_read(request->table, &csv, err) && open_model(request->model, ctx, &m, err) &&
         file_make_folder(request->folder, err) && write_scores(&m, &csv, ctx, path, out, err);
    csv_free(&csv);
    close_model(&m);
    free(path);
    return ok;
}
