/* text_model.c: see text_model.h. */
#include "train/text_model.h"
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "net/model/weights.h"
#include "net/zoo/zoo.h"

bool text_model_is(const char *model)
{
    struct model_config config = { 0 };
    char *path = file_beside(model, "config.json");
    bool texts = path && file_exists(path) && model_config_read(path, &config, NULL) &&
                 config.text.tokenizer != NULL;
    model_config_free(&config);
    free(path);
    return texts;
}

void text_model_close(struct text_model *m)
{
    graph_free(m->graph);
    tokenizer_free(m->tokenizer);
    model_config_free(&m->config);
}

static bool open_network(const char *weights, int64_t batch, struct text_model *m, struct err *err)
{
    const struct model_config *config = &m->config;
    struct zoo_options options = { .batch = batch,
                                   .channels = tokenizer_size(m->tokenizer),
                                   .height = config->text.max_tokens,
                                   .classes = config->num_classes };
    const struct zoo_network *network = config->network ? zoo_find(config->network, err) : NULL;
    if (!network || network->input != ZOO_TEXT)
        return err_set(err, ERR_FORMAT, "config.json: '%s' is not a network of texts",
                       config->network ? config->network : "");
    return zoo_build(network->name, &options, &m->graph, err) && graph_allocate(m->graph, err) &&
           weights_read(m->graph, weights, NULL, NULL, err);
}

bool text_model_open(const char *model, int64_t batch, struct text_model *m, struct err *err)
{
    char *card = file_beside(model, "config.json");
    char *weights = file_is_folder(model) ? file_beside(model, "model.safetensors") : strdup(model);
    char *tokenizer = NULL;
    *m = (struct text_model){ 0 };
    bool ok = (card && weights) || err_memory(err, "the model");
    ok = ok && model_config_read(card, &m->config, err) &&
         (m->config.objective == OBJECTIVE_CLASSIFY_TEXT ||
          err_set(err, ERR_USAGE,
                  "%s: recovers masked tokens and gives no scores; start a classifier from it: "
                  "network.weights",
                  model)) &&
         ((tokenizer = file_beside(model, m->config.text.tokenizer)) ||
          err_memory(err, "the model"));
    const struct model_text *text = &m->config.text;
    struct tokenizer_options options = { text->keep_case, text->keep_case };
    ok = ok && tokenizer_open(tokenizer, &options, &m->tokenizer, err);
    m->sequence = (struct sequence){ m->tokenizer, text->max_tokens, (enum sequence_rule)text->rule,
                                     text->overlap };
    ok = ok && sequence_check(&m->sequence, err) && open_network(weights, batch, m, err);
    free(card);
    free(weights);
    free(tokenizer);
    return ok;
}
