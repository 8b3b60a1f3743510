/* common.c: helpers shared by the shape functions of several families. */
#include "net/ops/ops.h"

bool shape_same(const union attr *attr, const struct shape *const *in, int n_inputs,
                struct shape *out, struct err *err)
{
    (void)attr, (void)n_inputs, (void)err;
    *out = *in[0];
    return true;
}

struct storage storage_same(const union attr *attr, const struct storage *x)
{
    (void)attr;
    return *x;
}

bool shape_is_image(const struct shape *shape, struct err *err)
{
    char text[SHAPE_TEXT];
    if (shape->rank == 4)
        return true;
    return err_set(err, ERR_FORMAT, "the input is %s; [N, C, H, W] is needed",
                   shape_text(shape, text));
}

bool shape_is_vector(const struct shape *shape, int64_t channels, const char *what, struct err *err)
{
    char text[SHAPE_TEXT];
    if (shape->rank == 1 && shape->dim[0] == channels)
        return true;
    return err_set(err, ERR_FORMAT, "the %s is %s; [%lld] is needed", what, shape_text(shape, text),
                   (long long)channels);
}

int slice_range(const struct slice_attr *attr, const struct shape *shape, int64_t *begin,
                int64_t *end)
{
    int axis = axis_of(attr->axis, shape->rank);
    if (axis < 0)
        return -1;
    int64_t extent = shape->dim[axis];
    *begin = attr->begin < 0 ? attr->begin + extent : attr->begin;
    *end = attr->end < 0 ? attr->end + extent : attr->end;
    if (*begin < 0)
        *begin = 0;
    if (*end > extent)
        *end = extent;
    return axis;
}

void complete_ones(int64_t *values, int count)
{
    for (int i = 0; i < count; i++)
        if (values[i] == 0)
            values[i] = 1;
}
