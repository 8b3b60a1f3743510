/* outline.c: see outline.h. Passes a whole mask through the tracer and sorts its pieces. */
#include "base/outline.h"

#include <stdlib.h>
#include <string.h>
#include "base/array.h"

struct collection {
    struct outline *out;
    int64_t *first_px; /* [n_pieces]: y * width + x */
    int64_t room;
    int64_t width;
};

static bool collect(void *arg, const struct outline_piece *piece, struct err *err)
{
    struct collection *all = arg;
    struct outline *out = all->out;
    if (!array_grow(&out->points, &out->points_room, out->n_points + piece->n_points,
                    sizeof *out->points, "an outline of tissue", err) ||
        !array_grow(&out->rings, &out->rings_room, out->n_rings + piece->n_rings,
                    sizeof *out->rings, "an outline of tissue", err) ||
        !array_grow(&all->first_px, &all->room, out->n_pieces + 1, sizeof *all->first_px,
                    "an outline of tissue", err))
        return false;
    memcpy(out->points + out->n_points, piece->points,
           (size_t)piece->n_points * sizeof *out->points);
    for (int64_t r = 0; r < piece->n_rings; r++) {
        struct outline_ring *ring = &out->rings[out->n_rings++];
        *ring = piece->rings[r];
        ring->first += out->n_points;
        ring->piece = out->n_pieces;
    }
    all->first_px[out->n_pieces++] = piece->first_px.y * all->width + piece->first_px.x;
    out->n_points += piece->n_points;
    return true;
}

struct place {
    int64_t first_px;
    int32_t piece;
};

static int by_first_px(const void *a, const void *b)
{
    const struct place *left = a, *right = b;
    return (left->first_px > right->first_px) - (left->first_px < right->first_px);
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

/* The tracer hands pieces over by their last row; here they are numbered by their first pixel. */
static bool put_in_order(struct collection *all, struct err *err)
{
    struct outline *out = all->out;
    size_t n = (size_t)out->n_pieces;
    struct place *places = calloc(n + 1, sizeof *places);
    int32_t *number = calloc(n + 1, sizeof *number);
    bool ok = (places && number) || err_memory(err, "an outline of tissue");
    for (int32_t i = 0; ok && i < out->n_pieces; i++)
        places[i] = (struct place){ all->first_px[i], i };
    if (ok && n > 0) {
        qsort(places, n, sizeof *places, by_first_px);
        for (int32_t i = 0; i < out->n_pieces; i++)
            number[places[i].piece] = i;
        for (int64_t r = 0; r < out->n_rings; r++)
            out->rings[r].piece = number[out->rings[r].piece];
        qsort(out->rings, (size_t)out->n_rings, sizeof *out->rings, by_piece);
    }
    free(places);
    free(number);
    return ok;
}

bool outline_trace(const struct image *mask, struct outline *out, struct err *err)
{
    *out = (struct outline){ 0 };
    struct collection all = { .out = out, .width = mask->width };
    struct outline_tracer *tracer = NULL;
    bool ok = outline_tracer_new((int32_t)mask->width, 0, collect, &all, &tracer, err);
    for (int64_t y = 0; ok && y < mask->height; y++)
        ok = outline_tracer_row(tracer, image_at(mask, 0, y), NULL, err);
    ok = ok && outline_tracer_end(tracer, err) && put_in_order(&all, err);
    outline_tracer_free(tracer);
    free(all.first_px);
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
