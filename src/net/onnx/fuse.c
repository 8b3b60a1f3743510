/* fuse.c: patterns of nodes that PyTorch exports for what is a single layer here. Each is
 * recognised at its first node; nodes inside a pattern must have no other users. */
#include <math.h>
#include <string.h>
#include "net/onnx/import.h"

static onnx_node *node_at(const struct onnx_import *im, int32_t index)
{
    return im->proto->node[index];
}

static bool is_type(onnx_node *node, const char *type)
{
    return node->op_type && strcmp(node->op_type, type) == 0 && (!node->domain || !*node->domain) &&
           node->n_output >= 1;
}

/* The one user of output 0 of a node, if it is of this type; -1 otherwise. */
static int32_t only_user(const struct onnx_import *im, int32_t index, const char *type)
{
    const struct onnx_name *name = onnx_name_find(im, node_at(im, index)->output[0]);
    if (!name || name->n_uses != 1 || name->user <= index || !im->needed[name->user])
        return -1;
    return is_type(node_at(im, name->user), type) ? name->user : -1;
}

/* Which input of a two-input node is not `text`: 0 or 1; -1 if none or both are. */
static int other_input(onnx_node *node, const char *text)
{
    if (node->n_input != 2)
        return -1;
    bool first = strcmp(node->input[0], text) == 0, second = strcmp(node->input[1], text) == 0;
    return first == second ? -1 : first ? 1 : 0;
}

/* Input i if it is known now or is a Constant that only comes later in the file. */
static const struct host *constant_ahead(struct onnx_import *im, onnx_node *node, size_t i)
{
    bool done;
    struct onnx_name *name = i < node->n_input ? onnx_name_find(im, node->input[i]) : NULL;
    if (!name)
        return NULL;
    const struct host *host = onnx_name_host(im, name, NULL);
    if (host || name->value != NO_VALUE || name->producer < 0 ||
        !is_type(node_at(im, name->producer), "Constant"))
        return host;
    if (!onnx_fold(im, node_at(im, name->producer), &done, NULL) || !done)
        return NULL;
    im->needed[name->producer] = false;
    return name->host;
}

static bool is_number(struct onnx_import *im, onnx_node *node, int i, double wanted)
{
    const struct host *host = i < 0 ? NULL : constant_ahead(im, node, (size_t)i);
    return host && host->count == 1 && fabs(host_number(host, 0) - wanted) < 1e-4 * fabs(wanted);
}

/* Makes one node that takes the place of the pattern's last one. */
static bool replace(struct onnx_import *im, const int32_t *nodes, int n, value_id value,
                    struct err *err)
{
    for (int i = 0; i < n; i++)
        im->needed[nodes[i]] = false;
    return onnx_bind(im, node_at(im, nodes[n - 1]), 0, value, err);
}

/* x Sigmoid(x) */
static bool fuse_silu(struct onnx_import *im, int32_t head, bool *done, struct err *err)
{
    onnx_node *sigmoid = node_at(im, head);
    int32_t mul = only_user(im, head, "Mul");
    if (mul < 0 || sigmoid->n_input != 1)
        return true;
    int other = other_input(node_at(im, mul), sigmoid->output[0]);
    if (other < 0 || strcmp(node_at(im, mul)->input[other], sigmoid->input[0]) != 0)
        return true;
    value_id x = onnx_value(im, sigmoid, 0, err);
    *done = true;
    if (x == NO_VALUE)
        return false;
    value_id y = onnx_add(im, node_at(im, mul), NULL, OP_SILU, &x, 1, NULL, err);
    return replace(im, (int32_t[]){ head, mul }, 2, y, err);
}

/* The name is 0.5 x; *index is the node that makes it. */
static bool is_half_of(struct onnx_import *im, const char *text, const char *x, int32_t *index)
{
    const struct onnx_name *name = onnx_name_find(im, text);
    if (!name || name->producer < 0 || !is_type(node_at(im, name->producer), "Mul"))
        return false;
    onnx_node *mul = node_at(im, name->producer);
    *index = name->producer;
    return is_number(im, mul, other_input(mul, x), 0.5);
}

/* x / sqrt(2) -> erf -> + 1 -> times x and 0.5 in any order */
static bool fuse_gelu(struct onnx_import *im, int32_t head, bool *done, struct err *err)
{
    onnx_node *divide = node_at(im, head);
    bool is_div = is_type(divide, "Div");
    int32_t nodes[6] = { head, only_user(im, head, "Erf") };
    if (nodes[1] < 0 || divide->n_input != 2)
        return true;
    int number = is_div || is_number(im, divide, 1, sqrt(0.5)) ? 1 : 0;
    if (!is_number(im, divide, number, is_div ? sqrt(2) : sqrt(0.5)))
        return true;
    const char *x_name = divide->input[1 - number];
    nodes[2] = only_user(im, nodes[1], "Add");
    if (nodes[2] < 0 ||
        !is_number(im, node_at(im, nodes[2]),
                   other_input(node_at(im, nodes[2]), node_at(im, nodes[1])->output[0]), 1))
        return true;
    int n = 3;
    bool times_x = false, times_half = false;
    while (n < 5 && !(times_x && times_half)) {
        int32_t mul = only_user(im, nodes[n - 1], "Mul"), half = -1;
        int other =
            mul < 0 ? -1 : other_input(node_at(im, mul), node_at(im, nodes[n - 1])->output[0]);
        if (other < 0)
            return true;
        const char *text = node_at(im, mul)->input[other];
        if (!times_x && strcmp(text, x_name) == 0)
            times_x = true;
        else if (!times_half && is_number(im, node_at(im, mul), other, 0.5))
            times_half = true;
        else if (!times_x && !times_half && is_half_of(im, text, x_name, &half))
            times_x = times_half = true;
        else
            return true;
        if (half > head && onnx_name_find(im, text)->n_uses == 1)
            im->needed[half] = false;
        nodes[n++] = mul;
    }
    if (!times_x || !times_half)
        return true;
    *done = true;
    value_id x = onnx_value(im, divide, (size_t)(1 - number), err);
    if (x == NO_VALUE)
        return false;
    value_id y = onnx_add(im, node_at(im, nodes[n - 1]), NULL, OP_GELU, &x, 1, NULL, err);
    return replace(im, nodes, n, y, err);
}

/* MatMul by a constant matrix, then Add of a constant vector. */
static bool fuse_linear(struct onnx_import *im, int32_t head, bool *done, struct err *err)
{
    onnx_node *matmul = node_at(im, head);
    int32_t add = only_user(im, head, "Add");
    const struct host *b = onnx_known(im, matmul, 1, NULL);
    if (add < 0 || im->opset < 7 || !b || b->shape.rank != 2)
        return true;
    int other = other_input(node_at(im, add), matmul->output[0]);
    const struct host *c = other < 0 ? NULL : constant_ahead(im, node_at(im, add), (size_t)other);
    if (!c || c->shape.rank != 1 || c->count != b->shape.dim[1] || c->count < 1)
        return true;
    *done = true;
    value_id x = onnx_value(im, matmul, 0, err);
    if (x == NO_VALUE)
        return false;
    value_id bias =
        onnx_parameter(im, node_at(im, add), (size_t)other, SHAPE(c->count), false, err);
    b = onnx_known(im, matmul, 1, err); /* as it may be decoded again */
    if (bias == NO_VALUE || !b)
        return false;
    value_id y = onnx_linear(im, matmul, x, b, false, 1, bias, err);
    return replace(im, (int32_t[]){ head, add }, 2, y, err);
}

/* A node within reach behind `from` that has `text` as input 0. */
static int32_t user_ahead(const struct onnx_import *im, int32_t from, const char *text,
                          const char *type)
{
    const int32_t reach = 64;
    for (int32_t i = from + 1; i < (int32_t)im->proto->n_node && i < from + reach; i++)
        if (im->needed[i] && is_type(node_at(im, i), type) && node_at(im, i)->n_input >= 1 &&
            strcmp(node_at(im, i)->input[0], text) == 0)
            return i;
    return -1;
}

/* A mean that keeps its axes, over the last `*axes` ones of a tensor with `rank` axes. */
static bool is_last_mean(struct onnx_import *im, onnx_node *node, int rank, int *axes)
{
    uint32_t bits;
    bool given;
    if (im->opset >= 18)
        constant_ahead(im, node, 1);
    if (!onnx_int(node, "keepdims", 1) || !onnx_axes(im, node, 18, rank, &bits, &given, NULL) ||
        !given)
        return false;
    *axes = 0;
    while (*axes < rank && bits >> (rank - 1 - *axes) & 1)
        ++*axes;
    return *axes && bits == ((1u << *axes) - 1) << (rank - *axes);
}

/* The squares of d: Pow(d, 2) or Mul(d, d). */
static int32_t square_of(struct onnx_import *im, int32_t sub, int *uses)
{
    const char *d = node_at(im, sub)->output[0];
    int32_t power = user_ahead(im, sub, d, "Pow"), mul = user_ahead(im, sub, d, "Mul");
    *uses = 2;
    if (power >= 0)
        return is_number(im, node_at(im, power), 1, 2) ? power : -1;
    *uses = 3;
    if (mul >= 0 && node_at(im, mul)->n_input == 2 && strcmp(node_at(im, mul)->input[1], d) == 0)
        return mul;
    return -1;
}

/* Weight or bias: the constant side of a Mul or Add that follows; false if it is none. */
static bool side_constant(struct onnx_import *im, int32_t before, int32_t index, int64_t count,
                          int *side)
{
    if (index < 0)
        return false;
    onnx_node *node = node_at(im, index);
    *side = other_input(node, node_at(im, before)->output[0]);
    const struct host *host = *side < 0 ? NULL : constant_ahead(im, node, (size_t)*side);
    return host && host->count == count;
}

/* The nodes of mean -> x - mean -> squares -> mean -> + epsilon -> sqrt -> quotient. */
static bool match_layer_norm(struct onnx_import *im, int32_t head, int rank, int32_t *nodes,
                             int *axes, float *epsilon)
{
    int second, uses;
    onnx_node *mean = node_at(im, head);
    nodes[0] = head, nodes[1] = only_user(im, head, "Sub");
    if (!is_last_mean(im, mean, rank, axes) || nodes[1] < 0)
        return false;
    onnx_node *sub = node_at(im, nodes[1]);
    if (other_input(sub, mean->output[0]) != 0 || strcmp(sub->input[0], mean->input[0]) != 0)
        return false;
    nodes[2] = square_of(im, nodes[1], &uses);
    nodes[6] = user_ahead(im, nodes[1], sub->output[0], "Div");
    nodes[3] = nodes[2] < 0 ? -1 : only_user(im, nodes[2], "ReduceMean");
    nodes[4] = nodes[3] < 0 ? -1 : only_user(im, nodes[3], "Add");
    nodes[5] = nodes[4] < 0 ? -1 : only_user(im, nodes[4], "Sqrt");
    if (nodes[5] < 0 || nodes[6] < 0 || onnx_name_find(im, sub->output[0])->n_uses != uses ||
        only_user(im, nodes[5], "Div") != nodes[6] ||
        !is_last_mean(im, node_at(im, nodes[3]), rank, &second) || second != *axes)
        return false;
    int side = other_input(node_at(im, nodes[4]), node_at(im, nodes[3])->output[0]);
    const struct host *small =
        side < 0 ? NULL : constant_ahead(im, node_at(im, nodes[4]), (size_t)side);
    if (!small || small->count != 1 || !(host_number(small, 0) >= 0))
        return false;
    *epsilon = host_float(small, 0);
    return true;
}

static bool fuse_layer_norm(struct onnx_import *im, int32_t head, bool *done, struct err *err)
{
    int32_t nodes[9];
    int axes, weight_side, bias_side;
    float epsilon;
    onnx_node *mean = node_at(im, head);
    const struct onnx_name *name = mean->n_input ? onnx_name_find(im, mean->input[0]) : NULL;
    if (!name || name->value == NO_VALUE)
        return true;
    struct shape x = *onnx_shape(im, name->value), extent = { 0, { 0 } };
    if (!match_layer_norm(im, head, x.rank, nodes, &axes, &epsilon))
        return true;
    for (int i = x.rank - axes; i < x.rank; i++)
        extent.dim[extent.rank++] = x.dim[i];
    nodes[7] = only_user(im, nodes[6], "Mul");
    if (!side_constant(im, nodes[6], nodes[7], shape_count(&extent), &weight_side))
        return true;
    nodes[8] = only_user(im, nodes[7], "Add");
    if (!side_constant(im, nodes[7], nodes[8], shape_count(&extent), &bias_side))
        return true;
    *done = true;
    onnx_node *last = node_at(im, nodes[8]);
    value_id inputs[3] = { name->value, onnx_parameter(im, node_at(im, nodes[7]),
                                                       (size_t)weight_side, extent, false, err) };
    inputs[2] = onnx_parameter(im, last, (size_t)bias_side, extent, false, err);
    if (inputs[1] == NO_VALUE || inputs[2] == NO_VALUE)
        return false;
    union attr attr = { .norm = { .epsilon = epsilon, .axes = axes } };
    return replace(im, nodes, 9, onnx_add(im, last, NULL, OP_LAYER_NORM, inputs, 3, &attr, err),
                   err);
}

static bool all_are(const struct host *host, double wanted)
{
    for (int64_t i = 0; host && i < host->count; i++)
        if (host_number(host, i) != wanted)
            return false;
    return host != NULL;
}

/* The second Reshape gives x's shape back: by Shape(x) or by the same numbers. */
static bool gives_back(struct onnx_import *im, onnx_node *reshape, const char *x_name,
                       const struct shape *x)
{
    const struct onnx_name *name =
        reshape->n_input == 2 ? onnx_name_find(im, reshape->input[1]) : NULL;
    if (name && name->producer >= 0 && is_type(node_at(im, name->producer), "Shape") &&
        node_at(im, name->producer)->n_attribute == 0 && onnx_has(node_at(im, name->producer), 0))
        return strcmp(node_at(im, name->producer)->input[0], x_name) == 0;
    const struct host *host = name ? constant_ahead(im, reshape, 1) : NULL;
    if (!host || host->type != HOST_INT || host->count != x->rank)
        return false;
    int open = 0;
    for (int i = 0; i < x->rank; i++) {
        open += host->ints[i] == -1;
        if (host->ints[i] != x->dim[i] && host->ints[i] != -1)
            return false;
    }
    return open <= 1;
}

/* [N, C, ..] -> [N, G, -1] -> InstanceNormalization -> [N, C, ..] -> times weight -> plus bias */
static bool fuse_group_norm(struct onnx_import *im, int32_t head, bool *done, struct err *err)
{
    int32_t nodes[5] = { head, only_user(im, head, "InstanceNormalization") };
    onnx_node *first = node_at(im, head);
    int weight_side, bias_side;
    const struct onnx_name *name = first->n_input == 2 ? onnx_name_find(im, first->input[0]) : NULL;
    const struct host *split = name ? onnx_known(im, first, 1, NULL) : NULL;
    if (nodes[1] < 0 || !split || name->value == NO_VALUE || split->type != HOST_INT ||
        split->count != 3 || split->ints[2] != -1 || split->ints[1] < 1)
        return true;
    struct shape x = *onnx_shape(im, name->value);
    int64_t groups = split->ints[1], channels = x.rank > 2 ? x.dim[1] : 0;
    onnx_node *norm = node_at(im, nodes[1]);
    nodes[2] = only_user(im, nodes[1], "Reshape");
    if (!channels || channels % groups || (split->ints[0] != 0 && split->ints[0] != x.dim[0]) ||
        !all_are(constant_ahead(im, norm, 1), 1) || !all_are(constant_ahead(im, norm, 2), 0) ||
        nodes[2] < 0 || !gives_back(im, node_at(im, nodes[2]), first->input[0], &x))
        return true;
    nodes[3] = only_user(im, nodes[2], "Mul");
    if (!side_constant(im, nodes[2], nodes[3], channels, &weight_side))
        return true;
    nodes[4] = only_user(im, nodes[3], "Add");
    if (!side_constant(im, nodes[3], nodes[4], channels, &bias_side))
        return true;
    *done = true;
    onnx_node *last = node_at(im, nodes[4]);
    value_id inputs[3] = { name->value,
                           onnx_parameter(im, node_at(im, nodes[3]), (size_t)weight_side,
                                          SHAPE(channels), false, err) };
    inputs[2] = onnx_parameter(im, last, (size_t)bias_side, SHAPE(channels), false, err);
    if (inputs[1] == NO_VALUE || inputs[2] == NO_VALUE)
        return false;
    union attr attr = { .norm = { .epsilon = onnx_float(norm, "epsilon", 1e-5f),
                                  .groups = groups } };
    return replace(im, nodes, 5, onnx_add(im, last, NULL, OP_GROUP_NORM, inputs, 3, &attr, err),
                   err);
}

/* Where(IsNaN(x), number, x), which PyTorch's new exporter writes behind a softmax with a mask */
static bool fuse_from_nan(struct onnx_import *im, int32_t head, bool *done, struct err *err)
{
    onnx_node *is_nan = node_at(im, head);
    int32_t where = only_user(im, head, "Where");
    if (where < 0 || is_nan->n_input != 1 || node_at(im, where)->n_input != 3 ||
        strcmp(node_at(im, where)->input[0], is_nan->output[0]) != 0 ||
        strcmp(node_at(im, where)->input[2], is_nan->input[0]) != 0)
        return true;
    const struct host *number = constant_ahead(im, node_at(im, where), 1);
    if (!number || number->count != 1 || !(fabs(host_number(number, 0)) < 1e6))
        return true;
    *done = true;
    union attr attr = { .function = { FUNCTION_FROM_NAN, host_float(number, 0) } };
    value_id x = onnx_value(im, is_nan, 0, err);
    if (x == NO_VALUE)
        return false;
    value_id y = onnx_add(im, node_at(im, where), NULL, OP_FUNCTION, &x, 1, &attr, err);
    return replace(im, (int32_t[]){ head, where }, 2, y, err);
}

static const struct {
    const char *first; /* type of the pattern's first node */
    bool (*fuse)(struct onnx_import *im, int32_t head, bool *done, struct err *err);
} patterns[] = {
    { "Sigmoid", fuse_silu },       { "IsNaN", fuse_from_nan }, { "Div", fuse_gelu },
    { "Mul", fuse_gelu },           { "MatMul", fuse_linear },  { "ReduceMean", fuse_layer_norm },
    { "Reshape", fuse_group_norm },
};

bool onnx_fuse(struct onnx_import *im, size_t index, bool *done, struct err *err)
{
    *done = false;
    onnx_node *node = im->proto->node[index];
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns && !*done; i++)
        if (is_type(node, patterns[i].first) && !patterns[i].fuse(im, (int32_t)index, done, err))
            return false;
    return true;
}
