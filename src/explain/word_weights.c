/* word_weights.c: see word_weights.h. */
#include "explain/word_weights.h"
#include <stdlib.h>
#include "train/objective_classify.h"

const char *const word_method_names[] = { "gradients", "attention", NULL };
const char *const word_method_titles[] = { "Integrated gradients", "Attention" };

void word_weights_free(struct word_weights *weights)
{
    free(weights->words);
    for (int m = 0; m < WORDS_METHODS; m++)
        free(weights->weights[m]);
    free(weights->unread);
    free(weights->scores);
    *weights = (struct word_weights){ 0 };
}

/* A text on its way through the network. */
struct text_pass {
    struct text_probe *probe;
    const struct text_model *model;
    struct token_ids body;
    int64_t windows;
    float *ids, *mask;             /* [tokens] */
    bool *own;                     /* [tokens] */
    double *found;                 /* [tokens] */
    double *tokens[WORDS_METHODS]; /* [body.n] */
    bool *seen;                    /* [body.n] */
    double *logits;                /* [classes] */
    float *outputs;                /* [classes] */
    double *scores;                /* [classes] */
};

static void pass_free(struct text_pass *pass)
{
    token_ids_free(&pass->body);
    free(pass->ids);
    free(pass->mask);
    free(pass->own);
    free(pass->found);
    for (int m = 0; m < WORDS_METHODS; m++)
        free(pass->tokens[m]);
    free(pass->seen);
    free(pass->logits);
    free(pass->outputs);
    free(pass->scores);
}

static bool pass_begin(struct text_pass *pass, const char *text, struct err *err)
{
    const struct sequence *sequence = &pass->model->sequence;
    size_t tokens = (size_t)sequence->tokens, classes = (size_t)pass->model->config.num_classes;
    if (!tokenizer_encode(sequence->tokenizer, text, false, &pass->body, err))
        return false;
    size_t n = (size_t)pass->body.n + 1;
    pass->windows = sequence_count(sequence, pass->body.n);
    pass->ids = calloc(tokens, sizeof *pass->ids);
    pass->mask = calloc(tokens, sizeof *pass->mask);
    pass->own = calloc(tokens, sizeof *pass->own);
    pass->found = calloc(tokens, sizeof *pass->found);
    pass->seen = calloc(n, sizeof *pass->seen);
    pass->logits = calloc(classes, sizeof *pass->logits);
    pass->outputs = calloc(classes, sizeof *pass->outputs);
    pass->scores = calloc(classes, sizeof *pass->scores);
    bool ok = pass->ids && pass->mask && pass->own && pass->found && pass->seen && pass->logits &&
              pass->outputs && pass->scores;
    for (int m = 0; m < WORDS_METHODS; m++)
        ok = (pass->tokens[m] = calloc(n, sizeof *pass->tokens[m])) && ok;
    return ok || err_memory(err, "the words of a text");
}

static bool pass_window(struct text_pass *pass, int64_t window, struct err *err)
{
    const struct sequence *sequence = &pass->model->sequence;
    for (int64_t i = 0; i < sequence->tokens; i++)
        pass->own[i] = sequence_source(sequence, pass->body.n, window, i) >= 0;
    return sequence_fill_ids(sequence, &pass->body, window, pass->ids, pass->mask, err);
}

/* What was found for the tokens of a window, as its part of a mean. */
static void add_found(struct text_pass *pass, enum word_method method, int64_t window)
{
    const struct sequence *sequence = &pass->model->sequence;
    for (int64_t i = 0; i < sequence->tokens; i++) {
        int64_t token = sequence_source(sequence, pass->body.n, window, i);
        if (token < 0)
            continue;
        pass->tokens[method][token] += pass->found[i] / (double)pass->windows;
        pass->seen[token] = true;
    }
}

/* Scores, attention and the class that is explained. */
static bool run_forward(struct text_pass *pass, struct word_weights *out, struct err *err)
{
    const struct model_config *config = &pass->model->config;
    int64_t classes = config->num_classes;
    for (int64_t w = 0; w < pass->windows; w++) {
        if (!pass_window(pass, w, err) ||
            !text_probe_run(pass->probe, pass->ids, pass->mask, pass->logits, pass->found, err))
            return false;
        add_found(pass, WORDS_ATTENTION, w);
        for (int64_t c = 0; c < classes; c++)
            pass->outputs[c] = (float)pass->logits[c];
        classify_scores(pass->outputs, classes, config->independent, pass->scores);
        for (int64_t c = 0; c < classes; c++)
            out->scores[c] += pass->scores[c] / (double)pass->windows;
    }
    int64_t best = 0;
    for (int64_t c = 1; c < classes; c++)
        best = out->scores[c] > out->scores[best] ? c : best;
    out->class_index = out->class_index < 0 ? best : out->class_index;
    return true;
}

static bool run_gradients(struct text_pass *pass, struct word_weights *out, struct err *err)
{
    double windows = (double)pass->windows;
    for (int64_t w = 0; w < pass->windows; w++) {
        struct text_integral integral = { 0 };
        if (!pass_window(pass, w, err) ||
            !text_probe_integrate(pass->probe, pass->ids, pass->mask, pass->own, out->class_index,
                                  pass->found, &integral, err))
            return false;
        add_found(pass, WORDS_GRADIENTS, w);
        out->integral.logit += integral.logit / windows;
        out->integral.baseline += integral.baseline / windows;
        out->integral.sum += integral.sum / windows;
    }
    return true;
}

/* Weights of tokens to those of words. */
static bool add_up(const struct text_pass *pass, uint32_t methods, struct word_weights *out,
                   struct err *err)
{
    size_t n = (size_t)out->n + 1;
    if (!(out->unread = calloc(n, sizeof *out->unread)))
        return err_memory(err, "words");
    for (int m = 0; m < WORDS_METHODS; m++)
        if ((methods & 1u << m) && !(out->weights[m] = calloc(n, sizeof **out->weights)))
            return err_memory(err, "words");
    for (int64_t i = 0; i < out->n; i++)
        for (int64_t t = out->words[i].first; t < out->words[i].first + out->words[i].n; t++) {
            out->unread[i] |= !pass->seen[t];
            for (int m = 0; m < WORDS_METHODS; m++)
                if (out->weights[m])
                    out->weights[m][i] += pass->tokens[m][t];
        }
    return true;
}

bool word_weights_make(struct text_probe *probe, const struct text_model *model, const char *text,
                       uint32_t methods, int64_t class_index, struct word_weights *out,
                       struct err *err)
{
    struct text_pass pass = { .probe = probe, .model = model };
    *out = (struct word_weights){ .class_index = class_index };
    out->scores = calloc((size_t)model->config.num_classes, sizeof *out->scores);
    bool ok = (out->scores || err_memory(err, "words")) && pass_begin(&pass, text, err) &&
              run_forward(&pass, out, err) &&
              (!(methods & 1u << WORDS_GRADIENTS) || run_gradients(&pass, out, err)) &&
              text_words(model->tokenizer, text, &pass.body, &out->words, &out->n, err) &&
              add_up(&pass, methods, out, err);
    out->windows = pass.windows;
    pass_free(&pass);
    if (!ok)
        word_weights_free(out);
    return ok;
}
