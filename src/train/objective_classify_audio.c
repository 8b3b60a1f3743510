/* objective_classify_audio.c: one of several classes for a recording, learnt from labels
 * (objective.h). It is what classify means where data.audio is given. */
#include "train/dataset_recordings.h"
#include "train/network.h"
#include "train/objective_classify.h"

static bool audio_build(struct learning *learning, struct graph **out, struct err *err)
{
    const struct frames_rule *rule = &learning->dataset->recordings->rule;
    learning->outputs = learning->dataset->n_classes;
    return network_build_audio(learning->config, learning->outputs, rule->frames,
                               mel_options_of(rule->mel)->bands, out, err) &&
           network_start(learning->config, *out, learning->ctx->console, err);
}

static void audio_describe(const struct learning *learning, struct model_config *card)
{
    classify_describe(learning, card);
    card->objective = OBJECTIVE_CLASSIFY_AUDIO;
}

static const struct objective_feed audio_feeds[] = { { "frames", "input", false },
                                                     { "mask", "mask", false },
                                                     { 0 } };

const struct objective objective_classify_audio = {
    .name = "classify_audio",
    .takes = "tables of recordings with labels (CSV, WAV)",
    .truth = TRUTH_LABELS,
    .feeds = audio_feeds,
    .output = "logits",
    .losses = classify_losses,
    .measures = classes_measures,
    .n_measures = CLASSES_N_MEASURES,
    .plots = classes_plots,
    .monitor = "auc",
    .mode = PLAN_TRAIN,
    .test = true,
    .settle = classify_settle,
    .inputs = classify_inputs,
    .build = audio_build,
    .loss = classify_loss,
    .keep = classify_keep,
    .predict = classify_predict,
    .restore = classify_restore,
    .judge = classes_judge,
    .write = classes_write,
    .describe = audio_describe,
    .free = classify_free,
};
