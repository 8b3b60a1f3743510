/* vit.c: the Vision Transformer ViT-S/16 (Dosovitskiy et al. 2020, Touvron et al. 2020) with timm's
 * parameter names (vit_small_patch16_224). Another input size, a multiple of 16, only changes the
 * shape of pos_embed. */
#include "net/zoo/parts.h"

enum { PATCH = 16, WIDTH = 384, HEADS = 6, DEPTH = 12 };
static const float epsilon = 1e-6f;

static value_id linear(struct graph *graph, value_id x, const char *prefix, const char *leaf,
                       int64_t features)
{
    return graph_linear(graph, x, zoo_name("%s.%s", prefix, leaf).text, features, true);
}

/* x [N, T, WIDTH] -> the same */
static value_id block(struct graph *graph, value_id x, const char *prefix)
{
    value_id y = graph_layer_norm(graph, x, zoo_name("%s.norm1", prefix).text, epsilon);
    y = linear(graph, y, prefix, "attn.qkv", 3 * WIDTH);
    y = zoo_token_attention(graph, graph_slice(graph, y, 2, 0, WIDTH),
                            graph_slice(graph, y, 2, WIDTH, 2 * WIDTH),
                            graph_slice(graph, y, 2, 2 * WIDTH, 3 * WIDTH), HEADS);
    x = graph_add(graph, x, linear(graph, y, prefix, "attn.proj", WIDTH));
    y = graph_layer_norm(graph, x, zoo_name("%s.norm2", prefix).text, epsilon);
    y = graph_gelu(graph, linear(graph, y, prefix, "mlp.fc1", 4 * WIDTH));
    x = graph_add(graph, x, linear(graph, y, prefix, "mlp.fc2", WIDTH));
    return graph_alias(graph, prefix, x);
}

void zoo_vit_small(struct graph *graph, const struct zoo_options *options)
{
    value_id image = zoo_image(graph, options);
    value_id class_token = graph_parameter(graph, "cls_token", SHAPE(1, 1, WIDTH));
    value_id x =
        graph_conv(graph, image, "patch_embed.proj", WIDTH, true, conv_square(PATCH, PATCH, 0));
    x = graph_transpose(graph, graph_reshape(graph, x, SHAPE(0, WIDTH, -1)),
                        (const int64_t[]){ 0, 2, 1 });
    graph_alias(graph, "patch_embed", x);
    class_token = graph_expand_batch(graph, class_token, x);
    x = graph_concat(graph, (const value_id[]){ class_token, x }, 2, 1);
    if (x == NO_VALUE)
        return;
    int64_t tokens = graph_shape(graph, x)->dim[1];
    x = graph_add(graph, x, graph_parameter(graph, "pos_embed", SHAPE(1, tokens, WIDTH)));
    graph_alias(graph, "pos_drop", x);
    for (int i = 0; i < DEPTH; i++)
        x = block(graph, x, zoo_name("blocks.%d", i).text);
    graph_alias(graph, "blocks", x);
    x = graph_flatten(graph, graph_slice(graph, x, 1, 0, 1));
    x = graph_layer_norm(graph, x, "norm", epsilon);
    x = graph_alias(graph, "head", graph_linear(graph, x, "head", options->classes, true));
    graph_output(graph, "logits", x);
    zoo_init(graph, OP_LINEAR, 1, (struct init){ INIT_NORMAL, 0.02f });
    zoo_init(graph, OP_LINEAR, 2, (struct init){ INIT_CONSTANT, 0 });
    graph_init(graph, "pos_embed", (struct init){ INIT_NORMAL, 0.02f });
    graph_init(graph, "cls_token", (struct init){ INIT_NORMAL, 1e-6f });
}
