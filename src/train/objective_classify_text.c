/* objective_classify_text.c: one of several classes for a text, learnt from labels (objective.h).
 * It is what classify means where data.text is given. */
#include "train/network.h"
#include "train/objective_classify.h"
#include "train/objective_texts.h"

static bool text_build(struct learning *learning, struct graph **out, struct err *err)
{
    const struct dataset_texts *texts = learning->dataset->texts;
    learning->outputs = learning->dataset->n_classes;
    return texts_check_start(learning, err) &&
           network_build_text(learning->config, learning->outputs, tokenizer_size(texts->tokenizer),
                              out, err) &&
           network_start(learning->config, *out, learning->ctx->console, err);
}

static void text_describe(const struct learning *learning, struct model_config *card)
{
    classify_describe(learning, card);
    card->objective = OBJECTIVE_CLASSIFY_TEXT;
}

static const struct objective_feed text_feeds[] = { { "tokens", "input", false },
                                                    { "mask", "mask", false },
                                                    { 0 } };

const struct objective objective_classify_text = {
    OBJECTIVE_OF_CLASSES,
    .name = "classify_text",
    .takes = "tables of texts with labels (CSV)",
    .feeds = text_feeds,
    .build = text_build,
    .describe = text_describe,
    .accompany = texts_accompany,
};
