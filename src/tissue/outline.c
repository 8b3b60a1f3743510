/* outline.c: see outline.h. The border is walked with the tissue on the right hand. Where two
 * pixels touch only by a corner the walk stays with its own pixel, so pieces are connected by
 * edges; it may then pass a corner twice, and is cut there into a ring that encloses tissue and one
 * that encloses glass. */
#include "tissue/outline.h"

#include <stdlib.h>
#include "tissue/morphology.h"

/* Directions in the order of right turns: east, south, west, north. */
static const int32_t step_x[4] = { 1, 0, -1, 0 }, step_y[4] = { 0, 1, 0, -1 };

struct tracer {
    const struct image *mask;
    const int32_t *labels;
    uint8_t *walked; /* [height, width]: the upper edge of the pixel was walked */
    int32_t *place;  /* [height + 1, width + 1]: where a corner stands in `path`, or -1 */
    struct outline_point *path; /* the open walk: corners where it turns */
    int64_t path_n, path_room;
    struct outline *out;
};

static bool set_at(const struct image *mask, int32_t x, int32_t y)
{
    return x >= 0 && y >= 0 && x < mask->width && y < mask->height && *image_at(mask, x, y);
}

static bool grow(void **array, int64_t *room, int64_t need, size_t size, struct err *err)
{
    if (need <= *room)
        return true;
    int64_t more = *room ? *room * 2 : 64;
    more = more < need ? need : more;
    void *bigger = realloc(*array, (size_t)more * size);
    if (!bigger)
        return err_memory(err, "an outline of tissue");
    *array = bigger, *room = more;
    return true;
}

/* Twice the area; positive where the tissue is inside (y grows downwards). */
static int64_t twice_area(const struct outline_point *points, int64_t n)
{
    int64_t sum = 0;
    for (int64_t i = 0, j = n - 1; i < n; j = i++)
        sum += (int64_t)points[j].x * points[i].y - (int64_t)points[i].x * points[j].y;
    return sum;
}

/* Takes the end of the walk, from `from` on, out of it as a ring. */
static bool cut_ring(struct tracer *tracer, int64_t from, int32_t piece, struct err *err)
{
    struct outline *out = tracer->out;
    int64_t n = tracer->path_n - from;
    if (!grow((void **)&out->points, &out->points_room, out->n_points + n, sizeof *out->points,
              err) ||
        !grow((void **)&out->rings, &out->rings_room, out->n_rings + 1, sizeof *out->rings, err))
        return false;
    for (int64_t i = 0; i < n; i++) {
        struct outline_point point = tracer->path[from + i];
        tracer->place[point.y * (tracer->mask->width + 1) + point.x] = -1;
        out->points[out->n_points + i] = point;
    }
    bool hole = twice_area(tracer->path + from, n) < 0;
    out->rings[out->n_rings++] =
        (struct outline_ring){ .first = out->n_points, .n = n, .piece = piece, .hole = hole };
    out->n_points += n;
    tracer->path_n = from;
    return true;
}

/* The walk turns at a corner; if it was here before, a ring is complete. */
static bool add_corner(struct tracer *tracer, int32_t x, int32_t y, int32_t piece, struct err *err)
{
    int32_t *place = &tracer->place[y * (tracer->mask->width + 1) + x];
    if (*place >= 0 && !cut_ring(tracer, *place, piece, err))
        return false;
    if (!grow((void **)&tracer->path, &tracer->path_room, tracer->path_n + 1, sizeof *tracer->path,
              err))
        return false;
    *place = (int32_t)tracer->path_n;
    tracer->path[tracer->path_n++] = (struct outline_point){ x, y };
    return true;
}

/* Where to go on from a corner that was reached in `direction`: right if the pixel ahead on the
 * right is glass, left if the one ahead on the left is tissue too, else straight on. */
static int turn(const struct image *mask, int32_t x, int32_t y, int direction)
{
    /* The pixels around corner (x, y), ahead on the right and ahead on the left, by direction. */
    static const int32_t right_x[4] = { 0, -1, -1, 0 }, right_y[4] = { 0, 0, -1, -1 };
    static const int32_t left_x[4] = { 0, 0, -1, -1 }, left_y[4] = { -1, 0, 0, -1 };
    if (!set_at(mask, x + right_x[direction], y + right_y[direction]))
        return (direction + 1) % 4;
    if (set_at(mask, x + left_x[direction], y + left_y[direction]))
        return (direction + 3) % 4;
    return direction;
}

/* Walks the border that holds the upper edge of pixel (x0, y0), from its left corner, eastwards. */
static bool walk(struct tracer *tracer, int32_t x0, int32_t y0, struct err *err)
{
    int32_t x = x0, y = y0, piece = tracer->labels[y0 * tracer->mask->width + x0] - 1;
    int direction = 0;
    tracer->path_n = 0;
    if (!add_corner(tracer, x, y, piece, err))
        return false;
    for (;;) {
        if (direction == 0)
            tracer->walked[y * tracer->mask->width + x] = 1;
        x += step_x[direction], y += step_y[direction];
        int next = turn(tracer->mask, x, y, direction);
        if (x == x0 && y == y0 && next == 0)
            break;
        if (next != direction && !add_corner(tracer, x, y, piece, err))
            return false;
        direction = next;
    }
    /* The start may have been passed and cut off in between; what is left begins there. */
    return cut_ring(tracer, 0, piece, err);
}

static int by_piece(const void *a, const void *b)
{
    const struct outline_ring *left = a, *right = b;
    if (left->piece != right->piece)
        return left->piece < right->piece ? -1 : 1;
    if (left->hole != right->hole)
        return left->hole ? 1 : -1;
    return left->first < right->first ? -1 : 1;
}

bool outline_trace(const struct image *mask, struct outline *out, struct err *err)
{
    *out = (struct outline){ 0 };
    size_t corners = (size_t)(mask->width + 1) * (size_t)(mask->height + 1);
    int32_t *labels;
    if (!morphology_label(mask, false, &labels, &out->n_pieces, err))
        return false;
    struct tracer tracer = { .mask = mask, .labels = labels, .out = out };
    tracer.walked = calloc((size_t)(mask->width * mask->height), 1);
    tracer.place = malloc(corners * sizeof *tracer.place);
    bool ok = (tracer.walked && tracer.place) || err_memory(err, "an outline of tissue");
    for (size_t i = 0; ok && i < corners; i++)
        tracer.place[i] = -1;
    for (int32_t y = 0; ok && y < mask->height; y++)
        for (int32_t x = 0; ok && x < mask->width; x++)
            if (set_at(mask, x, y) && !set_at(mask, x, y - 1) &&
                !tracer.walked[y * mask->width + x])
                ok = walk(&tracer, x, y, err);
    free(tracer.path);
    free(tracer.place);
    free(tracer.walked);
    free(labels);
    if (ok && out->n_rings > 0)
        qsort(out->rings, (size_t)out->n_rings, sizeof *out->rings, by_piece);
    if (!ok)
        outline_free(out);
    return ok;
}

void outline_free(struct outline *outline)
{
    free(outline->points);
    free(outline->rings);
    *outline = (struct outline){ 0 };
}
