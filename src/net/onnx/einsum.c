/* einsum.c: sums of products named by letters, of one or two tensors, as a product of matrices. An
 * axis that both have and the result too is one of batches, one that both have and the result has
 * not is summed by the product, one that only one of them has is a row or a column. */
#include <string.h>
#include "net/onnx/import.h"

struct term {
    char axes[SHAPE_DIMS + 1]; /* a letter for each axis */
    value_id x;
};

/* The letters up to `end`, without spaces. False if they are more than axes, or no letters. */
static bool read_axes(const char *text, const char *end, char axes[SHAPE_DIMS + 1])
{
    size_t n = 0;
    for (; text < end; text++) {
        bool letter = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z');
        if (*text == ' ')
            continue;
        if (!letter || n == SHAPE_DIMS || memchr(axes, *text, n))
            return false;
        axes[n++] = *text;
    }
    axes[n] = 0;
    return true;
}

/* "ab,bc->ac" */
static bool read_equation(const Onnx__AttributeProto *attribute, size_t n, struct term *terms,
                          char *out)
{
    const char *text = (const char *)attribute->s.data, *end = text + attribute->s.len;
    const char *arrow = text ? memmem(text, attribute->s.len, "->", 2) : NULL;
    if (!arrow || !read_axes(arrow + 2, end, out))
        return false;
    for (size_t i = 0; i < n; i++) {
        const char *comma = memchr(text, ',', (size_t)(arrow - text));
        if ((comma != NULL) != (i + 1 < n) ||
            !read_axes(text, comma ? comma : arrow, terms[i].axes))
            return false;
        text = comma ? comma + 1 : arrow;
    }
    return true;
}

static int64_t extent_of(const struct onnx_import *im, const struct term *term, char axis)
{
    const char *at = strchr(term->axes, axis);
    return at ? onnx_shape(im, term->x)->dim[at - term->axes] : 1;
}

/* Axes that neither the result nor the other term has are summed. */
static bool sum_lonely(struct onnx_import *im, onnx_node *node, struct term *term,
                       const char *other, const char *out, struct err *err)
{
    uint32_t axes = 0;
    double count = 1;
    char left[SHAPE_DIMS + 1];
    size_t n = 0;
    for (size_t i = 0; term->axes[i]; i++)
        if (strchr(other, term->axes[i]) || strchr(out, term->axes[i])) {
            left[n++] = term->axes[i];
        } else {
            axes |= 1u << i;
            count *= (double)extent_of(im, term, term->axes[i]);
        }
    left[n] = 0;
    if (!axes)
        return true;
    if (axes & 1)
        return err_set(err, ERR_FORMAT, "a sum over the first axis is not supported");
    union attr attr = { .reduce = { axes, false } };
    term->x = onnx_add(im, node, ".mean", OP_REDUCE_MEAN, &term->x, 1, &attr, err);
    term->x = onnx_add_scale(im, node, ".sum", term->x, count, 0, err);
    memcpy(term->axes, left, n + 1);
    return term->x != NO_VALUE;
}

/* The axes in another order; NO_VALUE with an error. */
static value_id ordered(struct onnx_import *im, onnx_node *node, const char *suffix, value_id x,
                        const char *axes, const char *wanted, struct err *err)
{
    union attr attr = { .transpose = { .rank = (int)strlen(wanted) } };
    if (x == NO_VALUE || strcmp(axes, wanted) == 0)
        return x;
    for (size_t i = 0; wanted[i]; i++) {
        const char *at = strchr(axes, wanted[i]);
        if (!at || strlen(axes) != strlen(wanted)) {
            err_set(err, ERR_FORMAT, "the letters of the result are not those of the inputs");
            return NO_VALUE;
        }
        attr.transpose.order[i] = at - axes;
    }
    return onnx_add(im, node, suffix, OP_TRANSPOSE, &x, 1, &attr, err);
}

/* What every letter is for: axes of batches, of one term alone, and those that are summed. */
struct roles {
    char batch[SHAPE_DIMS + 1], rows[SHAPE_DIMS + 1], columns[SHAPE_DIMS + 1],
        summed[SHAPE_DIMS + 1];
};

static void append(char *list, char axis)
{
    size_t n = strlen(list);
    list[n] = axis, list[n + 1] = 0;
}

static bool read_roles(struct onnx_import *im, const struct term *a, const struct term *b,
                       const char *out, struct roles *roles, struct err *err)
{
    memset(roles, 0, sizeof *roles);
    for (const char *c = a->axes; *c; c++) {
        bool both = strchr(b->axes, *c) != NULL;
        if (both && extent_of(im, a, *c) != extent_of(im, b, *c))
            return err_set(err, ERR_FORMAT, "the axis '%c' has two extents", *c);
        append(!both ? roles->rows : strchr(out, *c) ? roles->batch : roles->summed, *c);
    }
    for (const char *c = b->axes; *c; c++)
        if (!strchr(a->axes, *c))
            append(roles->columns, *c);
    if (strlen(roles->batch) + 2 > SHAPE_DIMS)
        return err_set(err, ERR_FORMAT, "there are too many axes");
    return true;
}

/* A term as matrices [batch.., product of `first`, product of `second`]. */
static value_id as_matrices(struct onnx_import *im, onnx_node *node, const struct term *term,
                            const char *batch, const char *first, const char *second,
                            struct err *err)
{
    char wanted[3 * SHAPE_DIMS + 1] = "";
    struct shape shape = { 0, { 0 } };
    const char *const parts[] = { batch, first, second };
    int64_t sizes[2] = { 1, 1 };
    for (int k = 0; k < 3; k++)
        for (const char *c = parts[k]; *c; c++) {
            append(wanted, *c);
            if (k == 0)
                shape.dim[shape.rank++] = extent_of(im, term, *c);
            else
                sizes[k - 1] *= extent_of(im, term, *c);
        }
    shape.dim[shape.rank++] = sizes[0];
    shape.dim[shape.rank++] = sizes[1];
    value_id x = ordered(im, node, ".ordered", term->x, term->axes, wanted, err);
    if (x == NO_VALUE || shape_equal(onnx_shape(im, x), &shape))
        return x;
    return onnx_add_reshape(im, node, ".matrices", x, shape, err);
}

static bool product(struct onnx_import *im, onnx_node *node, const struct term *terms,
                    const char *out, struct err *err)
{
    struct roles roles;
    if (!read_roles(im, &terms[0], &terms[1], out, &roles, err))
        return false;
    value_id inputs[2] = {
        as_matrices(im, node, &terms[0], roles.batch, roles.rows, roles.summed, err),
        as_matrices(im, node, &terms[1], roles.batch, roles.summed, roles.columns, err)
    };
    if (inputs[0] == NO_VALUE || inputs[1] == NO_VALUE)
        return false;
    char axes[3 * SHAPE_DIMS + 1] = "";
    struct shape shape = { 0, { 0 } };
    const char *const parts[] = { roles.batch, roles.rows, roles.columns };
    for (int k = 0; k < 3; k++)
        for (const char *c = parts[k]; *c; c++) {
            append(axes, *c);
            if (shape.rank == SHAPE_DIMS)
                return err_set(err, ERR_FORMAT, "there are too many axes");
            shape.dim[shape.rank++] = extent_of(im, &terms[k == 2], *c);
        }
    value_id y = onnx_add(im, node, ".product", OP_MATMUL, inputs, 2, NULL, err);
    if (y != NO_VALUE && !shape_equal(onnx_shape(im, y), &shape))
        y = onnx_add_reshape(im, node, ".axes", y, shape, err);
    return onnx_bind(im, node, 0, ordered(im, node, NULL, y, axes, out, err), err);
}

bool onnx_einsum(struct onnx_import *im, onnx_node *node, struct err *err)
{
    struct term terms[2] = { { .axes = "" }, { .axes = "" } };
    char out[SHAPE_DIMS + 1];
    size_t n = node->n_input;
    const Onnx__AttributeProto *equation = onnx_attribute(node, "equation");
    if (n < 1 || n > 2 || !equation || !read_equation(equation, n, terms, out))
        return err_set(err, ERR_FORMAT,
                       "the equation is not supported; one or two terms of different letters and "
                       "'->' are");
    for (size_t i = 0; i < n; i++) {
        terms[i].x = onnx_value(im, node, i, err);
        if (terms[i].x == NO_VALUE)
            return false;
        if (onnx_shape(im, terms[i].x)->rank != (int)strlen(terms[i].axes))
            return err_set(err, ERR_FORMAT, "input %zu has %d axes; the equation has %zu letters",
                           i, onnx_shape(im, terms[i].x)->rank, strlen(terms[i].axes));
    }
    for (size_t i = 0; i < n; i++)
        if (!sum_lonely(im, node, &terms[i], n > 1 ? terms[1 - i].axes : "", out, err))
            return false;
    if (n > 1)
        return product(im, node, terms, out, err);
    return onnx_bind(im, node, 0, ordered(im, node, NULL, terms[0].x, terms[0].axes, out, err),
                     err);
}
