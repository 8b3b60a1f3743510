/* linear.c: products of matrices. If the right factor is constant, they are linear layers. */
#include <stdlib.h>
#include <string.h>
#include "net/onnx/import.h"

#define BLOCK 32 /* of a matrix that is transposed: rows of both fit into the first cache */

/* b as to [outputs, inputs], times alpha. */
static void lay_weight(const struct host *b, bool b_transposed, float alpha, int64_t outputs,
                       int64_t inputs, float *to)
{
    int64_t o_step = b_transposed ? inputs : 1, i_step = b_transposed ? 1 : outputs;
    for (int64_t o0 = 0; o0 < outputs; o0 += BLOCK)
        for (int64_t i0 = 0; i0 < inputs; i0 += BLOCK)
            for (int64_t o = o0; o < outputs && o < o0 + BLOCK; o++)
                for (int64_t i = i0; i < inputs && i < i0 + BLOCK; i++)
                    to[o * inputs + i] = alpha * host_float(b, o * o_step + i * i_step);
}

/* The weight [O, C] of a linear layer from b, which is [C, O], or [O, C] if b_transposed. An
 * initializer that is stored as [O, C], or is used transposed in the file, keeps name and floats.
 */
static value_id linear_weight(struct onnx_import *im, onnx_node *node, const struct host *b,
                              bool b_transposed, float alpha, struct err *err)
{
    int64_t outputs = b->shape.dim[b_transposed ? 0 : 1];
    int64_t inputs = b->shape.dim[b_transposed ? 1 : 0];
    const char *name = b->origin ? b->origin : node->n_output ? node->output[0] : "weight";
    struct shape shape = SHAPE(outputs, inputs);
    struct onnx_name *source = b->origin ? onnx_name_find(im, b->origin) : NULL;
    bool as_stored = source && b_transposed != b->transposed && alpha == 1;
    if (!shape_check(&shape, "the weight", err))
        return NO_VALUE;
    if (as_stored && source->value != NO_VALUE &&
        shape_equal(onnx_shape(im, source->value), &shape))
        return source->value; /* weights that two layers share */
    bool unchanged = b->type == HOST_FLOAT && b_transposed && alpha == 1;
    value_id weight = onnx_store(im, name, false, shape, unchanged ? b->floats : NULL, err);
    if (weight != NO_VALUE && !unchanged && !im->shapes_only)
        lay_weight(b, b_transposed, alpha, outputs, inputs, graph_data(im->graph, weight));
    if (as_stored)
        onnx_remember(im, source, weight);
    else if (source)
        onnx_forget(source);
    return weight;
}

value_id onnx_linear(struct onnx_import *im, onnx_node *node, value_id x, const struct host *b,
                     bool b_transposed, float alpha, value_id bias, struct err *err)
{
    value_id inputs[3] = { x, linear_weight(im, node, b, b_transposed, alpha, err), bias };
    if (inputs[1] == NO_VALUE)
        return NO_VALUE;
    return onnx_add(im, node, NULL, OP_LINEAR, inputs, bias == NO_VALUE ? 2 : 3, NULL, err);
}

/* A rank-1 side of a product becomes a row (left) or a column (right). */
static value_id as_matrix(struct onnx_import *im, onnx_node *node, value_id x, bool left,
                          struct err *err)
{
    const struct shape *shape = onnx_shape(im, x);
    if (shape->rank != 1)
        return x;
    return onnx_add_reshape(im, node, left ? ".row" : ".column", x,
                            left ? SHAPE(1, -1) : SHAPE(-1, 1), err);
}

/* The result without the axes that as_matrix added. */
static value_id without_added(struct onnx_import *im, onnx_node *node, value_id y, bool row,
                              bool column, struct err *err)
{
    if (y == NO_VALUE || (!row && !column))
        return y;
    const struct shape *full = onnx_shape(im, y);
    struct shape shape = { 0, { 0 } };
    for (int i = 0; i < full->rank; i++)
        if (!(row && i == full->rank - 2) && !(column && i == full->rank - 1))
            shape.dim[shape.rank++] = full->dim[i];
    return onnx_add_reshape(im, node, ".result", y, shape, err);
}

bool onnx_matmul(struct onnx_import *im, onnx_node *node, struct err *err)
{
    value_id a = onnx_value(im, node, 0, err);
    if (a == NO_VALUE)
        return false;
    const struct host *known = onnx_known(im, node, 1, NULL);
    if (known && known->shape.rank == 2 && onnx_shape(im, a)->rank >= 1)
        return onnx_bind(im, node, 0, onnx_linear(im, node, a, known, false, 1, NO_VALUE, err),
                         err);
    value_id b = onnx_value(im, node, 1, err);
    if (b == NO_VALUE)
        return false;
    bool row = onnx_shape(im, a)->rank == 1, column = onnx_shape(im, b)->rank == 1;
    value_id inputs[2] = { as_matrix(im, node, a, true, err), as_matrix(im, node, b, false, err) };
    if (inputs[0] == NO_VALUE || inputs[1] == NO_VALUE)
        return false;
    value_id y = onnx_add(im, node, NULL, OP_MATMUL, inputs, 2, NULL, err);
    return onnx_bind(im, node, 0, without_added(im, node, y, row, column, err), err);
}

/* beta C as a vector of `outputs`, if that is what C is: one for each column, or one number. */
static value_id gemm_bias(struct onnx_import *im, onnx_node *node, int64_t outputs, float beta,
                          struct err *err)
{
    const struct host *c = onnx_known(im, node, 2, NULL);
    bool single = c->count == 1;
    if (!single && beta == 1)
        return onnx_parameter(im, node, 2, SHAPE(outputs), false, err);
    float *floats = malloc((size_t)outputs * sizeof *floats);
    if (!floats) {
        err_memory(err, "the bias");
        return NO_VALUE;
    }
    for (int64_t i = 0; i < outputs; i++)
        floats[i] = beta * host_float(c, single ? 0 : i);
    const char *name = c->origin ? c->origin : node->input[2];
    value_id bias = onnx_store(im, name, false, SHAPE(outputs), floats, err);
    free(floats);
    return bias;
}

/* C is the same for every row. */
static bool is_row(const struct host *c, int64_t outputs)
{
    return (c->count == 1 && c->shape.rank <= 2) ||
           (c->count == outputs && c->shape.rank >= 1 && c->shape.rank <= 2 &&
            c->shape.dim[c->shape.rank - 1] == outputs);
}

/* alpha A B + beta C where B or C is computed, or A is used transposed. */
static bool gemm_general(struct onnx_import *im, onnx_node *node, value_id a, float alpha,
                         float beta, struct err *err)
{
    value_id b = onnx_value(im, node, 1, err);
    if (b == NO_VALUE)
        return false;
    bool has_c = onnx_has(node, 2) && beta != 0;
    union attr attr = { .matmul = { .transpose_a = onnx_int(node, "transA", 0) != 0,
                                    .transpose_b = onnx_int(node, "transB", 0) != 0,
                                    .scale = alpha } };
    value_id y = onnx_add(im, node, has_c ? ".product" : NULL, OP_MATMUL, (value_id[]){ a, b }, 2,
                          &attr, err);
    if (y == NO_VALUE || !has_c)
        return onnx_bind(im, node, 0, y, err);
    value_id c = onnx_value(im, node, 2, err);
    if (c != NO_VALUE && beta != 1)
        c = onnx_add_scale(im, node, ".beta", c, (double)beta, 0, err);
    if (c == NO_VALUE)
        return false;
    y = onnx_add(im, node, NULL, OP_ADD, (value_id[]){ y, c }, 2, NULL, err);
    return onnx_bind(im, node, 0, y, err);
}

bool onnx_gemm(struct onnx_import *im, onnx_node *node, struct err *err)
{
    float alpha = onnx_float(node, "alpha", 1), beta = onnx_float(node, "beta", 1);
    bool transposed = onnx_int(node, "transB", 0) != 0;
    value_id a = onnx_value(im, node, 0, err);
    if (a == NO_VALUE)
        return false;
    if (onnx_shape(im, a)->rank != 2)
        return err_set(err, ERR_FORMAT, "A has %d axes, not 2", onnx_shape(im, a)->rank);
    if (alpha == 0)
        return err_set(err, ERR_FORMAT, "alpha 0 is not supported");
    const struct host *b = onnx_known(im, node, 1, NULL), *c = onnx_known(im, node, 2, NULL);
    bool linear = b && b->shape.rank == 2 && !onnx_int(node, "transA", 0);
    int64_t outputs = linear ? b->shape.dim[transposed ? 0 : 1] : 0;
    if (!linear || outputs < 1 || (onnx_has(node, 2) && (!c || !is_row(c, outputs))))
        return gemm_general(im, node, a, alpha, beta, err);
    value_id bias = NO_VALUE;
    if (c) {
        bias = gemm_bias(im, node, outputs, beta, err);
        if (bias == NO_VALUE)
            return false;
        b = onnx_known(im, node, 1, err); /* as the bias may be the same constant */
    }
    return b &&
           onnx_bind(im, node, 0, onnx_linear(im, node, a, b, transposed, alpha, bias, err), err);
}
