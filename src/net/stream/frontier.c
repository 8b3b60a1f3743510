/* frontier.c: see frontier.h. Every step of the forward pass is a copy of cells between rectangles
 * of one map, and the backward pass is the same steps reversed, each as a sum: so that gradients
 * are exact by construction. */
#include "net/stream/frontier.h"
#include <stdlib.h>
#include <string.h>
#include "net/stream/view.h"

/* The strips of one carry. */
struct frontier_carry {
    int64_t outer, inner, width; /* of the map */
    int64_t rows, columns;       /* of the largest strips: above, at the left */
    int64_t height;              /* of the highest tile */
    float *above;                /* [outer, rows, width, inner] */
    float *left;                 /* [outer, height of the tile, columns, inner] */
    float *corner;               /* [outer, rows, columns, inner] */
};

/* The rectangles around tile (i, j) of a map. */
struct around {
    struct span own[2];
    struct span need[2];
    struct span now[2];  /* the strips that it takes */
    struct span next[2]; /* the strips that the next tile takes: below, to the right */
};

static struct around around(const struct tiles *tiles, int carry, int64_t i, int64_t j)
{
    int64_t tile[2] = { i, j };
    struct around a;
    for (int k = 0; k < 2; k++) {
        a.own[k] = tiles_own(tiles, k, tiles->carries[carry].map, tile[k]);
        a.need[k] = tiles_need(tiles, k, carry, tile[k]);
        a.now[k] = tiles_strip(tiles, k, carry, tile[k]);
        a.next[k] = tiles_strip(tiles, k, carry, tile[k] + 1);
    }
    return a;
}

static struct view view_at(const struct frontier_carry *c, float *at, struct span rows,
                           struct span columns)
{
    return view_of(at, rows.begin, columns.begin, rows.end - rows.begin,
                   columns.end - columns.begin, c->outer, c->inner);
}

static struct span joined(struct span a, struct span b)
{
    return (struct span){ a.begin, b.end };
}

/* The strip above these columns. */
static struct view above(const struct frontier_carry *c, struct span rows, struct span columns)
{
    struct view whole = { .at = c->above,
                          .y = rows.begin,
                          .h = rows.end - rows.begin,
                          .w = c->width,
                          .row = c->width * c->inner,
                          .plane = c->rows * c->width * c->inner,
                          .outer = c->outer,
                          .inner = c->inner };
    return view_columns(&whole, columns.begin, columns.end - columns.begin);
}

/* --- memory --- */

static int64_t strip_floats(const struct frontier_carry *c, const struct around *a)
{
    struct view top = view_at(c, NULL, a->now[0], joined(a->now[1], a->own[1]));
    struct view left = view_at(c, NULL, a->own[0], a->now[1]);
    return view_count(&top) + view_count(&left);
}

static int64_t longest(const struct tiles *tiles, int axis, int carry)
{
    int64_t most = 0;
    for (int64_t i = 0; i < tiles->axes[axis].tiles; i++) {
        struct span strip = tiles_strip(tiles, axis, carry, i);
        most = strip.end - strip.begin > most ? strip.end - strip.begin : most;
    }
    return most;
}

static void measure(struct frontier *f, const struct tape *tape, int carry)
{
    const struct tiles *tiles = f->tiles;
    struct frontier_carry *c = &f->carries[carry];
    int map = tiles->carries[carry].map;
    const struct shape *shape = graph_shape(tiles->body->graph, tiles->body->maps[map]);
    int64_t extents[5];
    layout_extents(tape, shape, carry_layout(tape, shape), extents);
    c->outer = extents[0] * extents[1], c->inner = extents[4], c->width = extents[3];
    c->rows = longest(tiles, 0, carry), c->columns = longest(tiles, 1, carry);
    for (int64_t i = 0; i < tiles->axes[0].tiles; i++) {
        struct span own = tiles_own(tiles, 0, map, i);
        c->height = own.end - own.begin > c->height ? own.end - own.begin : c->height;
    }
}

static size_t aligned(int64_t floats)
{
    return ((size_t)floats + 15) / 16 * 16;
}

/* Gives every strip its place behind `at` and returns the floats of all. */
static size_t place(struct frontier *f, float *at)
{
    size_t used = 0;
    for (int k = 0; k < f->tiles->n_carries; k++) {
        struct frontier_carry *c = &f->carries[k];
        int64_t cell = c->outer * c->inner;
        float **const parts[] = { &c->above, &c->left, &c->corner };
        int64_t floats[] = { cell * c->rows * c->width, cell * c->height * c->columns,
                             cell * c->rows * c->columns };
        for (int p = 0; p < 3; p++) {
            *parts[p] = at ? at + used : NULL;
            used += aligned(floats[p]);
        }
    }
    return used;
}

/* Floats of the strips of one carry in the tile that has most of them. */
static int64_t largest_strips(const struct frontier *f)
{
    int64_t most = 0;
    const struct stream_axis *rows = &f->tiles->axes[0], *columns = &f->tiles->axes[1];
    for (int c = 0; c < f->tiles->n_carries; c++)
        for (int r = 0; r < rows->n_kinds; r++)
            for (int k = 0; k < columns->n_kinds; k++) {
                struct around a = around(f->tiles, c, rows->examples[r], columns->examples[k]);
                int64_t floats = strip_floats(&f->carries[c], &a);
                most = floats > most ? floats : most;
            }
    return most;
}

bool frontier_new(const struct tiles *tiles, const struct tape *tape, int threads,
                  struct frontier *out, struct err *err)
{
    size_t carries = (size_t)tiles->n_carries + 1;
    *out = (struct frontier){ .tiles = tiles,
                              .threads = threads,
                              .carries = calloc(carries, sizeof *out->carries),
                              .offsets = calloc(carries, sizeof *out->offsets) };
    bool ok = out->carries && out->offsets;
    for (int c = 0; ok && c < tiles->n_carries; c++)
        measure(out, tape, c);
    if (ok) {
        size_t strips = place(out, NULL), scratch = aligned(largest_strips(out));
        out->bytes = (strips + scratch + 16) * sizeof(float);
    }
    if (ok)
        return true;
    frontier_free(out);
    return err_memory(err, "strips");
}

bool frontier_allocate(struct frontier *f, struct err *err)
{
    f->memory = aligned_alloc(64, f->bytes);
    if (!f->memory)
        return err_memory(err, "strips");
    memset(f->memory, 0, f->bytes);
    f->scratch = f->memory + place(f, f->memory);
    return true;
}

void frontier_free(struct frontier *f)
{
    free(f->carries), free(f->offsets), free(f->memory);
    *f = (struct frontier){ 0 };
}

size_t frontier_bytes(const struct frontier *f)
{
    return f->bytes;
}

size_t frontier_record_bytes(const struct frontier *f, int64_t i, int64_t j)
{
    int64_t floats = 0;
    for (int c = 0; c < f->tiles->n_carries; c++) {
        struct around a = around(f->tiles, c, i, j);
        floats += strip_floats(&f->carries[c], &a);
    }
    return (size_t)floats * sizeof(float);
}

/* --- passes --- */

void frontier_set(struct frontier *f, enum frontier_pass pass, int64_t i, int64_t j, float *record)
{
    int64_t floats = 0;
    f->pass = pass, f->i = i, f->j = j, f->record = record;
    for (int c = 0; c < f->tiles->n_carries; c++) {
        struct around a = around(f->tiles, c, i, j);
        f->offsets[c] = floats;
        floats += strip_floats(&f->carries[c], &a);
    }
}

void frontier_clear(struct frontier *f)
{
    memset(f->memory, 0, f->bytes);
}

/* What a tile takes over: rows above it with their corner, and columns at its left; one behind the
 * other at `at`. */
struct taken {
    struct view top, left;
};

static struct taken taken_at(const struct frontier_carry *c, const struct around *a, float *at)
{
    struct taken t = { .top = view_at(c, at, a->now[0], joined(a->now[1], a->own[1])) };
    t.left = view_at(c, at + view_count(&t.top), a->own[0], a->now[1]);
    return t;
}

/* The strips as the tiles before this one left them. */
static struct taken take(const struct frontier *f, const struct frontier_carry *c,
                         const struct around *a)
{
    struct taken t = taken_at(c, a, f->record + f->offsets[c - f->carries]);
    if (f->pass != FRONTIER_FIRST)
        return t;
    struct view corner = view_at(c, c->corner, a->now[0], a->now[1]);
    struct view strip = above(c, a->now[0], a->own[1]);
    struct view left = view_at(c, c->left, a->own[0], a->now[1]);
    view_copy(&t.top, &corner, f->threads);
    view_copy(&t.top, &strip, f->threads);
    view_copy(&t.left, &left, f->threads);
    return t;
}

/* The strips for the tiles after this one; x NULL: cells that this one has not computed are 0. */
static void leave(const struct frontier *f, const struct frontier_carry *c, const struct around *a,
                  const struct taken *t, const struct view *x)
{
    struct view strip = above(c, a->next[0], a->own[1]);
    struct view left = view_at(c, c->left, a->own[0], a->next[1]);
    struct view corner = view_at(c, c->corner, a->now[0], a->next[1]);
    if (x) {
        view_copy(&strip, x, f->threads);
        view_copy(&left, x, f->threads);
    } else {
        view_clear(&strip, f->threads);
        view_clear(&left, f->threads);
    }
    view_copy(&strip, &t->top, f->threads);
    view_copy(&left, &t->left, f->threads);
    view_copy(&corner, &t->top, f->threads);
}

void frontier_leave_out(struct frontier *f, int64_t i, int64_t j, float *record)
{
    frontier_set(f, FRONTIER_FIRST, i, j, record);
    for (int k = 0; k < f->tiles->n_carries; k++) {
        const struct frontier_carry *c = &f->carries[k];
        struct around a = around(f->tiles, k, i, j);
        struct taken t = take(f, c, &a);
        leave(f, c, &a, &t, NULL);
    }
}

void frontier_forward(void *arg, int index, const float *x, float *y)
{
    const struct frontier *f = arg;
    const struct frontier_carry *c = &f->carries[index];
    struct around a = around(f->tiles, index, f->i, f->j);
    struct view own = view_at(c, (float *)(uintptr_t)x, a.own[0], a.own[1]);
    struct view need = view_at(c, y, a.need[0], a.need[1]);
    struct taken t = take(f, c, &a);
    view_copy(&need, &own, f->threads);
    view_copy(&need, &t.top, f->threads);
    view_copy(&need, &t.left, f->threads);
    bands_take(f->bands, f->tiles->carries[index].map, &need);
    if (f->pass == FRONTIER_FIRST) {
        leave(f, c, &a, &t, &own);
        bands_give(f->bands, index, f->tiles->carries[index].map, &own);
    }
}

void frontier_backward(void *arg, int index, const float *dy, float *dx)
{
    const struct frontier *f = arg;
    const struct frontier_carry *c = &f->carries[index];
    struct around a = around(f->tiles, index, f->i, f->j);
    struct view own = view_at(c, dx, a.own[0], a.own[1]);
    struct view need = view_at(c, (float *)(uintptr_t)dy, a.need[0], a.need[1]);
    struct view strip = above(c, a.next[0], a.own[1]);
    struct view left = view_at(c, c->left, a.own[0], a.next[1]);
    struct view corner = view_at(c, c->corner, a.now[0], a.next[1]);
    struct taken t = taken_at(c, &a, f->scratch);
    bool whole = a.need[0].begin <= a.own[0].begin && a.need[0].end >= a.own[0].end &&
                 a.need[1].begin <= a.own[1].begin && a.need[1].end >= a.own[1].end;
    if (!whole)
        view_clear(&own, f->threads);
    view_copy(&own, &need, f->threads);
    view_add(&own, &strip, f->threads);
    view_add(&own, &left, f->threads);
    bands_take_back(f->bands, index, f->tiles->carries[index].map, &own);
    bands_give_back(f->bands, f->tiles->carries[index].map, &need);
    view_clear(&t.top, f->threads);
    view_add(&t.top, &need, f->threads);
    view_add(&t.top, &strip, f->threads);
    view_add(&t.top, &corner, f->threads);
    view_clear(&t.left, f->threads);
    view_add(&t.left, &need, f->threads);
    view_add(&t.left, &left, f->threads);
    /* to the tiles above and at the left */
    corner = view_at(c, c->corner, a.now[0], a.now[1]);
    strip = above(c, a.now[0], a.own[1]);
    left = view_at(c, c->left, a.own[0], a.now[1]);
    view_copy(&corner, &t.top, f->threads);
    view_copy(&strip, &t.top, f->threads);
    view_copy(&left, &t.left, f->threads);
}

bool frontier_is_still(const struct frontier *f, int64_t i, int64_t j)
{
    for (int k = 0; k < f->tiles->n_carries; k++) {
        const struct frontier_carry *c = &f->carries[k];
        struct around a = around(f->tiles, k, i, j);
        struct view strip = above(c, a.next[0], a.own[1]);
        struct view left = view_at(c, c->left, a.own[0], a.next[1]);
        struct view corner = view_at(c, c->corner, a.now[0], a.next[1]);
        if (!view_is_zero(&strip) || !view_is_zero(&left) || !view_is_zero(&corner) ||
            (i == 0 && !bands_are_still(f->bands, f->tiles->carries[k].map, a.own[1].begin,
                                        a.own[1].end - a.own[1].begin)))
            return false;
    }
    return true;
}

void frontier_skip(struct frontier *f, int64_t i, int64_t j)
{
    for (int k = 0; k < f->tiles->n_carries; k++) {
        const struct frontier_carry *c = &f->carries[k];
        struct around a = around(f->tiles, k, i, j);
        struct view strip = above(c, a.now[0], a.own[1]);
        struct view left = view_at(c, c->left, a.own[0], a.now[1]);
        struct view corner = view_at(c, c->corner, a.now[0], a.now[1]);
        view_clear(&strip, f->threads);
        view_clear(&left, f->threads);
        view_clear(&corner, f->threads);
    }
}
