/* pass.c: see pass.h. A pass is strips of columns; a strip is steps down; a step loads the tiles
 * under its squares and cuts them in batches. */
#include "patch/pass.h"

#include <stdlib.h>
#include "base/pool.h"
#include "slide/band.h"

#define SQUARES_PER_WORKER 16 /* in a step, so that all threads have work between two waits */
#define MAX_STEP_SIZES 4      /* rows of a step, in units of the square's height */

struct pass_state {
    const struct pass *pass;
    const struct ctx *ctx;
    struct band *band;
    int64_t strip_x0, strip_width; /* of the squares' left edges */
    int64_t span;                  /* rows between the first and the last square of a step */
    int64_t *indices;              /* of the squares of the strip */
    struct band_rect *rects;       /* [rects_room], of a step */
    int64_t rects_room;
    int64_t batch_first;
};

static struct band_rect rect_of(const struct pass *pass, int64_t index)
{
    return (struct band_rect){ pass->places[index].x, pass->places[index].y, pass->size,
                               pass->size };
}

static bool cut_piece(void *arg, int64_t k, int worker, struct err *err)
{
    (void)err;
    const struct pass_state *state = arg;
    const struct pass *pass = state->pass;
    int64_t index = state->indices[state->batch_first + k];
    uint8_t *px = pass->where(pass->arg, k, worker);
    band_copy(state->band, rect_of(pass, index), px, 3 * pass->size);
    pass->cut(pass->arg, index, px);
    return true;
}

static bool cut_batches(struct pass_state *state, int64_t first, int64_t n, struct err *err)
{
    const struct pass *pass = state->pass;
    for (int64_t done = 0; done < n; done += pass->batch) {
        int64_t count = n - done < pass->batch ? n - done : pass->batch;
        state->batch_first = first + done;
        if (pass->begin && !pass->begin(pass->arg, state->indices + state->batch_first, count, err))
            return false;
        if (!pool_for(state->ctx->pool, count, cut_piece, state, state->ctx->stop, err))
            return false;
        if (pass->end && !pass->end(pass->arg, count, err))
            return false;
    }
    return true;
}

/* Squares indices[first .. first + n): loaded, then cut. */
static bool run_step(struct pass_state *state, int64_t first, int64_t n, struct err *err)
{
    const struct pass *pass = state->pass;
    if (n > state->rects_room) {
        struct band_rect *more = realloc(state->rects, (size_t)n * sizeof *more);
        if (!more)
            return err_memory(err, "the places of the patches");
        state->rects = more;
        state->rects_room = n;
    }
    for (int64_t i = 0; i < n; i++)
        state->rects[i] = rect_of(pass, state->indices[first + i]);
    int64_t top = pass->places[state->indices[first]].y;
    return band_load_start(state->band, state->rects, n, top, err) &&
           band_load_join(state->band, err) && cut_batches(state, first, n, err);
}

static bool run_steps(struct pass_state *state, int64_t n, struct err *err)
{
    const struct unit *places = state->pass->places;
    for (int64_t first = 0, end; first < n; first = end) {
        if (ctx_stopped(state->ctx))
            return err_stopped(err);
        int64_t top = places[state->indices[first]].y;
        for (end = first + 1; end < n && places[state->indices[end]].y - top <= state->span;)
            end++;
        if (!run_step(state, first, end - first, err))
            return false;
    }
    return true;
}

static bool run_strip(struct pass_state *state, int64_t x0, struct err *err)
{
    const struct pass *pass = state->pass;
    int64_t n = 0, x1 = x0 + state->strip_width;
    for (int64_t i = 0; i < pass->n; i++)
        if (pass->places[i].x >= x0 && pass->places[i].x < x1)
            state->indices[n++] = i;
    if (n == 0)
        return true;
    bool ok = band_open(pass->raster, x0, x1 - 1 + pass->size, pass->size + state->span, state->ctx,
                        &state->band, err) &&
              run_steps(state, n, err);
    band_close(state->band);
    state->band = NULL;
    return ok;
}

static int64_t rows_of(const struct pass *pass)
{
    int64_t rows = 1;
    for (int64_t i = 1; i < pass->n; i++)
        rows += pass->places[i].y != pass->places[i - 1].y;
    return rows;
}

/* Chooses the width of strips and the height of steps under the limit of memory. */
static void plan_strips(struct pass_state *state, int64_t width)
{
    const struct pass *pass = state->pass;
    state->strip_width = width;
    while (state->strip_width > pass->size &&
           band_bytes(pass->raster, state->strip_width + pass->size, pass->size) > pass->band_bytes)
        state->strip_width = (state->strip_width + 1) / 2;
    int64_t wanted = SQUARES_PER_WORKER * (int64_t)pool_workers(state->ctx->pool);
    int64_t strips = (width + state->strip_width - 1) / state->strip_width;
    int64_t per_row = pass->n / (rows_of(pass) * strips);
    int64_t rows = wanted / (per_row > 0 ? per_row : 1);
    rows = rows > MAX_STEP_SIZES ? MAX_STEP_SIZES : rows < 1 ? 1 : rows;
    state->span = (rows - 1) * pass->size;
    while (state->span > 0 && band_bytes(pass->raster, state->strip_width + pass->size,
                                         pass->size + state->span) > pass->band_bytes)
        state->span -= pass->size;
}

bool pass_run(const struct pass *pass, const struct ctx *ctx, struct err *err)
{
    if (pass->n == 0)
        return true;
    struct pass_state state = { .pass = pass, .ctx = ctx };
    state.indices = malloc((size_t)pass->n * sizeof *state.indices);
    bool ok = state.indices || err_memory(err, "the places of the patches");
    int64_t x0 = INT64_MAX, x1 = INT64_MIN;
    for (int64_t i = 0; i < pass->n; i++) {
        x0 = pass->places[i].x < x0 ? pass->places[i].x : x0;
        x1 = pass->places[i].x >= x1 ? pass->places[i].x + 1 : x1;
    }
    if (ok)
        plan_strips(&state, x1 - x0);
    for (int64_t x = x0; ok && x < x1; x += state.strip_width)
        ok = run_strip(&state, x, err);
    free(state.indices);
    free(state.rects);
    return ok;
}
