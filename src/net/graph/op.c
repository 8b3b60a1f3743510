/* op.c: functions on attributes that work for any op. */
#include "net/graph/op.h"
#include <string.h>

double op_attr_value(const struct attr_field *field, const union attr *attr, int i)
{
    const char *at = (const char *)attr + field->offset;
    switch (field->type) {
    case ATTR_INT:
        return (double)((const int64_t *)(const void *)at)[i];
    case ATTR_REAL:
        return (double)*(const float *)(const void *)at;
    case ATTR_DOUBLE:
        return ((const double *)(const void *)at)[i];
    case ATTR_BOOL:
        return *(const bool *)(const void *)at;
    case ATTR_CHOICE:
        return *(const int *)(const void *)at;
    case ATTR_BITS:
        return *(const uint32_t *)(const void *)at;
    case ATTR_SHAPE:
        return 0;
    }
    return 0;
}

bool op_check_attr(const struct op *op, const union attr *attr, struct err *err)
{
    for (const struct attr_field *f = op->fields; f && f->name; f++)
        for (int i = 0; f->type != ATTR_SHAPE && i < f->count; i++) {
            double value = op_attr_value(f, attr, i);
            if (!(value >= f->min && value <= f->max))
                return err_set(err, ERR_FORMAT, "attribute %s is %g; it must be between %g and %g",
                               f->name, value, f->min, f->max);
        }
    return true;
}

bool op_attr_equal(const struct op *op, const union attr *a, const union attr *b)
{
    for (const struct attr_field *f = op->fields; f && f->name; f++) {
        if (f->type == ATTR_SHAPE) {
            const struct shape *sa = (const void *)((const char *)a + f->offset);
            const struct shape *sb = (const void *)((const char *)b + f->offset);
            if (!shape_equal(sa, sb))
                return false;
            continue;
        }
        for (int i = 0; i < f->count; i++)
            if (op_attr_value(f, a, i) != op_attr_value(f, b, i))
                return false;
    }
    return true;
}

int axis_of(int64_t axis, int rank)
{
    if (axis < 0)
        axis += rank;
    return axis >= 0 && axis < rank ? (int)axis : -1;
}

bool no_axis(int64_t axis, int rank, struct err *err)
{
    return err_set(err, ERR_FORMAT, "no axis %lld: the input has %d axes", (long long)axis, rank);
}

int64_t window_extent(int64_t extent, int64_t kernel, int64_t stride, int64_t pad_begin,
                      int64_t pad_end, int64_t dilation, bool ceil_mode)
{
    int64_t room = extent + pad_begin + pad_end - (dilation * (kernel - 1) + 1);
    if (room < 0)
        return 0;
    int64_t count = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
    if (ceil_mode && (count - 1) * stride >= extent + pad_begin)
        count--; /* a window must begin inside the input or its padding before it */
    return count;
}
