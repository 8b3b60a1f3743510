/* export_ops.c: each of our ops as nodes of ONNX opset 17, readable by other programs and by our
 * importer. The node that the importer names a layer after carries the layer's name. */
#include <math.h>
#include <string.h>
#include "base/divide.h"
#include "net/kernels/standardize.h"
#include "net/onnx/export_parts.h"

static void simple(struct onnx_builder *b, const struct node *node)
{
    const char *inputs[2] = { in(b, node, 0), in(b, node, 1) };
    onnx_emit(b, node->op->onnx, node->name, inputs, (size_t)node->n_inputs, out(b, node));
}

static void silu(struct onnx_builder *b, const struct node *node, const char *x, const char *y)
{
    const char *gate = part(b, node, "Sigmoid");
    emit1(b, "Sigmoid", gate, x, gate);
    emit2(b, "Mul", node->name, x, gate, y);
}

/* 0.5 x (1 + erf(x / sqrt 2)), or with tanh(sqrt(2 / pi) (x + 0.044715 x^3)) in place of erf */
static void gelu(struct onnx_builder *b, const struct node *node, const char *x, const char *y,
                 bool tanh_form)
{
    const char *s = part(b, node, tanh_form ? "Tanh" : "Erf");
    if (tanh_form) {
        const char *square = part(b, node, "Square"), *cube = part(b, node, "Cube");
        const char *sum = part(b, node, "Inner");
        emit2(b, "Mul", square, x, x, square);
        emit2(b, "Mul", cube, square, x, cube);
        const char *small = with_number(b, node, "Mul", "Small", cube, 0.044715);
        emit2(b, "Add", sum, x, small, sum);
        const char *inner = with_number(b, node, "Mul", "Scaled", sum, sqrt(2 / 3.141592653589793));
        emit1(b, "Tanh", s, inner, s);
    } else {
        emit1(b, "Erf", s, with_number(b, node, "Div", "Div", x, sqrt(2)), s);
    }
    const char *one = with_number(b, node, "Add", "Add", s, 1), *product = part(b, node, "Product");
    emit2(b, "Mul", product, x, one, product);
    const char *half = onnx_const_number(b, part(b, node, "half"), 0.5f);
    emit2(b, "Mul", node->name, product, half, y);
}

/* What a conv or linear layer has behind it; x is its bare result. */
static void activate(struct onnx_builder *b, const struct node *node, enum activation activation,
                     const char *x)
{
    struct node behind = *node;
    behind.name = (char *)(uintptr_t)part(b, node, "Activation"); /* only read */
    if (activation == ACT_RELU)
        emit1(b, "Relu", behind.name, x, out(b, node));
    else if (activation == ACT_SILU)
        silu(b, &behind, x, out(b, node));
    else if (activation == ACT_GELU)
        gelu(b, &behind, x, out(b, node), false);
}

static void window(struct onnx_builder *b, Onnx__NodeProto *proto, const int64_t *kernel,
                   const int64_t *stride, const int64_t *pad, const int64_t *dilation)
{
    onnx_set_ints(b, proto, "kernel_shape", kernel, 2);
    onnx_set_ints(b, proto, "strides", stride, 2);
    onnx_set_ints(b, proto, "pads", pad, SIDES);
    if (dilation)
        onnx_set_ints(b, proto, "dilations", dilation, 2);
}

static void conv(struct onnx_builder *b, const struct node *node)
{
    const struct conv_attr *a = &node->attr.conv;
    const char *inputs[3] = { in(b, node, 0), in(b, node, 1), in(b, node, 2) };
    const char *residual = in(b, node, 3), *y = out(b, node);
    const char *sum = a->activation == ACT_NONE ? y : part(b, node, "Bare");
    const char *bare = *residual ? part(b, node, "Product") : sum;
    Onnx__NodeProto *proto =
        onnx_emit(b, node->op->onnx, node->name, inputs, *inputs[2] ? 3 : 2, bare);
    window(b, proto, a->kernel, a->stride, a->pad, a->dilation);
    onnx_set_int(b, proto, "group", a->groups);
    if (node->op->kind == OP_CONV_TRANSPOSE)
        onnx_set_ints(b, proto, "output_padding", a->output_pad, 2);
    if (*residual)
        emit2(b, "Add", part(b, node, "Add"), bare, residual, sum);
    activate(b, node, a->activation, sum);
}

/* Gemm takes matrices only; tensors of more axes are multiplied by the transposed weight. */
static void linear(struct onnx_builder *b, const struct node *node)
{
    enum activation activation = node->attr.linear.activation;
    const char *inputs[3] = { in(b, node, 0), in(b, node, 1), in(b, node, 2) };
    const char *residual = in(b, node, 3);
    const char *sum = activation == ACT_NONE ? out(b, node) : part(b, node, "Bare");
    const char *bare = *residual ? part(b, node, "Layer") : sum;
    if (in_shape(b, node, 0)->rank == 2) {
        Onnx__NodeProto *proto = onnx_emit(b, "Gemm", node->name, inputs, *inputs[2] ? 3 : 2, bare);
        onnx_set_int(b, proto, "transB", 1);
    } else {
        const char *turned = part(b, node, "Transpose");
        const char *product = *inputs[2] ? part(b, node, "Product") : bare;
        Onnx__NodeProto *proto = emit1(b, "Transpose", turned, inputs[1], turned);
        onnx_set_ints(b, proto, "perm", (int64_t[]){ 1, 0 }, 2);
        emit2(b, "MatMul", node->name, inputs[0], turned, product);
        if (*inputs[2])
            emit2(b, "Add", part(b, node, "Add"), product, inputs[2], bare);
    }
    if (*residual)
        emit2(b, "Add", part(b, node, "Residual"), bare, residual, sum);
    activate(b, node, activation, sum);
}

/* x with its last two axes swapped. */
static const char *turned_input(struct onnx_builder *b, const struct node *node, int i)
{
    int64_t order[SHAPE_DIMS];
    int rank = in_shape(b, node, i)->rank;
    const char *y = part(b, node, i ? "TransposeB" : "TransposeA");
    for (int k = 0; k < rank; k++)
        order[k] = k < rank - 2 ? k : k == rank - 2 ? rank - 1 : rank - 2;
    Onnx__NodeProto *proto = emit1(b, "Transpose", y, in(b, node, i), y);
    onnx_set_ints(b, proto, "perm", order, (size_t)rank);
    return y;
}

static void matmul(struct onnx_builder *b, const struct node *node)
{
    const struct matmul_attr *a = &node->attr.matmul;
    const char *left = a->transpose_a ? turned_input(b, node, 0) : in(b, node, 0);
    const char *right = a->transpose_b ? turned_input(b, node, 1) : in(b, node, 1);
    bool scaled = a->scale != 1;
    const char *product = scaled ? part(b, node, "Product") : out(b, node);
    emit2(b, "MatMul", node->name, left, right, product);
    if (scaled)
        emit2(b, "Mul", part(b, node, "Mul"), product,
              onnx_const_number(b, part(b, node, "scale"), a->scale), out(b, node));
}

static void batch_norm(struct onnx_builder *b, const struct node *node)
{
    const char *inputs[5];
    for (int i = 0; i < 5; i++)
        inputs[i] = in(b, node, i);
    Onnx__NodeProto *proto =
        onnx_emit(b, "BatchNormalization", node->name, inputs, 5, out(b, node));
    onnx_set_float(b, proto, "epsilon", node->attr.norm.epsilon);
    onnx_set_float(b, proto, "momentum", 1 - node->attr.norm.momentum);
}

/* A vector of channels so that it broadcasts over [N, C, ..]. */
static const char *along_channels(struct onnx_builder *b, const struct node *node, int i)
{
    int rank = in_shape(b, node, 0)->rank;
    int64_t axes[SHAPE_DIMS];
    if (rank == 2)
        return in(b, node, i);
    for (int k = 0; k < rank - 2; k++)
        axes[k] = k + 1;
    const char *y = part(b, node, i == 1 ? "Weight" : "Bias");
    const char *list = onnx_const_ints(b, onnx_text(b, "%s.axes", y), axes, (size_t)rank - 2);
    emit2(b, "Unsqueeze", y, in(b, node, i), list, y);
    return y;
}

/* Opset 17 has no group norm: groups become channels of an instance norm, as PyTorch exports it. */
static void group_norm(struct onnx_builder *b, const struct node *node)
{
    enum { MOST = 4096 };
    int64_t groups = node->attr.norm.groups;
    float ones[MOST], zeros[MOST] = { 0 };
    if (groups > MOST) {
        err_set(&b->err, ERR_USAGE, "%s: has %lld groups; at most %d can be written to ONNX",
                node->name, (long long)groups, MOST);
        return;
    }
    for (int64_t i = 0; i < groups; i++)
        ones[i] = 1;
    const char *weight = along_channels(b, node, 1), *bias = along_channels(b, node, 2);
    const char *split = part(b, node, "Groups"), *normal = part(b, node, "Norm");
    const char *shape = part(b, node, "Shape"), *back = part(b, node, "Back");
    const char *scaled = part(b, node, "Scaled");
    const char *inputs[3] = { split };
    inputs[1] = onnx_const_floats(b, part(b, node, "ones"), &SHAPE(groups), ones);
    inputs[2] = onnx_const_floats(b, part(b, node, "zeros"), &SHAPE(groups), zeros);
    emit1(b, "Shape", shape, in(b, node, 0), shape);
    emit2(b, "Reshape", split, in(b, node, 0),
          onnx_const_ints(b, part(b, node, "groups"), (int64_t[]){ 0, groups, -1 }, 3), split);
    Onnx__NodeProto *proto = onnx_emit(b, "InstanceNormalization", normal, inputs, 3, normal);
    onnx_set_float(b, proto, "epsilon", node->attr.norm.epsilon);
    emit2(b, "Reshape", back, normal, shape, back);
    emit2(b, "Mul", scaled, back, weight, scaled);
    emit2(b, "Add", node->name, scaled, bias, out(b, node));
}

static void layer_norm(struct onnx_builder *b, const struct node *node)
{
    const char *inputs[3] = { in(b, node, 0), in(b, node, 1), in(b, node, 2) };
    Onnx__NodeProto *proto =
        onnx_emit(b, "LayerNormalization", node->name, inputs, 3, out(b, node));
    onnx_set_int(b, proto, "axis", -node->attr.norm.axes);
    onnx_set_float(b, proto, "epsilon", node->attr.norm.epsilon);
}

/* Opset 17 has no such norm. */
static void rms_norm(struct onnx_builder *b, const struct node *node)
{
    int64_t axes[SHAPE_DIMS], n = node->attr.norm.axes;
    const char *x = in(b, node, 0), *square = part(b, node, "Square"),
               *mean = part(b, node, "Mean");
    const char *root = part(b, node, "Sqrt"), *divided = part(b, node, "Div");
    for (int64_t i = 0; i < n; i++)
        axes[i] = i - n;
    emit2(b, "Mul", square, x, x, square);
    onnx_set_ints(b, emit1(b, "ReduceMean", mean, square, mean), "axes", axes, (size_t)n);
    emit1(b, "Sqrt", root,
          with_number(b, node, "Add", "Add", mean, (double)node->attr.norm.epsilon), root);
    emit2(b, "Div", divided, x, root, divided);
    emit2(b, "Mul", node->name, divided, in(b, node, 1), out(b, node));
}

static void leaky_relu(struct onnx_builder *b, const struct node *node)
{
    Onnx__NodeProto *proto = emit1(b, "LeakyRelu", node->name, in(b, node, 0), out(b, node));
    onnx_set_float(b, proto, "alpha", node->attr.leaky.slope);
}

static void silu_node(struct onnx_builder *b, const struct node *node)
{
    silu(b, node, in(b, node, 0), out(b, node));
}

static void gelu_node(struct onnx_builder *b, const struct node *node)
{
    gelu(b, node, in(b, node, 0), out(b, node), node->attr.gelu.tanh_form);
}

static void pool(struct onnx_builder *b, const struct node *node)
{
    const struct pool_attr *a = &node->attr.pool;
    bool average = node->op->kind == OP_AVERAGE_POOL;
    if (average && (a->dilation[0] != 1 || a->dilation[1] != 1)) {
        err_set(&b->err, ERR_USAGE, "%s: ONNX opset 17 has no dilated average pooling", node->name);
        return;
    }
    Onnx__NodeProto *proto = emit1(b, node->op->onnx, node->name, in(b, node, 0), out(b, node));
    window(b, proto, a->kernel, a->stride, a->pad, average ? NULL : a->dilation);
    onnx_set_int(b, proto, "ceil_mode", a->ceil_mode);
    if (average)
        onnx_set_int(b, proto, "count_include_pad", a->count_include_pad);
}

/* The mean over the windows of one axis as a matrix: [in, out], or [out, in] if turned. */
static const char *mean_matrix(struct onnx_builder *b, const struct node *node, const char *suffix,
                               int64_t from, int64_t to, bool turned)
{
    float *floats = onnx_keep(b, (size_t)(from * to) * sizeof *floats);
    if (!floats)
        return "";
    for (int64_t o = 0; o < to; o++) {
        int64_t begin = o * from / to, end = ceil_div((o + 1) * from, to);
        for (int64_t i = begin; i < end; i++)
            floats[turned ? o * from + i : i * to + o] = 1 / (float)(end - begin);
    }
    struct shape shape = turned ? SHAPE(to, from) : SHAPE(from, to);
    return onnx_weight(b, part(b, node, suffix), &shape, floats);
}

/* Global, by whole windows, or else as two products with constant matrices (of this size). */
static void adaptive_pool(struct onnx_builder *b, const struct node *node)
{
    const struct shape *x = in_shape(b, node, 0);
    const int64_t *size = node->attr.adaptive.size, none[SIDES] = { 0 };
    int64_t h = x->dim[2], w = x->dim[3];
    if (size[0] == 1 && size[1] == 1) {
        emit1(b, "GlobalAveragePool", node->name, in(b, node, 0), out(b, node));
    } else if (h % size[0] == 0 && w % size[1] == 0) {
        int64_t kernel[2] = { h / size[0], w / size[1] };
        Onnx__NodeProto *proto = emit1(b, "AveragePool", node->name, in(b, node, 0), out(b, node));
        window(b, proto, kernel, kernel, none, NULL);
    } else {
        const char *rows = part(b, node, "Columns");
        emit2(b, "MatMul", rows, in(b, node, 0), mean_matrix(b, node, "width", w, size[1], false),
              rows);
        emit2(b, "MatMul", node->name, mean_matrix(b, node, "height", h, size[0], true), rows,
              out(b, node));
    }
}

static void lrn(struct onnx_builder *b, const struct node *node)
{
    Onnx__NodeProto *proto = emit1(b, "LRN", node->name, in(b, node, 0), out(b, node));
    onnx_set_int(b, proto, "size", node->attr.lrn.size);
    onnx_set_float(b, proto, "alpha", node->attr.lrn.alpha);
    onnx_set_float(b, proto, "beta", node->attr.lrn.beta);
    onnx_set_float(b, proto, "bias", node->attr.lrn.bias);
}

static void scale(struct onnx_builder *b, const struct node *node)
{
    const struct scale_attr *a = &node->attr.scale;
    const char *x = in(b, node, 0), *y = out(b, node);
    bool shifted = a->offset != 0;
    const char *product = shifted ? part(b, node, "Product") : y;
    if (a->factor != 1 || !shifted)
        emit2(b, "Mul", shifted ? product : node->name, x,
              onnx_const_number(b, part(b, node, "factor"), a->factor), product);
    if (shifted)
        emit2(b, "Add", node->name, a->factor != 1 ? product : x,
              onnx_const_number(b, part(b, node, "offset"), a->offset), y);
}

static void concat(struct onnx_builder *b, const struct node *node)
{
    const char **inputs = onnx_keep(b, (size_t)node->n_inputs * sizeof *inputs);
    for (int i = 0; inputs && i < node->n_inputs; i++)
        inputs[i] = in(b, node, i);
    if (!inputs)
        return;
    Onnx__NodeProto *proto =
        onnx_emit(b, "Concat", node->name, inputs, (size_t)node->n_inputs, out(b, node));
    onnx_set_int(b, proto, "axis", node->attr.axis.axis);
}

static void slice(struct onnx_builder *b, const struct node *node)
{
    const struct slice_attr *a = &node->attr.slice;
    const char *inputs[5] = { in(b, node, 0) };
    inputs[1] = onnx_const_ints(b, part(b, node, "starts"), &a->begin, 1);
    inputs[2] = onnx_const_ints(b, part(b, node, "ends"), &a->end, 1);
    inputs[3] = onnx_const_ints(b, part(b, node, "axes"), &a->axis, 1);
    inputs[4] = onnx_const_ints(b, part(b, node, "steps"), &a->step, 1);
    onnx_emit(b, "Slice", node->name, inputs, 5, out(b, node));
}

static void pad(struct onnx_builder *b, const struct node *node)
{
    static const char *const modes[] = { "constant", "reflect", "edge" };
    const struct pad_attr *a = &node->attr.pad;
    int64_t pads[8] = { 0, 0, a->pad[SIDE_TOP],    a->pad[SIDE_LEFT],
                        0, 0, a->pad[SIDE_BOTTOM], a->pad[SIDE_RIGHT] };
    const char *inputs[3] = { in(b, node, 0), onnx_const_ints(b, part(b, node, "pads"), pads, 8) };
    inputs[2] = onnx_const_number(b, part(b, node, "value"), a->value);
    Onnx__NodeProto *proto = onnx_emit(b, "Pad", node->name, inputs, 3, out(b, node));
    onnx_set_text(b, proto, "mode", modes[a->mode]);
}

static void reshape(struct onnx_builder *b, const struct node *node)
{
    const struct shape *target = &node->attr.reshape.target;
    emit2(b, "Reshape", node->name, in(b, node, 0),
          onnx_const_ints(b, part(b, node, "shape"), target->dim, (size_t)target->rank),
          out(b, node));
}

static void with_axis(struct onnx_builder *b, const struct node *node)
{
    Onnx__NodeProto *proto = emit1(b, node->op->onnx, node->name, in(b, node, 0), out(b, node));
    onnx_set_int(b, proto, "axis", node->attr.axis.axis);
}

static void transpose(struct onnx_builder *b, const struct node *node)
{
    const struct transpose_attr *a = &node->attr.transpose;
    Onnx__NodeProto *proto = emit1(b, "Transpose", node->name, in(b, node, 0), out(b, node));
    onnx_set_ints(b, proto, "perm", a->order, (size_t)a->rank);
}

/* The shape [batch of `like`, the other axes of x]. */
static void expand_batch(struct onnx_builder *b, const struct node *node)
{
    const struct shape *x = in_shape(b, node, 0);
    const char *batch = part(b, node, "Batch"), *shape = part(b, node, "Shape");
    Onnx__NodeProto *proto = emit1(b, "Shape", batch, in(b, node, 1), batch);
    onnx_set_int(b, proto, "start", 0);
    onnx_set_int(b, proto, "end", 1);
    const char *rest = onnx_const_ints(b, part(b, node, "rest"), x->dim + 1, (size_t)x->rank - 1);
    proto = emit2(b, "Concat", shape, batch, rest, shape);
    onnx_set_int(b, proto, "axis", 0);
    emit2(b, "Expand", node->name, in(b, node, 0), shape, out(b, node));
}

static void reduce(struct onnx_builder *b, const struct node *node)
{
    int64_t axes[SHAPE_DIMS];
    size_t n = 0;
    for (int i = 0; i < SHAPE_DIMS; i++)
        if (node->attr.reduce.axes >> i & 1)
            axes[n++] = i;
    Onnx__NodeProto *proto = emit1(b, node->op->onnx, node->name, in(b, node, 0), out(b, node));
    onnx_set_ints(b, proto, "axes", axes, n);
    onnx_set_int(b, proto, "keepdims", node->attr.reduce.keep);
}

/* (log sum exp(r x) - log n) / r, where n is the number of cells at this size. */
static void lse_pool(struct onnx_builder *b, const struct node *node)
{
    const struct shape *x = in_shape(b, node, 0);
    double r = (double)node->attr.lse.r;
    const char *sum = part(b, node, "ReduceLogSumExp");
    const char *scaled = with_number(b, node, "Mul", "Mul", in(b, node, 0), r);
    Onnx__NodeProto *proto = emit1(b, "ReduceLogSumExp", sum, scaled, sum);
    onnx_set_ints(b, proto, "axes", (int64_t[]){ 2, 3 }, 2);
    onnx_set_int(b, proto, "keepdims", 1);
    const char *mean =
        with_number(b, node, "Sub", "Sub", sum, log((double)(x->dim[2] * x->dim[3])));
    emit2(b, "Div", node->name, mean, onnx_const_number(b, part(b, node, "r"), (float)r),
          out(b, node));
}

/* The weight as it is now. */
static void standardize(struct onnx_builder *b, const struct node *node)
{
    const struct shape *shape = in_shape(b, node, 0);
    const float *weight = graph_data(b->graph, node->inputs[0]);
    const float *gain = graph_data(b->graph, node->inputs[1]);
    float *floats = onnx_keep(b, (size_t)shape_count(shape) * sizeof *floats);
    struct standardize rows = { shape->dim[0], shape_span(shape, 1, shape->rank),
                                node->attr.norm.epsilon, 1 };
    if (!weight || !gain)
        err_set(&b->err, ERR_USAGE, "%s: only weights can be standardised in ONNX", node->name);
    else if (floats)
        standardize_run(&rows, weight, gain, floats);
    onnx_weight(b, out(b, node), shape, floats);
}

static void dropout(struct onnx_builder *b, const struct node *node)
{
    emit2(b, "Dropout", node->name, in(b, node, 0),
          onnx_const_number(b, part(b, node, "ratio"), node->attr.dropout.rate), out(b, node));
}

/* [N, C of the input, height, width] for any batch. */
static const char *full_size(struct onnx_builder *b, const struct node *node, const int64_t *size)
{
    const char *first = part(b, node, "Batch"), *sizes = part(b, node, "Sizes");
    Onnx__NodeProto *proto = emit1(b, "Shape", first, in(b, node, 0), first);
    onnx_set_int(b, proto, "start", 0);
    onnx_set_int(b, proto, "end", 2);
    proto =
        emit2(b, "Concat", sizes, first, onnx_const_ints(b, part(b, node, "size"), size, 2), sizes);
    onnx_set_int(b, proto, "axis", 0);
    return sizes;
}

static void upsample(struct onnx_builder *b, const struct node *node)
{
    const struct upsample_attr *a = &node->attr.upsample;
    const struct shape *y = graph_shape(b->graph, node->output);
    bool nearest = a->mode == UPSAMPLE_NEAREST, sized = a->size[0] || a->size[1];
    const char *inputs[4] = { in(b, node, 0), "", "", "" };
    float scales[4] = { 1, 1, (float)a->scale[0], (float)a->scale[1] };
    if (sized)
        inputs[3] = full_size(b, node, y->dim + 2);
    else
        inputs[2] = onnx_const_floats(b, part(b, node, "scales"), &SHAPE(4), scales);
    Onnx__NodeProto *proto =
        onnx_emit(b, "Resize", node->name, inputs, sized ? 4 : 3, out(b, node));
    onnx_set_text(b, proto, "mode", nearest ? "nearest" : "linear");
    onnx_set_text(b, proto, "coordinate_transformation_mode",
                  nearest            ? "asymmetric"
                  : a->align_corners ? "align_corners"
                                     : "half_pixel");
    if (nearest)
        onnx_set_text(b, proto, "nearest_mode", "floor");
}

/* Rounded, and floats again: no other node reads what is stored. */
static void convert(struct onnx_builder *b, const struct node *node)
{
    const struct storage *to = &node->attr.convert;
    const char *x = in(b, node, 0), *y = out(b, node), *kept = part(b, node, "Stored");
    if (to->dtype == DTYPE_FLOAT32) {
        emit1(b, "Identity", node->name, x, y);
    } else if (to->dtype == DTYPE_BFLOAT16) {
        onnx_set_int(b, emit1(b, "Cast", node->name, x, kept), "to",
                     ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16);
        onnx_set_int(b, emit1(b, "Cast", part(b, node, "Cast"), kept, y), "to",
                     ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
    } else {
        const char *scale = onnx_const_number(b, part(b, node, "scale"), to->scale);
        const char *zero = onnx_const_int8(b, part(b, node, "zero_point"), (int8_t)to->zero_point);
        onnx_emit(b, "QuantizeLinear", node->name, (const char *[]){ x, scale, zero }, 3, kept);
        onnx_emit(b, "DequantizeLinear", part(b, node, "Dequantize"),
                  (const char *[]){ kept, scale, zero }, 3, y);
    }
}

static void (*const exporters[OP_KINDS])(struct onnx_builder *, const struct node *) = {
    [OP_CONV] = conv,
    [OP_CONV_TRANSPOSE] = conv,
    [OP_LINEAR] = linear,
    [OP_MATMUL] = matmul,
    [OP_BATCH_NORM] = batch_norm,
    [OP_GROUP_NORM] = group_norm,
    [OP_LAYER_NORM] = layer_norm,
    [OP_RMS_NORM] = rms_norm,
    [OP_RELU] = simple,
    [OP_LEAKY_RELU] = leaky_relu,
    [OP_SILU] = silu_node,
    [OP_GELU] = gelu_node,
    [OP_SIGMOID] = simple,
    [OP_TANH] = simple,
    [OP_MAX_POOL] = pool,
    [OP_AVERAGE_POOL] = pool,
    [OP_GLOBAL_MAX_POOL] = simple,
    [OP_GLOBAL_AVERAGE_POOL] = simple,
    [OP_ADAPTIVE_AVERAGE_POOL] = adaptive_pool,
    [OP_LRN] = lrn,
    [OP_ADD] = simple,
    [OP_SUB] = simple,
    [OP_MUL] = simple,
    [OP_DIV] = simple,
    [OP_SCALE] = scale,
    [OP_CONCAT] = concat,
    [OP_SLICE] = slice,
    [OP_PAD] = pad,
    [OP_RESHAPE] = reshape,
    [OP_FLATTEN] = with_axis,
    [OP_TRANSPOSE] = transpose,
    [OP_EXPAND_BATCH] = expand_batch,
    [OP_REDUCE_MEAN] = reduce,
    [OP_REDUCE_MAX] = reduce,
    [OP_SOFTMAX] = with_axis,
    [OP_LOG_SOFTMAX] = with_axis,
    [OP_DROPOUT] = dropout,
    [OP_UPSAMPLE] = upsample,
    [OP_CONVERT] = convert,
    [OP_GLOBAL_LSE_POOL] = lse_pool,
    [OP_ATTENTION_POOL] = onnx_export_attention_pool,
    [OP_FUNCTION] = onnx_export_function,
    [OP_TAKE] = onnx_export_take,
    [OP_STANDARDIZE] = standardize,
};

void onnx_export_node(struct onnx_builder *b, const struct node *node)
{
    if (exporters[node->op->kind])
        exporters[node->op->kind](b, node);
    else
        err_set(&b->err, ERR_USAGE, "%s: the operation %s cannot be written to ONNX", node->name,
                node->op->name);
}
