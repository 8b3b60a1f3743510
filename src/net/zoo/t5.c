/* t5.c: encoders of T5 1.1 (Raffel et al. 2020, Shazeer 2020) that classify texts, with Hugging
 * Face's parameter names (T5EncoderModel): normalised by the root mean square before each part,
 * biases of attention by the distance of tokens, shared by all layers, a gated MLP; then the linear
 * layer "classifier" on the mean of the tokens. "input" [N, T] has ids of tokens, "mask" [N, T] is
 * 0 for padding, which no token sees and which does not count in the mean. */
#include <math.h>
#include <string.h>
#include "net/zoo/parts.h"

struct t5 {
    const char *name;
    int64_t width, heads, inner, depth; /* inner: of the MLP; heads have 64 features */
};

static const struct t5 t5s[] = {
    { "t5_mini", 256, 4, 512, 4 },
    { "t5_small", 512, 6, 1024, 8 },
    { "t5_base", 768, 12, 2048, 12 },
};
enum { HEAD = 64, BUCKETS = 32 };
static const float epsilon = 1e-6f, dropout = 0.1f;

/* Without bias; weights begin with this standard deviation. */
static value_id linear(struct graph *graph, value_id x, const char *prefix, const char *leaf,
                       int64_t features, double deviation)
{
    struct zoo_name name = zoo_name("%s.%s", prefix, leaf);
    value_id y = graph_linear(graph, x, name.text, features, false);
    graph_init(graph, zoo_name("%s.weight", name.text).text,
               (struct init){ INIT_NORMAL, (float)deviation });
    return y;
}

/* x [N, T, width] -> the same, before it is added; scores are not divided by sqrt(64). */
static value_id attend(struct graph *graph, const struct t5 *spec, value_id x, value_id bias,
                       value_id mask, const char *prefix)
{
    int64_t all = spec->heads * HEAD;
    double width = (double)spec->width;
    value_id q = linear(graph, x, prefix, "q", all, 1 / sqrt(width * HEAD));
    value_id k = linear(graph, x, prefix, "k", all, 1 / sqrt(width));
    value_id v = linear(graph, x, prefix, "v", all, 1 / sqrt(width));
    value_id y = graph_attention(graph, q, k, v, bias, mask,
                                 (struct attention_attr){ .heads = spec->heads, .scale = 1 });
    y = linear(graph, y, prefix, "o", spec->width, 1 / sqrt((double)all));
    return graph_dropout(graph, y, dropout);
}

static value_id gelu_tanh(struct graph *graph, value_id x)
{
    return x == NO_VALUE ? NO_VALUE
                         : graph_node(graph, OP_GELU, NULL, &x, 1,
                                      &(union attr){ .gelu = { .tanh_form = true } });
}

static value_id mlp(struct graph *graph, const struct t5 *spec, value_id x, const char *prefix)
{
    double deviation = 1 / sqrt((double)spec->width);
    value_id gate = gelu_tanh(graph, linear(graph, x, prefix, "wi_0", spec->inner, deviation));
    value_id y = graph_mul(graph, gate, linear(graph, x, prefix, "wi_1", spec->inner, deviation));
    y = linear(graph, graph_dropout(graph, y, dropout), prefix, "wo", spec->width,
               1 / sqrt((double)spec->inner));
    return graph_dropout(graph, y, dropout);
}

static value_id block(struct graph *graph, const struct t5 *spec, value_id x, value_id bias,
                      value_id mask, const char *prefix)
{
    value_id y = graph_rms_norm(graph, x, zoo_name("%s.layer.0.layer_norm", prefix).text, epsilon);
    y = attend(graph, spec, y, bias, mask, zoo_name("%s.layer.0.SelfAttention", prefix).text);
    x = graph_add(graph, x, y);
    y = graph_rms_norm(graph, x, zoo_name("%s.layer.1.layer_norm", prefix).text, epsilon);
    y = mlp(graph, spec, y, zoo_name("%s.layer.1.DenseReluDense", prefix).text);
    return graph_alias(graph, prefix, graph_add(graph, x, y));
}

static void build(struct graph *graph, const struct zoo_options *options, const struct t5 *spec)
{
    value_id ids = graph_input(graph, "input", SHAPE(options->batch, options->height));
    value_id mask = graph_input(graph, "mask", SHAPE(options->batch, options->height));
    value_id x = graph_embedding(graph, ids, "shared", options->channels, spec->width);
    const char *name = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias";
    value_id bias = graph_relative_bias(graph, x, name, BUCKETS, spec->heads);
    int64_t depth = options->depth ? options->depth : spec->depth;
    graph_init(graph, zoo_name("%s.weight", name).text,
               (struct init){ INIT_NORMAL, (float)(1 / sqrt((double)spec->width)) });
    x = graph_dropout(graph, x, dropout);
    for (int i = 0; i < depth; i++)
        x = block(graph, spec, x, bias, mask, zoo_name("encoder.block.%d", i).text);
    x = graph_rms_norm(graph, x, "encoder.final_layer_norm", epsilon);
    x = graph_alias(graph, "encoder", graph_dropout(graph, x, dropout));
    x = graph_linear(graph, zoo_mean_of_seen(graph, x, mask), "classifier", options->classes, true);
    graph_output(graph, "logits", x);
    graph_init(graph, "classifier.weight", (struct init){ INIT_NORMAL, 0.02f });
    graph_init(graph, "classifier.bias", (struct init){ INIT_CONSTANT, 0 });
}

void zoo_t5(struct graph *graph, const struct zoo_options *options)
{
    for (size_t i = 0; i < sizeof t5s / sizeof t5s[0]; i++)
        if (strcmp(t5s[i].name, graph->name) == 0)
            build(graph, options, &t5s[i]);
}
