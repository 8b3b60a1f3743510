/* transformer.c: a Transformer encoder (Vaswani et al. 2017, normalised before each part) on tokens
 * that are already embedded, "input" [N, T, C], with the parameter names of PyTorch's
 * nn.TransformerEncoder; a classifier on the mean of the tokens. The heads of every layer are
 * independent until out_proj, which is what sub-graph parallelism (SUPER) divides. C must be a
 * multiple of 8, the number of heads. */
#include "net/zoo/parts.h"
#include <math.h>

enum { HEADS = 8, DEPTH = 6, EXPANSION = 4 };
static const float epsilon = 1e-5f, dropout = 0.1f;

/* q, k and v in one product, under PyTorch's own names: prefix.in_proj_weight, .in_proj_bias. */
static value_id in_projection(struct graph *graph, value_id x, const char *prefix, int64_t width)
{
    struct zoo_name weight = zoo_name("%s.in_proj_weight", prefix);
    struct zoo_name bias = zoo_name("%s.in_proj_bias", prefix);
    value_id inputs[3] = {
        x,
        graph_parameter(graph, weight.text, SHAPE(3 * width, width)),
        graph_parameter(graph, bias.text, SHAPE(3 * width)),
    };
    graph_init(graph, weight.text,
               (struct init){ INIT_UNIFORM, (float)sqrt(6 / (4.0 * (double)width)) });
    return graph_node(graph, OP_LINEAR, prefix, inputs, 3, NULL);
}

/* x [N, T, width] -> the same */
static value_id layer(struct graph *graph, value_id x, const char *prefix, int64_t width)
{
    value_id y = graph_layer_norm(graph, x, zoo_name("%s.norm1", prefix).text, epsilon);
    y = in_projection(graph, y, zoo_name("%s.self_attn", prefix).text, width);
    y = graph_attention_packed(graph, y, NO_VALUE, NO_VALUE,
                               (struct attention_attr){ .heads = HEADS });
    y = graph_linear(graph, y, zoo_name("%s.self_attn.out_proj", prefix).text, width, true);
    x = graph_add(graph, x, graph_dropout(graph, y, dropout));
    y = graph_layer_norm(graph, x, zoo_name("%s.norm2", prefix).text, epsilon);
    y = graph_linear(graph, y, zoo_name("%s.linear1", prefix).text, EXPANSION * width, true);
    y = graph_dropout(graph, graph_gelu(graph, y), dropout);
    y = graph_linear(graph, y, zoo_name("%s.linear2", prefix).text, width, true);
    return graph_alias(graph, prefix, graph_add(graph, x, graph_dropout(graph, y, dropout)));
}

void zoo_transformer(struct graph *graph, const struct zoo_options *options)
{
    int64_t width = options->channels;
    value_id x = graph_input(graph, "input", SHAPE(options->batch, options->height, width));
    for (int i = 0; i < DEPTH; i++)
        x = layer(graph, x, zoo_name("layers.%d", i).text, width);
    x = graph_alias(graph, "norm", graph_layer_norm(graph, x, "norm", epsilon));
    x = graph_reduce_mean(graph, x, 1u << 1, false);
    graph_alias(graph, "head", zoo_scores(graph, x, "head", options));
    graph_init(graph, "*.self_attn.out_proj.bias", (struct init){ INIT_CONSTANT, 0 });
}
