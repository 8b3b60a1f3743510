/* vit.c: Vision Transformers (Dosovitskiy et al. 2020, Touvron et al. 2020, DINOv2: Oquab et al.
 * 2023, Darcet et al. 2023) with timm's names and parameter names; the class token gives the
 * scores. Another input size, a multiple of the patch, only changes the shape of pos_embed. */
#include <string.h>
#include "net/zoo/parts.h"

struct vit {
    const char *name;
    int64_t patch, width, heads, depth;
    bool scaled;       /* LayerScale: what a branch adds is multiplied by ls1.gamma, ls2.gamma */
    int64_t gated;     /* SwiGLU in place of GELU: features behind the gate; 0: GELU */
    int64_t registers; /* tokens beside the class token; they and it then have no position */
};

static const struct vit vits[] = {
    { "vit_tiny_patch16_224", 16, 192, 3, 12, false, 0, 0 },
    { "vit_small_patch16_224", 16, 384, 6, 12, false, 0, 0 },
    { "vit_small_patch32_224", 32, 384, 6, 12, false, 0, 0 },
    { "vit_base_patch8_224", 8, 768, 12, 12, false, 0, 0 },
    { "vit_base_patch16_224", 16, 768, 12, 12, false, 0, 0 },
    { "vit_base_patch32_224", 32, 768, 12, 12, false, 0, 0 },
    { "vit_large_patch14_224", 14, 1024, 16, 24, false, 0, 0 },
    { "vit_large_patch16_224", 16, 1024, 16, 24, false, 0, 0 },
    { "vit_huge_patch14_224", 14, 1280, 16, 32, false, 0, 0 },
    { "vit_small_patch14_dinov2", 14, 384, 6, 12, true, 0, 0 },
    { "vit_base_patch14_dinov2", 14, 768, 12, 12, true, 0, 0 },
    { "vit_large_patch14_dinov2", 14, 1024, 16, 24, true, 0, 0 },
    { "vit_giant_patch14_dinov2", 14, 1536, 24, 40, true, 4096, 0 },
    { "vit_small_patch14_reg4_dinov2", 14, 384, 6, 12, true, 0, 4 },
    { "vit_base_patch14_reg4_dinov2", 14, 768, 12, 12, true, 0, 4 },
    { "vit_large_patch14_reg4_dinov2", 14, 1024, 16, 24, true, 0, 4 },
    { "vit_giant_patch14_reg4_dinov2", 14, 1536, 24, 40, true, 4096, 4 },
};
static const float epsilon = 1e-6f;

static value_id linear(struct graph *graph, value_id x, const char *prefix, const char *leaf,
                       int64_t features)
{
    return graph_linear(graph, x, zoo_name("%s.%s", prefix, leaf).text, features, true);
}

/* x + what a branch gives, [N, T, width] */
static value_id add_branch(struct graph *graph, const struct vit *spec, value_id x, value_id y,
                           const char *prefix, int number)
{
    struct zoo_name name = zoo_name("%s.ls%d.gamma", prefix, number);
    if (spec->scaled) {
        y = graph_mul(graph, y, graph_parameter(graph, name.text, SHAPE(spec->width)));
        graph_init(graph, name.text, (struct init){ INIT_CONSTANT, 1e-5f });
    }
    return graph_add(graph, x, y);
}

/* x [N, T, width] -> the same */
static value_id mlp(struct graph *graph, const struct vit *spec, value_id x, const char *prefix)
{
    value_id y =
        linear(graph, x, prefix, "mlp.fc1", spec->gated ? 2 * spec->gated : 4 * spec->width);
    if (spec->gated)
        y = graph_mul(graph, graph_silu(graph, graph_slice(graph, y, 2, 0, spec->gated)),
                      graph_slice(graph, y, 2, spec->gated, 2 * spec->gated));
    else
        y = graph_gelu(graph, y);
    return linear(graph, y, prefix, "mlp.fc2", spec->width);
}

/* x [N, T, width] -> the same */
static value_id block(struct graph *graph, const struct vit *spec, value_id x, const char *prefix)
{
    int64_t width = spec->width;
    value_id y = graph_layer_norm(graph, x, zoo_name("%s.norm1", prefix).text, epsilon);
    y = linear(graph, y, prefix, "attn.qkv", 3 * width);
    y = graph_attention_packed(graph, y, NO_VALUE, NO_VALUE,
                               (struct attention_attr){ .heads = spec->heads });
    x = add_branch(graph, spec, x, linear(graph, y, prefix, "attn.proj", width), prefix, 1);
    y = graph_layer_norm(graph, x, zoo_name("%s.norm2", prefix).text, epsilon);
    x = add_branch(graph, spec, x, mlp(graph, spec, y, prefix), prefix, 2);
    return graph_alias(graph, prefix, x);
}

/* A learnt position for every token of x [N, T, width]. */
static value_id add_positions(struct graph *graph, value_id x, int64_t width)
{
    if (x == NO_VALUE)
        return NO_VALUE;
    int64_t tokens = graph_shape(graph, x)->dim[1];
    return graph_add(graph, x, graph_parameter(graph, "pos_embed", SHAPE(1, tokens, width)));
}

/* patches [N, T, width] -> [N, 1 + registers + T, width] */
static value_id tokens_of(struct graph *graph, const struct vit *spec, value_id patches)
{
    value_id tokens[3] = { graph_parameter(graph, "cls_token", SHAPE(1, 1, spec->width)) };
    int n = 1;
    if (spec->registers) {
        tokens[n++] = graph_parameter(graph, "reg_token", SHAPE(1, spec->registers, spec->width));
        patches = add_positions(graph, patches, spec->width);
    }
    for (int i = 0; i < n; i++)
        tokens[i] = graph_expand_batch(graph, tokens[i], patches);
    tokens[n++] = patches;
    value_id x = graph_concat(graph, tokens, n, 1);
    return spec->registers ? x : add_positions(graph, x, spec->width);
}

static void build(struct graph *graph, const struct zoo_options *options, const struct vit *spec)
{
    value_id image = zoo_image(graph, options);
    value_id x = graph_conv(graph, image, "patch_embed.proj", spec->width, true,
                            conv_square(spec->patch, spec->patch, 0));
    int64_t depth = options->depth ? options->depth : spec->depth;
    x = graph_transpose(graph, graph_reshape(graph, x, SHAPE(0, spec->width, -1)),
                        (const int64_t[]){ 0, 2, 1 });
    graph_alias(graph, "patch_embed", x);
    x = graph_alias(graph, "pos_drop", tokens_of(graph, spec, x));
    for (int i = 0; i < depth; i++)
        x = block(graph, spec, x, zoo_name("blocks.%d", i).text);
    graph_alias(graph, "blocks", x);
    x = graph_flatten(graph, graph_slice(graph, x, 1, 0, 1));
    x = graph_layer_norm(graph, x, "norm", epsilon);
    graph_alias(graph, "head", zoo_scores(graph, x, "head", options));
    zoo_init(graph, OP_LINEAR, 1, (struct init){ INIT_NORMAL, 0.02f });
    zoo_init(graph, OP_LINEAR, 2, (struct init){ INIT_CONSTANT, 0 });
    graph_init(graph, "pos_embed", (struct init){ INIT_NORMAL, 0.02f });
    graph_init(graph, "cls_token", (struct init){ INIT_NORMAL, 1e-6f });
    graph_init(graph, "reg_token", (struct init){ INIT_NORMAL, 1e-6f });
}

void zoo_vit(struct graph *graph, const struct zoo_options *options)
{
    const struct zoo_vit_parts *parts = &options->vit;
    for (size_t i = 0; i < sizeof vits / sizeof vits[0]; i++) {
        struct vit spec = vits[i];
        if (strcmp(spec.name, graph->name) != 0)
            continue;
        if (parts->known) {
            spec.patch = parts->patch, spec.gated = parts->gated;
            spec.registers = parts->registers, spec.scaled = parts->scaled;
        }
        build(graph, options, &spec);
    }
}
