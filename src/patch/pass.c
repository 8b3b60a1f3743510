/* pass.c: see pass.h. A pass consists of strips of columns, a strip of steps downwards; a step
 * loads the tiles under its squares and cuts them in batches. */
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
    int64_t ring_rows;       /* of the band: a step's, and where memory allows the next one's */
    int64_t *indices;        /* of the squares of the strip */
    struct band_rect *rects; /* [rects_room], of a step */
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

/* Squares indices[first .. end) of the strip, which are loaded together. */
struct step {
    int64_t first, end;
};

static int64_t top_of(const struct pass_state *state, struct step step)
{
    return state->pass->places[state->indices[step.first]].y;
}

static struct step step_from(const struct pass_state *state, int64_t first, int64_t n)
{
    const struct unit *places = state->pass->places;
    struct step step = { first, first };
    while (step.end < n && places[state->indices[step.end]].y - top_of(state, step) <= state->span)
        step.end++;
    return step;
}

/* Can the ring hold `next` while the rows of `step` are still there? */
static bool both_fit(const struct pass_state *state, struct step step, struct step next)
{
    int64_t bottom = state->pass->places[state->indices[next.end - 1]].y + state->pass->size;
    return bottom - top_of(state, step) <= state->ring_rows;
}

/* Starts decoding a step's tiles; rows from keep_from on stay. */
static bool load(struct pass_state *state, struct step step, int64_t keep_from, struct err *err)
{
    int64_t n = step.end - step.first;
    if (n > state->rects_room) {
        struct band_rect *more = realloc(state->rects, (size_t)n * sizeof *more);
        if (!more)
            return err_memory(err, "the positions of the patches");
        state->rects = more;
        state->rects_room = n;
    }
    for (int64_t i = 0; i < n; i++)
        state->rects[i] = rect_of(state->pass, state->indices[step.first + i]);
    return band_load_start(state->band, state->rects, n, keep_from, err);
}

/* While a step's squares are cut, the next step's tiles are decoded where the ring holds both. */
static bool run_steps(struct pass_state *state, int64_t n, struct err *err)
{
    struct step step = step_from(state, 0, n);
    bool ok = load(state, step, top_of(state, step), err);
    while (ok) {
        if (ctx_stopped(state->ctx))
            return err_stopped(err);
        ok = band_load_join(state->band, err);
        struct step next = step_from(state, step.end, n);
        bool last = next.first == n, ahead = ok && !last && both_fit(state, step, next);
        if (ahead)
            ok = load(state, next, top_of(state, step), err);
        ok = ok && cut_batches(state, step.first, step.end - step.first, err);
        if (ok && last)
            return true;
        if (ok && !ahead)
            ok = load(state, next, top_of(state, next), err);
        step = next;
    }
    return false;
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
    bool ok = band_open(pass->raster, x0, x1 - 1 + pass->size, state->ring_rows, state->ctx,
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
static void lay_strips(struct pass_state *state, int64_t width)
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
    int64_t least = pass->size + state->span;
    state->ring_rows = 2 * least;
    while (state->ring_rows > least && band_bytes(pass->raster, state->strip_width + pass->size,
                                                  state->ring_rows) > pass->band_bytes)
        state->ring_rows -= (pass->size + 1) / 2;
    state->ring_rows = state->ring_rows > least ? state->ring_rows : least;
}

bool pass_run(const struct pass *pass, const struct ctx *ctx, struct err *err)
{
    if (pass->n == 0)
        return true;
    struct pass_state state = { .pass = pass, .ctx = ctx };
    state.indices = malloc((size_t)pass->n * sizeof *state.indices);
    bool ok = state.indices || err_memory(err, "the positions of the patches");
    int64_t x0 = INT64_MAX, x1 = INT64_MIN;
    for (int64_t i = 0; i < pass->n; i++) {
        x0 = pass->places[i].x < x0 ? pass->places[i].x : x0;
        x1 = pass->places[i].x >= x1 ? pass->places[i].x + 1 : x1;
    }
    if (ok)
        lay_strips(&state, x1 - x0);
    for (int64_t x = x0; ok && x < x1; x += state.strip_width)
        ok = run_strip(&state, x, err);
    free(state.indices);
    free(state.rects);
    return ok;
}
