/* tensor.c: arithmetic of shapes, and floats shared between graphs. */
#include "net/graph/tensor.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define COUNT_LIMIT ((int64_t)1 << 40)
#define ALIGNMENT ((size_t)64)
#define LARGE_PAGE ((size_t)2 << 20)

struct buffer {
    atomic_int users;
    float *data;
};

int64_t shape_span(const struct shape *shape, int from, int to)
{
    int64_t count = 1;
    for (int i = from; i < to; i++)
        count *= shape->dim[i];
    return count;
}

int64_t shape_count(const struct shape *shape)
{
    return shape_span(shape, 0, shape->rank);
}

bool shape_equal(const struct shape *a, const struct shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

bool shape_check(const struct shape *shape, const char *what, struct err *err)
{
    if (shape->rank < 0 || shape->rank > SHAPE_DIMS)
        return err_set(err, ERR_FORMAT, "%s: %d axes; at most %d are supported", what, shape->rank,
                       SHAPE_DIMS);
    int64_t count = 1;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dim[i] < 1)
            return err_set(err, ERR_FORMAT, "%s: axis %d has extent %lld", what, i,
                           (long long)shape->dim[i]);
        if (shape->dim[i] > COUNT_LIMIT / count)
            return err_set(err, ERR_FORMAT, "%s: more than 2^40 elements", what);
        count *= shape->dim[i];
    }
    return true;
}

bool shape_broadcast(const struct shape *a, const struct shape *b, struct shape *out)
{
    struct shape result = { a->rank > b->rank ? a->rank : b->rank, { 0 } };
    for (int i = 0; i < result.rank; i++) {
        int ia = i - (result.rank - a->rank), ib = i - (result.rank - b->rank);
        int64_t da = ia < 0 ? 1 : a->dim[ia], db = ib < 0 ? 1 : b->dim[ib];
        if (da != db && da != 1 && db != 1)
            return false;
        result.dim[i] = da == 1 ? db : da;
    }
    *out = result;
    return true;
}

const char *const dtype_names[DTYPES + 1] = { "float32", "bfloat16", "int8", NULL };

size_t dtype_bytes(enum dtype dtype)
{
    return dtype == DTYPE_FLOAT32 ? 4 : dtype == DTYPE_BFLOAT16 ? 2 : 1;
}

bool storage_equal(const struct storage *a, const struct storage *b)
{
    return a->dtype == b->dtype && a->scale == b->scale && a->zero_point == b->zero_point;
}

const char *shape_text(const struct shape *shape, char text[SHAPE_TEXT])
{
    size_t used = 0;
    text[used++] = '[';
    for (int i = 0; i < shape->rank; i++)
        used += (size_t)snprintf(text + used, SHAPE_TEXT - used, i ? ", %lld" : "%lld",
                                 (long long)shape->dim[i]);
    snprintf(text + used, SHAPE_TEXT - used, "]");
    return text;
}

struct buffer *buffer_new_unset(int64_t count)
{
    struct buffer *buffer = malloc(sizeof *buffer);
    if (!buffer)
        return NULL;
    size_t wanted = count > 0 ? (size_t)count * sizeof(float) : 1;
    size_t alignment = wanted >= LARGE_PAGE ? LARGE_PAGE : ALIGNMENT;
    size_t bytes = (wanted + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void *data = NULL;
    if (posix_memalign(&data, alignment, bytes) != 0) {
        free(buffer);
        return NULL;
    }
    if (alignment == LARGE_PAGE) /* a wish: touching it first is then several times faster */
        madvise(data, bytes, MADV_HUGEPAGE);
    buffer->data = data;
    atomic_init(&buffer->users, 1);
    return buffer;
}

struct buffer *buffer_new(int64_t count)
{
    struct buffer *buffer = buffer_new_unset(count);
    if (buffer && count > 0)
        memset(buffer->data, 0, (size_t)count * sizeof(float));
    return buffer;
}

struct buffer *buffer_share(struct buffer *buffer)
{
    atomic_fetch_add(&buffer->users, 1);
    return buffer;
}

void buffer_release(struct buffer *buffer)
{
    if (!buffer || atomic_fetch_sub(&buffer->users, 1) > 1)
        return;
    free(buffer->data);
    free(buffer);
}

float *buffer_data(const struct buffer *buffer)
{
    return buffer->data;
}
