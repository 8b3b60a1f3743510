/* bert.c: encoders of texts that classify them, with Hugging Face's parameter names: BERT (Devlin
 * et al. 2018; its small sizes: Turc et al. 2019), normalised behind each part, and the same
 * normalised before each part (RoBERTa-PreLayerNorm). "input" [N, T] has ids of tokens, "mask" [N,
 * T] is 0 for padding, which no token sees; all tokens are of the first segment. The scores come
 * from the first token. Attention itself has no dropout, unlike in Hugging Face's training. */
#include <string.h>
#include "net/zoo/parts.h"

struct bert {
    const char *name;
    int64_t width, depth; /* heads of 64 features; the MLP is 4 times as wide */
    bool before;          /* normalised before each part */
};

static const struct bert berts[] = {
    { "bert_tiny", 128, 2, false },    { "bert_mini", 256, 4, false },
    { "bert_small", 512, 4, false },   { "bert_base", 768, 12, false },
    { "prenorm_tiny", 128, 2, true },  { "prenorm_mini", 256, 4, true },
    { "prenorm_small", 512, 4, true },
};
enum { HEAD = 64, EXPANSION = 4, POSITIONS = 512, SEGMENTS = 2 };
static const float epsilon = 1e-12f, dropout = 0.1f;

static const char *prefix_of(const struct bert *spec)
{
    return spec->before ? "roberta_prelayernorm" : "bert";
}

static value_id linear(struct graph *graph, value_id x, const char *prefix, const char *leaf,
                       int64_t features)
{
    return graph_linear(graph, x, zoo_name("%s.%s", prefix, leaf).text, features, true);
}

static value_id norm(struct graph *graph, value_id x, const char *prefix, const char *leaf)
{
    return graph_layer_norm(graph, x, zoo_name("%s.%s", prefix, leaf).text, epsilon);
}

/* Rows [first, first + n) of a table [rows, width] that every text gets. */
static value_id fixed_rows(struct graph *graph, const char *prefix, const char *leaf, int64_t rows,
                           int64_t width, int64_t first, int64_t n)
{
    struct zoo_name name = zoo_name("%s.embeddings.%s.weight", prefix, leaf);
    value_id table = graph_parameter(graph, name.text, SHAPE(rows, width));
    graph_init(graph, name.text, (struct init){ INIT_NORMAL, 0.02f });
    return graph_slice(graph, table, 0, first, first + n);
}

/* ids [N, T] -> [N, T, width]; RoBERTa's positions begin with the third row. */
static value_id embed(struct graph *graph, const struct bert *spec, value_id ids,
                      const struct zoo_options *options)
{
    const char *prefix = prefix_of(spec);
    int64_t first = spec->before ? 2 : 0;
    value_id x = graph_embedding(graph, ids, zoo_name("%s.embeddings.word_embeddings", prefix).text,
                                 options->channels, spec->width);
    x = graph_add(graph, x,
                  fixed_rows(graph, prefix, "token_type_embeddings", SEGMENTS, spec->width, 0, 1));
    x = graph_add(graph, x,
                  fixed_rows(graph, prefix, "position_embeddings", POSITIONS + first, spec->width,
                             first, options->height));
    return graph_dropout(graph, norm(graph, x, prefix, "embeddings.LayerNorm"), dropout);
}

/* x [N, T, width] -> the same, before it is added */
static value_id attend(struct graph *graph, const struct bert *spec, value_id x, value_id mask,
                       const char *prefix)
{
    value_id q = linear(graph, x, prefix, "attention.self.query", spec->width);
    value_id k = linear(graph, x, prefix, "attention.self.key", spec->width);
    value_id v = linear(graph, x, prefix, "attention.self.value", spec->width);
    value_id y = graph_attention(graph, q, k, v, NO_VALUE, mask,
                                 (struct attention_attr){ .heads = spec->width / HEAD });
    y = linear(graph, y, prefix, "attention.output.dense", spec->width);
    return graph_dropout(graph, y, dropout);
}

static value_id mlp(struct graph *graph, const struct bert *spec, value_id x, const char *prefix)
{
    value_id y = linear(graph, x, prefix, "intermediate.dense", EXPANSION * spec->width);
    y = linear(graph, graph_gelu(graph, y), prefix, "output.dense", spec->width);
    return graph_dropout(graph, y, dropout);
}

static value_id layer(struct graph *graph, const struct bert *spec, value_id x, value_id mask,
                      const char *prefix)
{
    if (spec->before) {
        value_id y = norm(graph, x, prefix, "attention.LayerNorm");
        x = graph_add(graph, x, attend(graph, spec, y, mask, prefix));
        y = norm(graph, x, prefix, "intermediate.LayerNorm");
        x = graph_add(graph, x, mlp(graph, spec, y, prefix));
    } else {
        x = graph_add(graph, x, attend(graph, spec, x, mask, prefix));
        x = norm(graph, x, prefix, "attention.output.LayerNorm");
        x = graph_add(graph, x, mlp(graph, spec, x, prefix));
        x = norm(graph, x, prefix, "output.LayerNorm");
    }
    return graph_alias(graph, prefix, x);
}

/* The first token of x [N, T, width] -> scores */
static value_id classify(struct graph *graph, const struct bert *spec, value_id x,
                         const struct zoo_options *options)
{
    x = graph_flatten(graph, graph_slice(graph, x, 1, 0, 1));
    if (spec->before) {
        x = graph_linear(graph, graph_dropout(graph, x, dropout), "classifier.dense", spec->width,
                         true);
        x = graph_dropout(graph, graph_tanh(graph, x), dropout);
        return graph_linear(graph, x, "classifier.out_proj", options->classes, true);
    }
    x = graph_tanh(graph, graph_linear(graph, x, "bert.pooler.dense", spec->width, true));
    x = graph_dropout(graph, graph_alias(graph, "bert.pooler", x), dropout);
    return graph_linear(graph, x, "classifier", options->classes, true);
}

/* x [N, T, width], mask [N, T] -> the same as x; depth 0: as the network has it */
static value_id encode(struct graph *graph, const struct bert *spec, value_id x, value_id mask,
                       int64_t depth)
{
    const char *prefix = prefix_of(spec);
    depth = depth ? depth : spec->depth;
    for (int i = 0; i < depth; i++)
        x = layer(graph, spec, x, mask, zoo_name("%s.encoder.layer.%d", prefix, i).text);
    if (spec->before)
        x = norm(graph, x, prefix, "LayerNorm");
    return graph_alias(graph, zoo_name("%s.encoder", prefix).text, x);
}

/* Some tokens of x [N, T, width] -> logits of all tokens, by the table of the embeddings, with the
 * names of BertForMaskedLM and RobertaPreLayerNormForMaskedLM. */
static value_id recover(struct graph *graph, const struct bert *spec, value_id x,
                        const struct zoo_options *options)
{
    const char *head = spec->before ? "lm_head" : "cls.predictions";
    struct zoo_name bias = zoo_name("%s.bias", head);
    value_id places =
        graph_input(graph, "places", SHAPE(options->batch, options->masked, options->height));
    x = graph_matmul(graph, places, x, (struct matmul_attr){ 0 });
    x = linear(graph, x, head, spec->before ? "dense" : "transform.dense", spec->width);
    x = norm(graph, graph_gelu(graph, x), head,
             spec->before ? "layer_norm" : "transform.LayerNorm");
    value_id inputs[3] = {
        x,
        graph_find(graph, zoo_name("%s.embeddings.word_embeddings.weight", prefix_of(spec)).text),
        graph_parameter(graph, bias.text, SHAPE(options->channels)),
    };
    return x == NO_VALUE
               ? x
               : graph_node(graph, OP_LINEAR, zoo_name("%s.decoder", head).text, inputs, 3, NULL);
}

static void build(struct graph *graph, const struct zoo_options *options, const struct bert *spec)
{
    value_id ids = graph_input(graph, "input", SHAPE(options->batch, options->height));
    value_id mask = graph_input(graph, "mask", SHAPE(options->batch, options->height));
    const char *prefix = prefix_of(spec);
    value_id x = embed(graph, spec, ids, options);
    graph_alias(graph, zoo_name("%s.embeddings", prefix).text, x);
    x = encode(graph, spec, x, mask, options->depth);
    if (options->masked > 0)
        graph_output(graph, "tokens", recover(graph, spec, x, options));
    else
        graph_output(graph, "logits", classify(graph, spec, x, options));
    zoo_init(graph, OP_EMBEDDING, 1, (struct init){ INIT_NORMAL, 0.02f });
    zoo_init(graph, OP_LINEAR, 1, (struct init){ INIT_NORMAL, 0.02f });
    zoo_init(graph, OP_LINEAR, 2, (struct init){ INIT_CONSTANT, 0 });
}

void zoo_bert(struct graph *graph, const struct zoo_options *options)
{
    for (size_t i = 0; i < sizeof berts / sizeof berts[0]; i++)
        if (strcmp(berts[i].name, graph->name) == 0)
            build(graph, options, &berts[i]);
}

value_id zoo_bert_encoder(struct graph *graph, const char *name, value_id x, value_id mask,
                          int64_t depth)
{
    for (size_t i = 0; i < sizeof berts / sizeof berts[0]; i++)
        if (strcmp(berts[i].name, name) == 0)
            x = encode(graph, &berts[i], x, mask, depth);
    return x;
}
