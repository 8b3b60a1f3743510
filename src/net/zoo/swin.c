/* swin.c: Swin Transformers (Liu et al. 2021) with timm's names and parameter names, and
 * CTransPath's (Wang et al. 2022): Swin-T whose patches are embedded by convolutions.
 *
 * In every second block the windows are shifted by half of one. The published code rolls the map
 * and masks what did not lie side by side before. Here the map is not rolled: the shifted windows
 * that the border cuts are smaller windows of their own, so that nothing is computed and then
 * masked. Positions in a window count by their differences only, so a smaller window reads the
 * same table.
 *
 * Sides: maps must be at most as large as a window, or multiples of it: 28, 56, 112, 224 px and
 * multiples of 224. */
#include <string.h>
#include "net/zoo/parts.h"

enum { STAGES = 4, WINDOW = 7, BANDS = 3 };

struct swin {
    const char *name;
    int64_t width, heads; /* of the first stage; both double with each */
    int depth[STAGES];
    bool stem; /* convolutions in front of the patch embedding */
};

static const struct swin swins[] = {
    { "swin_tiny_patch4_window7_224", 96, 3, { 2, 2, 6, 2 }, false },
    { "swin_small_patch4_window7_224", 96, 3, { 2, 2, 18, 2 }, false },
    { "swin_base_patch4_window7_224", 128, 4, { 2, 2, 18, 2 }, false },
    { "swin_large_patch4_window7_224", 192, 6, { 2, 2, 18, 2 }, false },
    { "ctranspath", 96, 3, { 2, 2, 6, 2 }, true },
};
static const float epsilon = 1e-5f;

/* Windows along one axis of a map: `count` of `extent` cells from `begin` on. */
struct band {
    int64_t begin, extent, count;
};

/* One axis: its windows, all of one size, or, shifted, with smaller ones at both ends. */
struct axis {
    int64_t window;
    struct band bands[BANDS];
    int n;
};

static struct axis axis_windows(int64_t extent, bool shifted)
{
    struct axis axis = { .window = extent < WINDOW ? extent : WINDOW, .n = 1 };
    int64_t window = axis.window, shift = window / 2, count = extent / window;
    axis.bands[0] = (struct band){ 0, window, count };
    if (!shifted || count < 2)
        return axis;
    axis.n = BANDS;
    axis.bands[0] = (struct band){ 0, shift, 1 };
    axis.bands[1] = (struct band){ shift, window, count - 1 };
    axis.bands[2] = (struct band){ shift + window * (count - 1), window - shift, 1 };
    return axis;
}

/* What a block attends with. */
struct attention_part {
    struct graph *graph;
    const char *prefix;
    int64_t width, heads;
    struct axis rows, columns;
    value_id table; /* [2 rows - 1, 2 columns - 1, heads]: the bias of each difference in place */
};

/* The slices of x that begin one element earlier each, `n` of `n` elements of an axis, joined along
 * a new first axis: [..] -> [n, ..] */
static value_id differences(struct graph *graph, value_id x, int64_t axis, int64_t window,
                            int64_t n)
{
    value_id slices[WINDOW];
    for (int64_t i = 0; i < n; i++) {
        slices[i] = graph_slice(graph, x, axis, window - 1 - i, window - 1 - i + n);
        if (slices[i] == NO_VALUE)
            return NO_VALUE;
        struct shape shape = *graph_shape(graph, slices[i]);
        memmove(shape.dim + 1, shape.dim, (size_t)shape.rank * sizeof *shape.dim);
        shape.dim[0] = 1;
        shape.rank++;
        slices[i] = graph_reshape(graph, slices[i], shape);
    }
    return graph_concat(graph, slices, (int)n, 0);
}

/* [1, heads, T, T] of all pairs of the T = a b cells of a window: query (i, j), key (k, l). */
static value_id pair_bias(const struct attention_part *part, int64_t a, int64_t b)
{
    struct graph *graph = part->graph;
    value_id x = differences(graph, part->table, 0, part->rows.window, a); /* k, i, column, head */
    x = differences(graph, x, 2, part->columns.window, b);                 /* l, k, i, j, head */
    x = graph_transpose(graph, x, (const int64_t[]){ 4, 2, 3, 1, 0 });
    return graph_reshape(graph, x, SHAPE(1, part->heads, a * b, a * b));
}

/* The windows of one kind: qkv [N, H, W, 3 width] -> [N, rows, columns, width] */
static value_id attend(const struct attention_part *part, value_id qkv, const struct band *rows,
                       const struct band *columns)
{
    static const int64_t swap[] = { 0, 1, 3, 2, 4, 5 };
    struct graph *graph = part->graph;
    int64_t a = rows->extent, b = columns->extent;
    value_id x = graph_slice(graph, qkv, 1, rows->begin, rows->begin + rows->count * a);
    x = graph_slice(graph, x, 2, columns->begin, columns->begin + columns->count * b);
    x = graph_reshape(graph, x, SHAPE(0, rows->count, a, columns->count, b, -1));
    x = graph_reshape(graph, graph_transpose(graph, x, swap), SHAPE(-1, a * b, 3 * part->width));
    x = graph_attention_packed(graph, x, pair_bias(part, a, b), NO_VALUE,
                               (struct attention_attr){ .heads = part->heads });
    x = graph_reshape(graph, x, SHAPE(-1, rows->count, columns->count, a, b, part->width));
    return graph_reshape(graph, graph_transpose(graph, x, swap),
                         SHAPE(-1, rows->count * a, columns->count * b, part->width));
}

/* qkv [N, H, W, 3 width] -> [N, H, W, width] */
static value_id attend_all(const struct attention_part *part, value_id qkv)
{
    value_id rows[BANDS];
    for (int i = 0; i < part->rows.n; i++) {
        value_id columns[BANDS];
        for (int k = 0; k < part->columns.n; k++)
            columns[k] = attend(part, qkv, &part->rows.bands[i], &part->columns.bands[k]);
        rows[i] = part->columns.n > 1 ? graph_concat(part->graph, columns, part->columns.n, 2)
                                      : columns[0];
    }
    return part->rows.n > 1 ? graph_concat(part->graph, rows, part->rows.n, 1) : rows[0];
}

/* x [N, H, W, width] -> the same */
static value_id window_attention(struct graph *graph, value_id x, const char *prefix, int64_t width,
                                 int64_t heads, bool shifted)
{
    const struct shape *shape = x == NO_VALUE ? NULL : graph_shape(graph, x);
    if (!shape)
        return NO_VALUE;
    struct attention_part part = { .graph = graph,
                                   .prefix = prefix,
                                   .width = width,
                                   .heads = heads,
                                   .rows = axis_windows(shape->dim[1], shifted),
                                   .columns = axis_windows(shape->dim[2], shifted) };
    int64_t rows = 2 * part.rows.window - 1, columns = 2 * part.columns.window - 1;
    struct zoo_name name = zoo_name("%s.relative_position_bias_table", prefix);
    part.table = graph_parameter(graph, name.text, SHAPE(rows * columns, heads));
    graph_init(graph, name.text, (struct init){ INIT_TRUNCATED, 0.02f });
    part.table = graph_reshape(graph, part.table, SHAPE(rows, columns, heads));
    x = graph_linear(graph, x, zoo_name("%s.qkv", prefix).text, 3 * width, true);
    x = attend_all(&part, x);
    return graph_linear(graph, x, zoo_name("%s.proj", prefix).text, width, true);
}

/* x [N, H, W, width] -> the same */
static value_id block(struct graph *graph, value_id x, const char *prefix, int64_t width,
                      int64_t heads, bool shifted)
{
    value_id y = graph_layer_norm(graph, x, zoo_name("%s.norm1", prefix).text, epsilon);
    y = window_attention(graph, y, zoo_name("%s.attn", prefix).text, width, heads, shifted);
    x = graph_add(graph, x, y);
    y = graph_layer_norm(graph, x, zoo_name("%s.norm2", prefix).text, epsilon);
    y = graph_linear(graph, y, zoo_name("%s.mlp.fc1", prefix).text, 4 * width, true);
    y = graph_linear(graph, graph_gelu(graph, y), zoo_name("%s.mlp.fc2", prefix).text, width, true);
    return graph_alias(graph, prefix, graph_add(graph, x, y));
}

/* x [N, H, W, C] -> [N, H / 2, W / 2, 2 C]; an odd side gets a row or column of zeros. */
static value_id merge(struct graph *graph, value_id x, const char *prefix, int64_t channels)
{
    const struct shape *shape = x == NO_VALUE ? NULL : graph_shape(graph, x);
    if (!shape)
        return NO_VALUE;
    int64_t height = shape->dim[1], width = shape->dim[2];
    if (height % 2 || width % 2) {
        struct pad_attr pad = { .pad = { 0, 0, height % 2, width % 2 } };
        x = graph_pad(graph, graph_transpose(graph, x, (const int64_t[]){ 0, 3, 1, 2 }), pad);
        x = graph_transpose(graph, x, (const int64_t[]){ 0, 2, 3, 1 });
        height += height % 2, width += width % 2;
    }
    x = graph_reshape(graph, x, SHAPE(0, height / 2, 2, width / 2, 2, channels));
    x = graph_transpose(graph, x, (const int64_t[]){ 0, 1, 3, 4, 2, 5 });
    x = graph_reshape(graph, x, SHAPE(0, height / 2, width / 2, 4 * channels));
    x = graph_layer_norm(graph, x, zoo_name("%s.norm", prefix).text, epsilon);
    x = graph_linear(graph, x, zoo_name("%s.reduction", prefix).text, 2 * channels, false);
    return graph_alias(graph, prefix, x);
}

/* image [N, C, H, W] -> [N, H / 4, W / 4, width] */
static value_id embed(struct graph *graph, value_id image, const struct swin *spec)
{
    value_id x = image;
    for (int i = 0; spec->stem && i < 2; i++) {
        x = graph_conv(graph, x, zoo_name("patch_embed.proj.%d", 3 * i).text,
                       (spec->width / 8) << i, false, conv_square(3, 2, 1));
        x = graph_batch_norm(graph, x, zoo_name("patch_embed.proj.%d", 3 * i + 1).text);
        x = graph_relu(graph, x);
    }
    if (spec->stem)
        x = graph_conv(graph, x, "patch_embed.proj.6", spec->width, true, conv_square(1, 1, 0));
    else
        x = graph_conv(graph, x, "patch_embed.proj", spec->width, true, conv_square(4, 4, 0));
    x = graph_transpose(graph, x, (const int64_t[]){ 0, 2, 3, 1 });
    x = graph_layer_norm(graph, x, "patch_embed.norm", epsilon);
    return graph_alias(graph, "patch_embed", x);
}

/* Whether maps of all stages consist of whole windows. */
static bool fits(int64_t side)
{
    int64_t map = side / 4;
    for (int stage = 0; stage < STAGES; stage++, map = (map + 1) / 2)
        if (map > WINDOW && map % WINDOW)
            return false;
    return map > 0;
}

static void build(struct graph *graph, const struct zoo_options *options, const struct swin *spec)
{
    int64_t width = spec->width, heads = spec->heads;
    value_id x = zoo_image(graph, options);
    if (!fits(options->height) || !fits(options->width)) {
        zoo_refuse(graph, "needs sides of 28, 56, 112 px or multiples of 224 px");
        return;
    }
    x = embed(graph, x, spec);
    for (int stage = 0; stage < STAGES; stage++, width *= 2, heads *= 2) {
        struct zoo_name name = zoo_name("layers.%d", stage);
        if (stage > 0)
            x = merge(graph, x, zoo_name("%s.downsample", name.text).text, width / 2);
        for (int i = 0; i < spec->depth[stage]; i++)
            x = block(graph, x, zoo_name("%s.blocks.%d", name.text, i).text, width, heads,
                      i % 2 == 1);
        graph_alias(graph, name.text, x);
    }
    x = graph_alias(graph, "norm", graph_layer_norm(graph, x, "norm", epsilon));
    x = graph_reduce_mean(graph, x, 1u << 1 | 1u << 2, false);
    graph_alias(graph, "head", zoo_scores(graph, x, "head.fc", options));
    zoo_init(graph, OP_LINEAR, 1, (struct init){ INIT_TRUNCATED, 0.02f });
    zoo_init(graph, OP_LINEAR, 2, (struct init){ INIT_CONSTANT, 0 });
}

void zoo_swin(struct graph *graph, const struct zoo_options *options)
{
    for (size_t i = 0; i < sizeof swins / sizeof swins[0]; i++)
        if (strcmp(swins[i].name, graph->name) == 0)
            build(graph, options, &swins[i]);
}
