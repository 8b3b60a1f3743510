/* text_windows.c: see text_windows.h. */
#include "train/text_windows.h"
#include <stdlib.h>
#include <string.h>
#include "train/objective_classify.h"

/* A run over all windows of some texts. */
struct windows_pass {
    const struct text_windows *how;
    int64_t *text;   /* [batch]: whose window is in this place of the batch */
    int64_t *counts; /* [n]: windows */
    double *means;   /* [n, classes]: scores so far */
    double *scores;  /* [classes]: room */
    int64_t used;    /* places of the batch */
    float *outputs;
};

static void add_place(struct windows_pass *pass, int64_t place)
{
    const struct text_windows *how = pass->how;
    int64_t text = pass->text[place], classes = how->classes;
    const float *given = plan_output(how->plan, how->output) + place * classes;
    if (pass->counts[text] == 1) {
        memcpy(pass->outputs + text * classes, given, (size_t)classes * sizeof *given);
        return;
    }
    classify_scores(given, classes, how->independent, pass->scores);
    for (int64_t c = 0; c < classes; c++)
        pass->means[text * classes + c] += pass->scores[c] / (double)pass->counts[text];
}

/* Runs the windows that are in the batch; other places repeat the first. */
static bool run_places(struct windows_pass *pass, struct err *err)
{
    const struct text_windows *how = pass->how;
    size_t bytes = (size_t)how->sequence->tokens * sizeof(float);
    float *ids = plan_input(how->plan, how->ids), *mask = plan_input(how->plan, how->mask);
    for (int64_t i = pass->used; i < how->batch; i++) {
        memcpy(ids + i * how->sequence->tokens, ids, bytes);
        memcpy(mask + i * how->sequence->tokens, mask, bytes);
    }
    if (!plan_forward(how->plan, err))
        return false;
    for (int64_t i = 0; i < pass->used; i++)
        add_place(pass, i);
    pass->used = 0;
    return true;
}

/* All windows of a text to the batch, which runs when it is full. */
static bool add_text(struct windows_pass *pass, const char *text, int64_t number, struct err *err)
{
    const struct text_windows *how = pass->how;
    int64_t tokens = how->sequence->tokens;
    struct token_ids body = { 0 };
    bool ok = tokenizer_encode(how->sequence->tokenizer, text, false, &body, err);
    pass->counts[number] = sequence_count(how->sequence, body.n);
    for (int64_t w = 0; ok && w < pass->counts[number]; w++) {
        ok = sequence_fill_ids(how->sequence, &body, w,
                               plan_input(how->plan, how->ids) + pass->used * tokens,
                               plan_input(how->plan, how->mask) + pass->used * tokens, err);
        pass->text[pass->used++] = number;
        if (ok && pass->used == how->batch)
            ok = run_places(pass, err);
    }
    token_ids_free(&body);
    return ok;
}

bool text_windows_run(const struct text_windows *how, const char *const *texts, int64_t n,
                      float *outputs, int64_t *at, struct err *err)
{
    size_t scores = (size_t)(n * how->classes);
    struct windows_pass pass = { .how = how,
                                 .text = calloc((size_t)how->batch, sizeof *pass.text),
                                 .counts = calloc((size_t)n, sizeof *pass.counts),
                                 .means = calloc(scores, sizeof *pass.means),
                                 .scores = calloc((size_t)how->classes, sizeof *pass.scores),
                                 .outputs = outputs };
    bool ok = (pass.text && pass.counts && pass.means && pass.scores) ||
              err_memory(err, "windows of texts");
    *at = -1;
    for (int64_t i = 0; ok && i < n; i++) {
        ok = add_text(&pass, texts[i], i, err);
        *at = ok ? -1 : i;
    }
    ok = ok && (pass.used == 0 || run_places(&pass, err));
    for (int64_t i = 0; ok && i < n; i++)
        if (pass.counts[i] > 1)
            classify_outputs(pass.means + i * how->classes, how->classes, how->independent,
                             outputs + i * how->classes);
    free(pass.text);
    free(pass.counts);
    free(pass.means);
    free(pass.scores);
    return ok;
}
