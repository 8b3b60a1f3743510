/* view.c: see view.h. */
#include "net/stream/view.h"
#include "base/divide.h"
#include <string.h>

struct view view_of(float *at, int64_t y, int64_t x, int64_t h, int64_t w, int64_t outer,
                    int64_t inner)
{
    return (struct view){ .at = at,
                          .y = y,
                          .x = x,
                          .h = h,
                          .w = w,
                          .row = w * inner,
                          .plane = h * w * inner,
                          .outer = outer,
                          .inner = inner };
}

int64_t view_count(const struct view *view)
{
    return view->h > 0 && view->w > 0 ? view->outer * view->h * view->w * view->inner : 0;
}

/* The cells that both have, as a part of `a`. */
static struct view overlap(const struct view *a, const struct view *b)
{
    struct view both = *a;
    both.y = larger_of(a->y, b->y), both.x = larger_of(a->x, b->x);
    both.h = smaller_of(a->y + a->h, b->y + b->h) - both.y;
    both.w = smaller_of(a->x + a->w, b->x + b->w) - both.x;
    if (both.h > 0 && both.w > 0)
        both.at = a->at + (both.y - a->y) * a->row + (both.x - a->x) * a->inner;
    return both;
}

static void add_floats(float *to, const float *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

/* Below this, threads cost more than they save. */
#define FEW_FLOATS 16384

static void move(const struct view *to, const struct view *from, bool add, int threads)
{
    const struct view a = overlap(to, from), b = overlap(from, to);
    int64_t rows = a.outer * a.h, floats = a.w * a.inner;
    if (a.h <= 0 || a.w <= 0)
        return;
    if (rows * floats < FEW_FLOATS)
        threads = 1;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t i = 0; i < rows; i++) {
        float *at = a.at + i / a.h * a.plane + i % a.h * a.row;
        const float *source = b.at + i / b.h * b.plane + i % b.h * b.row;
        if (add)
            add_floats(at, source, floats);
        else
            memcpy(at, source, (size_t)floats * sizeof *at);
    }
}

void view_copy(const struct view *to, const struct view *from, int threads)
{
    move(to, from, false, threads);
}

void view_add(const struct view *to, const struct view *from, int threads)
{
    move(to, from, true, threads);
}

void view_clear(const struct view *view, int threads)
{
    if (view_count(view) < FEW_FLOATS)
        threads = 1;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t i = 0; i < view->outer * larger_of(view->h, 0); i++)
        memset(view->at + i / view->h * view->plane + i % view->h * view->row, 0,
               (size_t)(larger_of(view->w, 0) * view->inner) * sizeof *view->at);
}

bool view_is_zero(const struct view *view)
{
    for (int64_t i = 0; i < view->outer * larger_of(view->h, 0); i++) {
        const float *at = view->at + i / view->h * view->plane + i % view->h * view->row;
        for (int64_t k = 0; k < view->w * view->inner; k++)
            if (at[k] != 0)
                return false;
    }
    return true;
}

struct view view_columns(const struct view *view, int64_t x, int64_t w)
{
    struct view part = *view;
    part.at += (x - view->x) * view->inner;
    part.x = x, part.w = w;
    return part;
}
