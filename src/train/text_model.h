/* text_model.h: a model that was trained on texts, opened from its folder: weights, card and
 * tokenizer. */
#ifndef TRAIN_TEXT_MODEL_H
#define TRAIN_TEXT_MODEL_H
#include "net/graph/graph.h"
#include "net/model/model_config.h"
#include "text/sequence.h"

struct text_model {
    struct model_config config;
    struct tokenizer *tokenizer;
    struct sequence sequence;
    struct graph *graph; /* as trained, of `batch` texts */
};

/* Is this a model of texts? What cannot be read is none. */
bool text_model_is(const char *model);
/* model: folder of a training, or the weights in it. *out is the caller's; text_model_close, also
 * after a failure. */
bool text_model_open(const char *model, int64_t batch, struct text_model *out, struct err *err);
void text_model_close(struct text_model *model); /* also fine on a zeroed struct */
#endif
