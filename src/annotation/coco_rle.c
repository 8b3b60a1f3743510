/* coco_rle.c: see coco_rle.h. Only the box around the pixels inside is traced, column by column. */
#include "annotation/coco_rle.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SIDE 1000000 /* px */
#define FIRST_CODE '0'    /* of a packed number: 64 codes of 6 bits from here */

struct runs {
    int64_t *lengths; /* [n]: outside, inside, outside, ... */
    size_t n;
    int64_t width, height;
};

static bool refuse(const struct raster_shape *shape, const char *fact, struct err *err)
{
    return drawing_refuse(shape->drawing->path, shape->place, err, "%s", fact);
}

bool coco_rle_size(const json_t *rle, int64_t *width, int64_t *height)
{
    const json_t *size = json_object_get(rle, "size");
    *height = json_integer_value(json_array_get(size, 0));
    *width = json_integer_value(json_array_get(size, 1));
    return *width > 0 && *height > 0 && *width <= MOST_SIDE && *height <= MOST_SIDE;
}

static bool unpack_list(const json_t *counts, struct runs *runs)
{
    for (size_t i = 0; i < json_array_size(counts); i++) {
        const json_t *item = json_array_get(counts, i);
        if (!json_is_integer(item))
            return false;
        runs->lengths[runs->n++] = json_integer_value(item);
    }
    return true;
}

/* Five bits a character, lowest first, the sixth says that more follow; numbers are signed, and
 * from the fourth on they are differences to the number two before. */
static bool unpack_text(const char *text, struct runs *runs)
{
    while (*text) {
        int64_t value = 0;
        int bits = 0, code;
        do {
            code = *text++ - FIRST_CODE;
            if (code < 0 || code > 63 || bits > 40)
                return false;
            value |= (int64_t)(code & 31) << bits;
            bits += 5;
        } while (code & 32);
        if (code & 16)
            value -= INT64_C(1) << bits;
        if (runs->n > 2)
            value += runs->lengths[runs->n - 2];
        runs->lengths[runs->n++] = value;
        if (value < 0 || value > runs->width * runs->height)
            return true; /* unpack() rejects it; further sums might overflow */
    }
    return true;
}

static bool unpack(const json_t *rle, const struct raster_shape *shape, struct runs *out,
                   struct err *err)
{
    const json_t *counts = json_object_get(rle, "counts");
    const char *text = json_string_value(counts);
    size_t most = text ? strlen(text) : json_array_size(counts);
    if (!coco_rle_size(rle, &out->width, &out->height))
        return refuse(shape, "the \"size\" of the mask is not [height, width]", err);
    out->lengths = calloc(most + 1, sizeof *out->lengths);
    if (!out->lengths)
        return err_memory(err, shape->drawing->path);
    if (!(text ? unpack_text(text, out) : json_is_array(counts) && unpack_list(counts, out)))
        return refuse(shape, "the \"counts\" of the mask are neither run lengths nor packed ones",
                      err);
    int64_t all = out->width * out->height, sum = 0;
    for (size_t i = 0; i < out->n; i++) {
        if (out->lengths[i] < 0 || out->lengths[i] > all - sum)
            return refuse(shape, "the run lengths of the mask are more than its pixels", err);
        sum += out->lengths[i];
    }
    if (sum != all)
        return drawing_refuse(
            shape->drawing->path, shape->place, err,
            "the run lengths of the mask add up to %" PRId64 " of %" PRId64 " pixels", sum, all);
    return true;
}

struct box {
    int64_t x0, y0, x1, y1; /* the ends are not included */
};

static struct box box_inside(const struct runs *runs)
{
    struct box box = { INT64_MAX, INT64_MAX, 0, 0 };
    int64_t at = 0;
    for (size_t i = 0; i < runs->n; at += runs->lengths[i++]) {
        if (i % 2 == 0 || runs->lengths[i] == 0)
            continue;
        int64_t last = at + runs->lengths[i] - 1;
        int64_t column = at / runs->height, last_column = last / runs->height;
        bool one = column == last_column;
        int64_t y0 = one ? at % runs->height : 0;
        int64_t y1 = one ? last % runs->height + 1 : runs->height;
        box.x0 = column < box.x0 ? column : box.x0;
        box.x1 = last_column + 1 > box.x1 ? last_column + 1 : box.x1;
        box.y0 = y0 < box.y0 ? y0 : box.y0;
        box.y1 = y1 > box.y1 ? y1 : box.y1;
    }
    return box;
}

/* Where the walk over the runs has come to. */
struct place {
    size_t run;
    int64_t begin; /* of the run, in pixels of the image */
};

/* column [box height]: not 0 inside. Columns come one after another. */
static void fill_column(const struct runs *runs, const struct box *box, int64_t x,
                        struct place *place, uint8_t *column)
{
    int64_t top = x * runs->height + box->y0, bottom = x * runs->height + box->y1;
    memset(column, 0, (size_t)(box->y1 - box->y0));
    while (place->run < runs->n) {
        int64_t begin = place->begin, end = begin + runs->lengths[place->run];
        int64_t from = begin > top ? begin : top, to = end < bottom ? end : bottom;
        if (place->run % 2 == 1 && from < to)
            memset(column + (from - top), 1, (size_t)(to - from));
        if (end > bottom)
            return;
        place->begin = end;
        place->run++;
    }
}

bool coco_rle_read(const json_t *rle, struct raster_shape *shape, bool *any, struct err *err)
{
    struct runs runs = { 0 };
    struct outline_tracer *tracer = NULL;
    uint8_t *column = NULL;
    bool ok = unpack(rle, shape, &runs, err);
    struct box box = ok ? box_inside(&runs) : (struct box){ 0 };
    *any = ok && box.x0 < box.x1;
    if (!*any)
        goto done;
    shape->x0 = box.x0, shape->y0 = box.y0, shape->transposed = true;
    column = malloc((size_t)(box.y1 - box.y0));
    ok = column || err_memory(err, shape->drawing->path);
    ok = ok && outline_tracer_new((int32_t)(box.y1 - box.y0), RASTER_MOST_POINTS, raster_shape_take,
                                  shape, &tracer, err);
    struct place place = { 0 };
    for (int64_t x = box.x0; ok && x < box.x1; x++) {
        fill_column(&runs, &box, x, &place, column);
        ok = outline_tracer_row(tracer, column, NULL, err);
    }
    ok = ok && outline_tracer_end(tracer, err);
done:
    outline_tracer_free(tracer);
    free(column);
    free(runs.lengths);
    return ok;
}
