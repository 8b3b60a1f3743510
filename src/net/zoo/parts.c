/* parts.c: layers and names shared by several families. */
#include "net/zoo/parts.h"
#include <math.h>
#include <stdarg.h>
#include <string.h>

struct zoo_name zoo_name(const char *format, ...)
{
    struct zoo_name name;
    va_list args;
    va_start(args, format);
    vsnprintf(name.text, sizeof name.text, format, args);
    va_end(args);
    return name;
}

value_id zoo_image(struct graph *graph, const struct zoo_options *options)
{
    return graph_input(graph, "input",
                       SHAPE(options->batch, options->channels, options->height, options->width));
}

void zoo_init(struct graph *graph, enum op_kind kind, int index, struct init init)
{
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const struct node *node = &graph->nodes[i];
        if (node->op->kind == kind && index < node->n_inputs && node->inputs[index] != NO_VALUE)
            graph_init(graph, graph->values[node->inputs[index]].name, init);
    }
}

void zoo_refuse(struct graph *graph, const char *fact)
{
    if (graph->err.kind == ERR_NONE)
        err_set(&graph->err, ERR_FORMAT, "%s", fact);
}

struct conv_attr zoo_same(int64_t height, int64_t width)
{
    int64_t y = height / 2, x = width / 2;
    return (struct conv_attr){ .kernel = { height, width }, .pad = { y, x, y, x } };
}

value_id zoo_conv_unit(struct graph *graph, value_id x, const char *prefix, int64_t channels,
                       struct conv_attr attr)
{
    size_t length = strlen(graph->name);
    bool plain = length > 4 && strcmp(graph->name + length - 4, "nobn") == 0;
    x = graph_conv(graph, x, zoo_name("%s.conv", prefix).text, channels, plain, attr);
    if (!plain)
        x = graph_batch_norm_with(graph, x, zoo_name("%s.bn", prefix).text,
                                  (struct norm_attr){ .epsilon = 1e-3f, .momentum = 0.1f });
    return graph_relu(graph, x);
}

value_id zoo_branch(struct graph *graph, value_id x, const char *block, int index, bool alone,
                    const struct zoo_step *steps)
{
    for (int i = 0; steps[i].height; i++) {
        struct conv_attr attr = zoo_same(steps[i].height, steps[i].width);
        if (steps[i].stride != 1)
            attr = conv_square(steps[i].height, steps[i].stride ? steps[i].stride : 1, 0);
        struct zoo_name name = alone ? zoo_name("%s.branch%d", block, index)
                                     : zoo_name("%s.branch%d.%d", block, index, i);
        x = zoo_conv_unit(graph, x, name.text, steps[i].channels, attr);
    }
    return x;
}

value_id zoo_pooled_branch(struct graph *graph, value_id x, const char *prefix, int64_t channels)
{
    struct pool_attr inside = pool_square(3, 1, 1);
    inside.count_include_pad = false;
    return zoo_conv_unit(graph, graph_average_pool(graph, x, inside), prefix, channels,
                         conv_square(1, 1, 0));
}

value_id zoo_inception_stem(struct graph *graph, value_id x, const char *const names[7])
{
    static const struct {
        int64_t channels, kernel, stride, pad; /* channels 0: pool */
    } layers[7] = { { 32, 3, 2, 0 }, { 32, 3, 1, 0 },  { 64, 3, 1, 1 }, { 0, 3, 2, 0 },
                    { 80, 1, 1, 0 }, { 192, 3, 1, 0 }, { 0, 3, 2, 0 } };
    for (int i = 0; i < 7; i++) {
        int64_t kernel = layers[i].kernel, stride = layers[i].stride, pad = layers[i].pad;
        x = layers[i].channels ? zoo_conv_unit(graph, x, names[i], layers[i].channels,
                                               conv_square(kernel, stride, pad))
                               : graph_max_pool(graph, x, pool_square(kernel, stride, pad));
        graph_alias(graph, names[i], x);
    }
    return x;
}

value_id zoo_scores(struct graph *graph, value_id x, const char *name,
                    const struct zoo_options *options)
{
    if (options->features)
        return graph_output(graph, "embedding", x);
    return graph_output(graph, "logits", graph_linear(graph, x, name, options->classes, true));
}

void zoo_classifier(struct graph *graph, value_id x, const char *name,
                    const struct zoo_options *options)
{
    x = graph_alias(graph, "avgpool", graph_global_average_pool(graph, x));
    graph_alias(graph, name, zoo_scores(graph, graph_flatten(graph, x), name, options));
}

value_id zoo_mean_of_seen(struct graph *graph, value_id x, value_id mask)
{
    value_id column = graph_reshape(graph, mask, SHAPE(0, 0, 1));
    x = graph_reduce_mean(graph, graph_mul(graph, x, column), 1u << 1, false);
    return graph_div(graph, x, graph_reduce_mean(graph, mask, 1u << 1, true));
}

void zoo_time_embedding(double step, int64_t features, float *out)
{
    int64_t half = features / 2;
    for (int64_t i = 0; i < half; i++) {
        double angle = step * pow(10000, -(double)i / (double)half);
        out[i] = (float)sin(angle);
        out[half + i] = (float)cos(angle);
    }
}
