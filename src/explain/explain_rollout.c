/* explain_rollout.c: attention rollout (Abnar and Zuidema 2020) of a transformer: for every layer
 * the mean over heads of the attention, plus the identity for the shortcut, rows scaled to 1; the
 * product over layers. The map is what the class token takes from each token of the image or,
 * without a class token, the mean over the tokens. The same for all classes. */
#include <stdlib.h>
#include <string.h>
#include "explain/explainer.h"

static bool check(const struct explain_settings *settings, const struct probe *probe, int layer,
                  struct err *err)
{
    (void)layer;
    int n = probe_n_attention(probe);
    if (n == 0)
        return err_set(err, ERR_USAGE,
                       "%s: rollout needs the attention between the tokens of a transformer, which "
                       "this network does not have; use gradcam",
                       settings->model->name);
    for (int i = 1; i < n; i++)
        if (probe_attention(probe, i).tokens != probe_attention(probe, 0).tokens)
            return err_set(err, ERR_USAGE,
                           "%s: rollout needs the same tokens in all layers, but there are %lld "
                           "and %lld; use gradcam",
                           settings->model->name, (long long)probe_attention(probe, 0).tokens,
                           (long long)probe_attention(probe, i).tokens);
    return true;
}

/* mixed [T, T]: the mean over heads, half of the result, and the identity, the other half. */
static void mix(const struct probe_attention *attention, double *mixed)
{
    int64_t tokens = attention->tokens, n = tokens * tokens;
    memset(mixed, 0, (size_t)n * sizeof *mixed);
    for (int64_t h = 0; h < attention->heads; h++)
        for (int64_t i = 0; i < n; i++)
            mixed[i] += (double)attention->values[h * n + i] / (double)attention->heads;
    for (int64_t row = 0; row < tokens; row++) {
        double sum = 0;
        mixed[row * tokens + row] += 1;
        for (int64_t i = 0; i < tokens; i++)
            sum += mixed[row * tokens + i];
        for (int64_t i = 0; i < tokens; i++)
            mixed[row * tokens + i] /= sum;
    }
}

/* Row times matrix, from the last layer to the first: only the row that is asked for. */
static void roll(const struct probe *probe, double *row, double *next, double *mixed)
{
    struct probe_attention last = probe_attention(probe, 0);
    int64_t tokens = last.tokens;
    for (int64_t i = 0; i < tokens; i++)
        row[i] = last.class_token ? i == 0 : 1 / (double)tokens;
    for (int k = probe_n_attention(probe) - 1; k >= 0; k--) {
        struct probe_attention attention = probe_attention(probe, k);
        mix(&attention, mixed);
        memset(next, 0, (size_t)tokens * sizeof *next);
        for (int64_t i = 0; i < tokens; i++)
            for (int64_t j = 0; j < tokens; j++)
                next[j] += row[i] * mixed[i * tokens + j];
        memcpy(row, next, (size_t)tokens * sizeof *row);
    }
}

static bool explain(const struct explain_settings *settings, struct probe *probe, int layer,
                    const struct explain_view *view, const struct ctx *ctx, struct attribution *out,
                    struct err *err)
{
    (void)ctx;
    if (!check(settings, probe, layer, err) || !probe_forward(probe, view->input, 1, err))
        return false;
    struct probe_attention first = probe_attention(probe, 0);
    int64_t tokens = first.tokens;
    double *row = malloc((size_t)(tokens * (tokens + 2)) * sizeof *row);
    if (!row || !attribution_new(first.height, first.width, out, err)) {
        free(row);
        return row ? false : err_memory(err, "attention");
    }
    roll(probe, row, row + tokens, row + 2 * tokens);
    for (int64_t i = 0; i < first.height * first.width; i++)
        out->values[i] = (float)row[i + first.class_token];
    free(row);
    return true;
}

extern const struct explainer explainer_rollout;
const struct explainer explainer_rollout = {
    .name = "rollout",
    .title = "Attention rollout",
    .help = "what a transformer's class token takes from each token, over all layers",
    .maps = MAPS_INPUT,
    .positive = true,
    .forward_only = true,
    .attention = true,
    .check = check,
    .explain = explain,
};
