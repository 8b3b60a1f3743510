/* take.c: elements of a computed tensor at places that are known: Gather, GatherND, GatherElements,
 * Tile, and axes that are turned round. Places within several axes are places within one, after the
 * tensor was reshaped. */
#include <string.h>
#include "net/onnx/import.h"

/* Beyond this not every place is a float. */
#define PLACES_LIMIT ((int64_t)1 << 24)

/* x at `places` (a list, any shape) along an axis; each is checked and may count from the end. */
static value_id at_places(struct onnx_import *im, onnx_node *node, const char *suffix, value_id x,
                          int axis, const int64_t *places, int64_t count, struct err *err)
{
    int64_t extent = onnx_shape(im, x)->dim[axis];
    if (count < 1 || count > PLACES_LIMIT || extent > PLACES_LIMIT) {
        err_set(err, ERR_FORMAT, "%lld places of %lld are not supported; 1 to 2^24 are",
                (long long)count, (long long)extent);
        return NO_VALUE;
    }
    struct host *list = onnx_host_new(im, HOST_FLOAT, SHAPE(count), err);
    for (int64_t i = 0; list && i < count; i++) {
        int64_t at = places[i] < 0 ? places[i] + extent : places[i];
        if (at < 0 || at >= extent) {
            err_set(err, ERR_FORMAT, "no index %lld: the axis has %lld entries",
                    (long long)places[i], (long long)extent);
            host_free(list);
            return NO_VALUE;
        }
        list->floats[i] = (float)at;
    }
    value_id inputs[2] = {
        x, list ? onnx_store(im, node->output[0], true, SHAPE(count), list->floats, err) : NO_VALUE
    };
    host_free(list);
    if (inputs[1] == NO_VALUE)
        return NO_VALUE;
    return onnx_add(im, node, suffix, OP_TAKE, inputs, 2, &(union attr){ .axis = { axis } }, err);
}

/* A run of neighbours is a slice: what reads or divides maps knows those. All of them in their
 * order are x itself, as the strided views of PyTorch's new exporter often are. */
static value_id neighbours(struct onnx_import *im, onnx_node *node, const char *suffix, value_id x,
                           int axis, const struct host *places, struct err *err)
{
    int64_t extent = onnx_shape(im, x)->dim[axis];
    int64_t first = places->count ? places->ints[0] : 0;
    first = first < 0 ? first + extent : first;
    bool run = places->count > 0 && first >= 0 && first < extent && places->count <= extent - first;
    for (int64_t i = 0; run && i < places->count; i++)
        run = (places->ints[i] < 0 ? places->ints[i] + extent : places->ints[i]) == first + i;
    if (run && places->count == extent)
        return x;
    if (onnx_shape(im, x)->rank == 1) /* the images may be in it: only for this number of them */
        x = onnx_add(im, node, ".flat", OP_RESHAPE, &x, 1,
                     &(union attr){ .reshape = { SHAPE(extent) } }, err);
    if (x == NO_VALUE)
        return NO_VALUE;
    if (!run)
        return at_places(im, node, suffix, x, axis, places->ints, places->count, err);
    union attr attr = { .slice = { axis, first, first + places->count, 1 } };
    return onnx_add(im, node, suffix, OP_SLICE, &x, 1, &attr, err);
}

static const struct host *indices(struct onnx_import *im, onnx_node *node, struct err *err)
{
    const struct host *places = onnx_constant(im, node, 1, "the index", err);
    if (places && places->type != HOST_INT) {
        err_set(err, ERR_FORMAT, "the indices are not whole numbers");
        return NULL;
    }
    return places;
}

/* The axis becomes those of the indices, of which there may be none. */
bool onnx_gather(struct onnx_import *im, onnx_node *node, struct err *err)
{
    value_id x = onnx_value(im, node, 0, err);
    const struct host *places = x == NO_VALUE ? NULL : indices(im, node, err);
    if (!places)
        return false;
    struct shape shape = *onnx_shape(im, x), target = { 0, { 0 } };
    int axis = axis_of(onnx_int(node, "axis", 0), shape.rank);
    if (axis < 0)
        return no_axis(onnx_int(node, "axis", 0), shape.rank, err);
    if (shape.rank - 1 + places->shape.rank > SHAPE_DIMS)
        return err_set(err, ERR_FORMAT, "the output has %d axes; at most %d are supported",
                       shape.rank - 1 + places->shape.rank, SHAPE_DIMS);
    for (int i = 0; i < axis; i++)
        target.dim[target.rank++] = shape.dim[i];
    for (int i = 0; i < places->shape.rank; i++)
        target.dim[target.rank++] = places->shape.dim[i];
    for (int i = axis + 1; i < shape.rank; i++)
        target.dim[target.rank++] = shape.dim[i];
    bool list = places->shape.rank == 1;
    value_id y = neighbours(im, node, list ? NULL : ".places", x, axis, places, err);
    if (!list)
        y = onnx_add_reshape(im, node, NULL, y, target, err);
    return onnx_bind(im, node, 0, y, err);
}

/* Axes first .. last - 1 of x as one. */
static value_id joined(struct onnx_import *im, onnx_node *node, value_id x, int first, int last,
                       struct err *err)
{
    struct shape shape = *onnx_shape(im, x), target = { 0, { 0 } };
    for (int i = 0; i < shape.rank; i++) {
        if (i > first && i < last)
            target.dim[target.rank - 1] *= shape.dim[i];
        else
            target.dim[target.rank++] = shape.dim[i];
    }
    return last - first < 2 ? x : onnx_add_reshape(im, node, ".joined", x, target, err);
}

/* Every row of the indices as one place within the axes batch .. batch + row length. */
static struct host *places_of_rows(struct onnx_import *im, const struct host *rows,
                                   const struct shape *x, int first, int length, struct err *err)
{
    struct host *list = onnx_host_new(im, HOST_INT, SHAPE(rows->count / length), err);
    for (int64_t i = 0; list && i < list->count; i++)
        for (int k = 0; k < length; k++) {
            int64_t at = rows->ints[i * length + k], extent = x->dim[first + k];
            at = at < 0 ? at + extent : at;
            if (at < 0 || at >= extent) {
                err_set(err, ERR_FORMAT, "an index is outside the axis");
                host_free(list);
                return NULL;
            }
            list->ints[i] = list->ints[i] * extent + at;
        }
    return list;
}

/* Whether the rows are [images, of one image..] and the same for each, apart from its number: then
 * *of_one are those of one image. */
static bool by_image(const struct host *rows, const struct shape *x, int64_t length,
                     int64_t *of_one)
{
    int64_t images = x->dim[0], n = rows->count / length;
    if (n % images)
        return false;
    *of_one = n / images;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < length; k++)
            if (rows->ints[i * length + k] !=
                (k ? rows->ints[i % *of_one * length + k] : i / *of_one))
                return false;
    return true;
}

/* Where every row of x comes from, of x and behind it the updates: itself, or the last update of
 * it.
 */
static struct host *sources(struct onnx_import *im, const struct host *places, int64_t rows,
                            int64_t updates, struct err *err)
{
    struct host *from = onnx_host_new(im, HOST_INT, SHAPE(rows), err);
    for (int64_t i = 0; from && i < rows; i++)
        from->ints[i] = i;
    for (int64_t i = 0; from && i < updates; i++)
        from->ints[places->ints[i]] = rows + i;
    return from;
}

/* Rows of x replaced at places that are known: those of x and of the updates joined, and taken from
 * there. Axes of an image only, so that it holds for every batch. */
bool onnx_scatter_nd(struct onnx_import *im, onnx_node *node, struct err *err)
{
    static const char *const reductions[] = { "none", NULL };
    value_id x = onnx_value(im, node, 0, err), y = onnx_value(im, node, 2, err);
    const struct host *rows = x == NO_VALUE || y == NO_VALUE ? NULL : indices(im, node, err);
    if (!rows || onnx_choice(node, "reduction", reductions, err) < 0)
        return false;
    struct shape shape = *onnx_shape(im, x);
    int64_t length = rows->shape.rank ? rows->shape.dim[rows->shape.rank - 1] : 0, updates;
    if (length < 1 || length > shape.rank || rows->count < 1 ||
        !by_image(rows, &shape, length, &updates))
        return err_set(err, ERR_FORMAT, "only the same places in every image are supported");
    int64_t n = length > 1 ? shape_span(&shape, 1, (int)length) : 1;
    int64_t block = shape_span(&shape, (int)length, shape.rank);
    if (shape_count(onnx_shape(im, y)) != shape.dim[0] * updates * block)
        return err_set(err, ERR_FORMAT, "the updates do not match the indices");
    struct host *places = places_of_rows(im, rows, &shape, 0, (int)length, err);
    for (int64_t i = 0; places && i < updates; i++)
        places->ints[i] %= n;
    struct host *from = places ? sources(im, places, n, updates, err) : NULL;
    host_free(places);
    value_id parts[2] = {
        onnx_add_reshape(im, node, ".rows", x, SHAPE(shape.dim[0], n, block), err),
        onnx_add_reshape(im, node, ".updates", y, SHAPE(shape.dim[0], updates, block), err)
    };
    value_id all = NO_VALUE;
    if (from && parts[0] != NO_VALUE && parts[1] != NO_VALUE)
        all = onnx_add(im, node, ".all", OP_CONCAT, parts, 2, &(union attr){ .axis = { 1 } }, err);
    if (all != NO_VALUE)
        all = at_places(im, node, ".places", all, 1, from->ints, n, err);
    host_free(from);
    return onnx_bind(im, node, 0, onnx_add_reshape(im, node, NULL, all, shape, err), err);
}

bool onnx_gather_nd(struct onnx_import *im, onnx_node *node, struct err *err)
{
    value_id x = onnx_value(im, node, 0, err);
    const struct host *rows = x == NO_VALUE ? NULL : indices(im, node, err);
    if (!rows)
        return false;
    struct shape shape = *onnx_shape(im, x), target = { 0, { 0 } };
    int64_t length = rows->shape.rank ? rows->shape.dim[rows->shape.rank - 1] : 0;
    if (onnx_int(node, "batch_dims", 0))
        return err_set(err, ERR_FORMAT, "batch_dims is not supported");
    if (length < 1 || length > shape.rank || rows->count < 1 ||
        rows->shape.rank - 1 + shape.rank - length > SHAPE_DIMS)
        return err_set(err, ERR_FORMAT, "indices of this shape are not supported");
    for (int i = 0; i + 1 < rows->shape.rank; i++)
        target.dim[target.rank++] = rows->shape.dim[i];
    for (int i = (int)length; i < shape.rank; i++)
        target.dim[target.rank++] = shape.dim[i];
    struct host *list = places_of_rows(im, rows, &shape, 0, (int)length, err);
    value_id y = list ? joined(im, node, x, 0, (int)length, err) : NO_VALUE;
    if (y != NO_VALUE)
        y = at_places(im, node, ".places", y, 0, list->ints, list->count, err);
    host_free(list);
    return onnx_bind(im, node, 0, onnx_add_reshape(im, node, NULL, y, target, err), err);
}

/* One place for each element, at an axis behind which and before which the indices are the same
 * everywhere: as often as the network means a list. */
bool onnx_gather_elements(struct onnx_import *im, onnx_node *node, struct err *err)
{
    value_id x = onnx_value(im, node, 0, err);
    const struct host *places = x == NO_VALUE ? NULL : indices(im, node, err);
    if (!places)
        return false;
    struct shape shape = *onnx_shape(im, x);
    int axis = axis_of(onnx_int(node, "axis", 0), shape.rank);
    if (axis < 0)
        return no_axis(onnx_int(node, "axis", 0), shape.rank, err);
    bool fits = places->shape.rank == shape.rank && places->count > 0;
    for (int i = 0; fits && i < shape.rank; i++)
        fits = i == axis || places->shape.dim[i] == shape.dim[i];
    int64_t inner = shape_span(&shape, axis + 1, shape.rank);
    int64_t count = fits ? places->shape.dim[axis] : 0;
    for (int64_t i = 0; fits && i < places->count; i++)
        fits = places->ints[i] == places->ints[i / inner % count * inner];
    if (!fits)
        return err_set(err, ERR_FORMAT,
                       "only the same indices at every place of the other axes "
                       "are supported");
    struct host *list = onnx_host_new(im, HOST_INT, SHAPE(count), err);
    for (int64_t i = 0; list && i < count; i++)
        list->ints[i] = places->ints[i * inner];
    value_id y = list ? neighbours(im, node, NULL, x, axis, list, err) : NO_VALUE;
    host_free(list);
    return onnx_bind(im, node, 0, y, err);
}

/* Elements begin, begin + step, .. down to, but without, end. */
value_id onnx_take_backwards(struct onnx_import *im, onnx_node *node, const char *suffix,
                             value_id x, int axis, int64_t begin, int64_t end, int64_t step,
                             struct err *err)
{
    int64_t extent = onnx_shape(im, x)->dim[axis];
    begin = begin < 0 ? begin + extent : begin;
    begin = begin < -1 ? -1 : begin >= extent ? extent - 1 : begin;
    end = end < 0 ? (end < -extent ? -1 : end + extent) : end;
    end = end >= extent ? extent - 1 : end;
    step = step < -extent ? -extent : step;
    int64_t count = begin > end ? (begin - end - 1) / -step + 1 : 0;
    if (count < 1) {
        err_set(err, ERR_FORMAT, "the slice leaves nothing of axis %d", axis);
        return NO_VALUE;
    }
    struct host *list = onnx_host_new(im, HOST_INT, SHAPE(count), err);
    for (int64_t i = 0; list && i < count; i++)
        list->ints[i] = begin + i * step;
    value_id y = list ? at_places(im, node, suffix, x, axis, list->ints, count, err) : NO_VALUE;
    host_free(list);
    return y;
}

/* Whether x [1, ..], which is the same for all images, is repeated as often as there are images. */
static bool is_for_images(const struct onnx_import *im, value_id x, int64_t repeats)
{
    value_id image = im->graph->n_inputs ? im->graph->inputs[0].value : NO_VALUE;
    return image != NO_VALUE && onnx_shape(im, image)->rank && onnx_shape(im, x)->rank > 1 &&
           onnx_shape(im, image)->dim[0] == repeats && onnx_shape(im, x)->dim[0] == 1 &&
           !onnx_from_images(im, x);
}

bool onnx_tile(struct onnx_import *im, onnx_node *node, struct err *err)
{
    enum { MOST = 1024 };
    value_id x = onnx_value(im, node, 0, err), parts[MOST];
    int64_t repeats[SHAPE_DIMS];
    int n = x == NO_VALUE ? -1 : onnx_ints(im, node, 1, "repeats", repeats, SHAPE_DIMS, err);
    if (n < 0)
        return false;
    if (n != onnx_shape(im, x)->rank)
        return err_set(err, ERR_FORMAT, "one repeat for each axis is needed");
    if (onnx_known(im, node, 1, NULL)->from_shape && is_for_images(im, x, repeats[0])) {
        x = onnx_add(im, node, ".images", OP_EXPAND_BATCH,
                     (value_id[]){ x, im->graph->inputs[0].value }, 2, NULL, err);
        repeats[0] = 1;
        if (x == NO_VALUE)
            return false;
    }
    for (int axis = 0; axis < n; axis++) {
        if (repeats[axis] < 1 || repeats[axis] > MOST)
            return err_set(err, ERR_FORMAT, "%lld repeats are not supported; 1 to %d are",
                           (long long)repeats[axis], MOST);
        for (int64_t i = 0; i < repeats[axis]; i++)
            parts[i] = x;
        if (repeats[axis] > 1)
            x = onnx_add(im, node, ".repeated", OP_CONCAT, parts, (int)repeats[axis],
                         &(union attr){ .axis = { axis } }, err);
        if (x == NO_VALUE)
            return false;
    }
    return onnx_bind(im, node, 0, x, err);
}
