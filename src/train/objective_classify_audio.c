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
    OBJECTIVE_OF_CLASSES,
    .name = "classify_audio",
    .takes = "tables of recordings with labels (CSV, WAV)",
    .feeds = audio_feeds,
    .build = audio_build,
    .describe = audio_describe,
};
