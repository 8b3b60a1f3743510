/* scan.c: scan_tiny, scan_small, scan_base, scan_wide: residual networks without any padding, made
 * for slides. Run densely over a tile, they produce exactly the scores of the sliding 224-px
 * window.
 *
 * Why they are exact. Without padding, an element of the last map sees only its own receptive
 * field, wherever the window is. With total stride 16 the element (i, j) of a window starts at its
 * pixel (16 i, 16 j); if the window moves by 16 px, the maps are the same, shifted by one. A score
 * is a linear function of the mean over the elements inside the window, so a dense run that
 * averages over the same number of elements gives the same score. For steps of 8, 4, 2 or 1 px, the
 * strides of 2 and 4 become dilation of the following layers, and the same holds. In inference
 * batch norm is a factor and an offset per channel and changes nothing.
 *
 * The sizes. A window of k with stride s on n elements must leave no remainder: (n - k) mod s = 0.
 * So kernels are even on even sizes (4 or 8 on 224 px) and odd on odd ones; a residual block with
 * stride 1 takes n to n - 4, one with stride 2 takes an odd n to (n - 5) / 2.
 *
 *   scan_tiny         n  sees px   scan_small        n  sees px   scan_base         n  sees px
 *   conv 8x8 / 4     55     8      conv 4x4 / 2    111     4      conv 4x4 / 2    111     4
 *   block / 2        25    32      conv 3x3 / 2     55     8      conv 3x3 / 2     55     8
 *   block / 2        10    80      block            51    24      block, block     47    40
 *   block             6   144      block / 2        23    48      block / 2        21    64
 *                                  block            19    80      block            17    96
 *                                  block / 2         7   128      block / 2         6   144
 *                                  block             3   192      block             2   208
 *
 * and 144 + 5 x 16 = 192 + 2 x 16 = 208 + 16 = 224.
 *
 * scan_wide is scan_tiny behind a second convolution with stride 4, for tiles of about 1000 px in
 * which the layout of tissue matters: total stride 64, and
 *
 *   conv 8x8 / 4    252     8      block / 2        29   116      block             8   564
 *   conv 4x4 / 4     63    20      block / 2        12   308
 *
 * with 564 + 7 x 64 = 1012.
 *
 * The shortcut of a block is its input without the margin that the two 3x3 convolutions consume: 2
 * on each side. With stride 2 element j of the block is centred on element 2 j + 3 of its input, so
 * 3 are cropped on each side before the 1x1 convolution of stride 2. */
#include "net/zoo/parts.h"

struct scan {
    struct {
        int64_t channels, kernel, stride; /* channels 0: no more */
    } stem[2];
    int64_t width[3]; /* of the stages at the stride of the stem, twice and four times that */
    int blocks[3];    /* the first one of stages 1 and 2 has stride 2 */
};

static value_id conv_norm(struct graph *graph, value_id x, const char *conv, const char *norm,
                          int64_t channels, struct conv_attr attr)
{
    return graph_batch_norm(graph, graph_conv(graph, x, conv, channels, false, attr), norm);
}

static value_id block(struct graph *graph, value_id x, const char *prefix, int64_t channels,
                      int64_t stride)
{
    if (x == NO_VALUE)
        return NO_VALUE;
    value_id y = conv_norm(graph, x, zoo_name("%s.conv1", prefix).text,
                           zoo_name("%s.bn1", prefix).text, channels, conv_square(3, stride, 0));
    y = conv_norm(graph, graph_relu(graph, y), zoo_name("%s.conv2", prefix).text,
                  zoo_name("%s.bn2", prefix).text, channels, conv_square(3, 1, 0));
    int64_t cut = stride == 2 ? -3 : -2;
    x = graph_pad(graph, x, (struct pad_attr){ .pad = { cut, cut, cut, cut } });
    if (x != NO_VALUE && (stride != 1 || graph_shape(graph, x)->dim[1] != channels))
        x = conv_norm(graph, x, zoo_name("%s.downsample.0", prefix).text,
                      zoo_name("%s.downsample.1", prefix).text, channels,
                      conv_square(1, stride, 0));
    return graph_alias(graph, prefix, graph_relu(graph, graph_add(graph, y, x)));
}

static void build(struct graph *graph, const struct zoo_options *options, const struct scan *spec)
{
    value_id x = zoo_image(graph, options);
    for (int i = 0; i < 2 && spec->stem[i].channels; i++)
        x = graph_relu(graph,
                       conv_norm(graph, x, zoo_name("conv%d", i + 1).text,
                                 zoo_name("bn%d", i + 1).text, spec->stem[i].channels,
                                 conv_square(spec->stem[i].kernel, spec->stem[i].stride, 0)));
    graph_alias(graph, "stem", x);
    for (int stage = 0; stage < 3; stage++) {
        for (int i = 0; i < spec->blocks[stage]; i++)
            x = block(graph, x, zoo_name("layer%d.%d", stage + 1, i).text, spec->width[stage],
                      stage > 0 && i == 0 ? 2 : 1);
        if (spec->blocks[stage])
            graph_alias(graph, zoo_name("layer%d", stage + 1).text, x);
    }
    zoo_classifier(graph, x, "fc", options);
    zoo_init(graph, OP_CONV, 1, (struct init){ INIT_FAN_OUT_NORMAL, 0 });
}

void zoo_scan_tiny(struct graph *graph, const struct zoo_options *options)
{
    build(graph, options, &(struct scan){ { { 16, 8, 4 } }, { 16, 24, 48 }, { 0, 1, 2 } });
}

void zoo_scan_small(struct graph *graph, const struct zoo_options *options)
{
    build(graph, options,
          &(struct scan){ { { 24, 4, 2 }, { 32, 3, 2 } }, { 32, 64, 160 }, { 1, 2, 2 } });
}

void zoo_scan_base(struct graph *graph, const struct zoo_options *options)
{
    build(graph, options,
          &(struct scan){ { { 32, 4, 2 }, { 96, 3, 2 } }, { 96, 192, 384 }, { 2, 2, 2 } });
}

void zoo_scan_wide(struct graph *graph, const struct zoo_options *options)
{
    build(graph, options,
          &(struct scan){ { { 16, 8, 4 }, { 16, 4, 4 } }, { 16, 24, 48 }, { 0, 1, 2 } });
}
