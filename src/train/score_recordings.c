/* score_recordings.c: see score_recordings.h. */
#include "train/score_recordings.h"
#include <stdlib.h>
#include <string.h>
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

static void close_model(void *state)
{
    struct audio_model *m = state;
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

static bool open_model(void *state, const char *model, const struct ctx *ctx, struct err *err)
{
    struct audio_model *m = state;
    char *card = file_beside(model, "config.json");
    char *weights = file_is_folder(model) ? file_beside(model, "model.safetensors") : strdup(model);
    bool ok = (card && weights) || err_memory(err, "the model");
    ok = ok && model_config_read(card, &m->config, err) && open_frames(m, card, err) &&
         open_network(weights, ctx, m, err);
    free(card);
    free(weights);
    return ok;
}

static const struct model_config *config_of(const void *state)
{
    return &((const struct audio_model *)state)->config;
}

static struct score_names names_of(const void *state)
{
    const struct model_audio *audio = &config_of(state)->audio;
    return (struct score_names){ "files", audio->column, audio->label, audio->id };
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

static const float *run(void *state, const struct csv *csv, int column, size_t first, int64_t n,
                        struct score_table_result *result, struct err *err)
{
    struct audio_model *m = state;
    for (int64_t i = 0; i < BATCH; i++) { /* a batch that is not full: its first again */
        bool cut;
        if (!fill_slot(m, csv, column, first + (size_t)(i < n ? i : 0), i, &cut, err))
            return NULL;
        result->cut += i < n && cut;
    }
    return plan_forward(m->plan, err) ? plan_output(m->plan, 0) : NULL;
}

const struct score_kind score_recordings = {
    .bytes = sizeof(struct audio_model),
    .batch = BATCH,
    .open = open_model,
    .close = close_model,
    .config = config_of,
    .names = names_of,
    .run = run,
};
