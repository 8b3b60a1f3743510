/* transform.c: size. */
#include "net/transform.h"

bool transform_resize(const struct graph *graph, int64_t batch, int64_t height, int64_t width,
                      struct graph **out, struct err *err)
{
    struct graph *copy = NULL;
    if (!graph_copy(graph, &copy, err))
        return false;
    for (int i = 0; i < copy->n_inputs; i++) {
        struct shape *shape = &copy->values[copy->inputs[i].value].shape;
        if (shape->rank > 0 && batch > 0)
            shape->dim[0] = batch;
        if (shape->rank == 4 && height > 0)
            shape->dim[2] = height;
        if (shape->rank == 4 && width > 0)
            shape->dim[3] = width;
        if (!shape_check(shape, copy->inputs[i].name, err))
            goto failed;
    }
    if (!graph_infer(copy, err))
        goto failed;
    *out = copy;
    return true;
failed:
    graph_free(copy);
    return false;
}
