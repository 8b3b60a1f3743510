/* text_probe.c: see text_probe.h. The network is cut behind the embeddings of the tokens: what
 * follows, frozen, runs forward and backward for several places on the way from the baseline to the
 * text at once. */
#include "explain/text_probe.h"
#include <stdlib.h>
#include <string.h>
#include "explain/quadrature.h"
#include "net/graph/transform.h"
#include "net/plan/plan.h"

struct text_probe {
    const struct text_model *model;
    int64_t tokens, classes, width;
    const float *table; /* [rows, width]: embeddings, the model's */
    float *blank;       /* [width]: of the baseline */
    /* forward, with the attention of the last layer */
    struct graph *seen;
    struct plan *look;
    value_id attention;
    int64_t heads;
    float *maps; /* [heads, tokens, tokens] */
    bool pooled; /* the mean of all tokens is classified, not the first */
    /* behind the embeddings */
    struct graph *tail;
    struct plan *way;
    int embedded, mask; /* inputs of the tail */
    int64_t steps;
    double *nodes, *weights; /* [steps] */
    float *gradient;         /* [batch, tokens, width] */
    double *sums;            /* [tokens, width] */
};

void text_probe_free(struct text_probe *probe)
{
    if (!probe)
        return;
    plan_free(probe->look);
    plan_free(probe->way);
    graph_free(probe->seen);
    graph_free(probe->tail);
    free(probe->blank);
    free(probe->maps);
    free(probe->nodes);
    free(probe->weights);
    free(probe->gradient);
    free(probe->sums);
    free(probe);
}

static const struct node *last_node(const struct graph *graph, enum op_kind kind)
{
    for (int32_t i = graph->n_nodes - 1; i >= 0; i--)
        if (graph->nodes[i].op->kind == kind)
            return &graph->nodes[i];
    return NULL;
}

/* The network for one text, with its attention as maps. */
static bool open_look(struct text_probe *probe, int threads, struct err *err)
{
    struct graph *one = NULL, *plain = NULL;
    bool ok = transform_resize(probe->model->graph, 1, 0, 0, &one, err) &&
              transform_expand_attention(one, &plain, err) &&
              transform_for_inference(plain, NULL, 0, &probe->seen, err);
    const struct node *softmax = ok ? last_node(probe->seen, OP_SOFTMAX) : NULL;
    int64_t map = probe->tokens * probe->tokens;
    if (ok && !softmax)
        ok = err_set(err, ERR_FORMAT, "%s: has no attention", probe->model->config.network);
    if (ok) {
        struct plan_options options = {
            .mode = PLAN_INFER, .threads = threads, .keep = &softmax->output, .n_keep = 1
        };
        int64_t count = shape_count(graph_shape(probe->seen, softmax->output));
        probe->attention = softmax->output;
        probe->heads = count / map;
        probe->pooled = last_node(probe->seen, OP_REDUCE_MEAN) != NULL;
        probe->maps = calloc((size_t)count, sizeof *probe->maps);
        ok = (probe->maps || err_memory(err, "attention")) &&
             plan_new(probe->seen, &options, &probe->look, err);
    }
    graph_free(one);
    graph_free(plain);
    return ok;
}

static bool open_tail(struct text_probe *probe, int threads, struct err *err)
{
    const struct graph *graph = probe->model->graph;
    const struct node *embedding = last_node(graph, OP_EMBEDDING);
    struct graph *head = NULL, *tail = NULL;
    struct plan_options options = { .mode = PLAN_TUNE,
                                    .threads = threads,
                                    .input_gradients = true };
    int32_t padding = tokenizer_id(probe->model->tokenizer, "[PAD]");
    if (!embedding)
        return err_set(err, ERR_FORMAT, "%s: has no embeddings", probe->model->config.network);
    probe->table = graph_data(graph, embedding->inputs[1]);
    probe->width = graph_shape(graph, embedding->output)->dim[2];
    int64_t floats = probe->tokens * probe->width;
    probe->blank = calloc((size_t)probe->width, sizeof *probe->blank);
    probe->gradient = calloc((size_t)(TEXT_PROBE_BATCH * floats), sizeof *probe->gradient);
    probe->sums = calloc((size_t)floats, sizeof *probe->sums);
    bool ok = (probe->blank && probe->gradient && probe->sums) || err_memory(err, "gradients");
    if (ok && padding >= 0)
        memcpy(probe->blank, probe->table + padding * probe->width,
               (size_t)probe->width * sizeof *probe->blank);
    ok = ok && transform_cut(graph, embedding->output, &head, &tail, err) &&
         transform_freeze(tail, &probe->tail, err) &&
         plan_new(probe->tail, &options, &probe->way, err);
    for (int i = 0; ok && i < probe->tail->n_inputs; i++)
        *(strcmp(probe->tail->inputs[i].name, "mask") == 0 ? &probe->mask : &probe->embedded) = i;
    graph_free(head);
    graph_free(tail);
    return ok;
}

bool text_probe_new(const struct text_model *model, int64_t steps, int threads,
                    struct text_probe **out, struct err *err)
{
    struct text_probe *probe = calloc(1, sizeof *probe);
    if (!probe)
        return err_memory(err, "the model");
    probe->model = model;
    probe->tokens = model->sequence.tokens;
    probe->classes = model->config.num_classes;
    probe->steps = steps;
    probe->nodes = calloc((size_t)steps, sizeof *probe->nodes);
    probe->weights = calloc((size_t)steps, sizeof *probe->weights);
    bool ok = (probe->nodes && probe->weights) || err_memory(err, "integrated gradients");
    if (ok)
        quadrature(steps, probe->nodes, probe->weights);
    if (!ok || !open_look(probe, threads, err) || !open_tail(probe, threads, err)) {
        text_probe_free(probe);
        return false;
    }
    *out = probe;
    return true;
}

/* maps [heads, tokens, tokens] -> [tokens] */
static void mean_attention(const struct text_probe *probe, const float *mask, double *out)
{
    int64_t tokens = probe->tokens;
    double rows = 0;
    memset(out, 0, (size_t)tokens * sizeof *out);
    for (int64_t i = 0; i < tokens; i++)
        rows += probe->pooled ? mask[i] > 0 : i == 0;
    for (int64_t h = 0; h < probe->heads; h++)
        for (int64_t i = 0; i < (probe->pooled ? tokens : 1); i++)
            for (int64_t k = 0; (mask[i] > 0 || !probe->pooled) && k < tokens; k++)
                out[k] += (double)probe->maps[(h * tokens + i) * tokens + k] /
                          ((double)probe->heads * rows);
}

bool text_probe_run(struct text_probe *probe, const float *ids, const float *mask, double *logits,
                    double *attention, struct err *err)
{
    size_t bytes = (size_t)probe->tokens * sizeof *ids;
    memcpy(plan_input(probe->look, 0), ids, bytes);
    memcpy(plan_input(probe->look, 1), mask, bytes);
    if (!plan_forward(probe->look, err) ||
        !plan_activation(probe->look, probe->attention, probe->maps, err))
        return false;
    for (int64_t c = 0; c < probe->classes; c++)
        logits[c] = plan_output(probe->look, 0)[c];
    mean_attention(probe, mask, attention);
    return true;
}

/* A place on the way: 0 is the baseline, 1 the text. */
static void put_place(struct text_probe *probe, const float *ids, const float *mask,
                      const bool *own, double share, int64_t slot)
{
    int64_t width = probe->width, tokens = probe->tokens;
    float *to = plan_input(probe->way, probe->embedded) + slot * tokens * width;
    for (int64_t t = 0; t < tokens; t++, to += width) {
        const float *row = probe->table + (int64_t)ids[t] * width;
        for (int64_t k = 0; k < width; k++)
            to[k] = own[t] ? (float)(probe->blank[k] + share * ((double)row[k] - probe->blank[k]))
                           : row[k];
    }
    memcpy(plan_input(probe->way, probe->mask) + slot * tokens, mask,
           (size_t)tokens * sizeof *mask);
}

/* Runs the batch and adds its gradients, each times its weight. */
static bool add_places(struct text_probe *probe, int64_t class_index, const double *weights,
                       struct err *err)
{
    int64_t floats = probe->tokens * probe->width;
    float *wanted = plan_output_gradient(probe->way, 0);
    value_id input = probe->tail->inputs[probe->embedded].value;
    if (!plan_forward(probe->way, err))
        return false;
    memset(wanted, 0, (size_t)(TEXT_PROBE_BATCH * probe->classes) * sizeof *wanted);
    for (int64_t i = 0; i < TEXT_PROBE_BATCH; i++)
        wanted[i * probe->classes + class_index] = 1;
    if (!plan_backward(probe->way, err) ||
        !plan_activation_gradient(probe->way, input, probe->gradient, err))
        return false;
    for (int64_t i = 0; i < TEXT_PROBE_BATCH * floats; i++)
        probe->sums[i % floats] += weights[i / floats] * (double)probe->gradient[i];
    return true;
}

bool text_probe_integrate(struct text_probe *probe, const float *ids, const float *mask,
                          const bool *own, int64_t class_index, double *weights,
                          struct text_integral *out, struct err *err)
{
    int64_t width = probe->width, tokens = probe->tokens, classes = probe->classes;
    memset(probe->sums, 0, (size_t)(tokens * width) * sizeof *probe->sums);
    /* The places of the quadrature, then the baseline and the text. */
    for (int64_t first = 0; first < probe->steps + 2; first += TEXT_PROBE_BATCH) {
        double shares[TEXT_PROBE_BATCH] = { 0 };
        for (int64_t i = 0; i < TEXT_PROBE_BATCH; i++) {
            int64_t step = first + i;
            bool inside = step < probe->steps;
            shares[i] = inside ? probe->weights[step] : 0;
            put_place(probe, ids, mask, own,
                      inside ? probe->nodes[step] : (double)(step != probe->steps), i);
        }
        if (!add_places(probe, class_index, shares, err))
            return false;
        const float *logits = plan_output(probe->way, 0) + class_index;
        int64_t last = probe->steps - first;
        if (last >= 0 && last < TEXT_PROBE_BATCH)
            out->baseline = logits[last * classes];
        if (last + 1 >= 0 && last + 1 < TEXT_PROBE_BATCH)
            out->logit = logits[(last + 1) * classes];
    }
    out->sum = 0;
    for (int64_t t = 0; t < tokens; t++) {
        const float *row = probe->table + (int64_t)ids[t] * width;
        weights[t] = 0;
        for (int64_t k = 0; own[t] && k < width; k++)
            weights[t] += ((double)row[k] - probe->blank[k]) * probe->sums[t * width + k];
        out->sum += weights[t];
    }
    return true;
}
