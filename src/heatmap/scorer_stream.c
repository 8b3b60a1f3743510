/* scorer_stream.c: dense blocks of any size, tile by tile; see scorer.h. */
#include <stdlib.h>
#include <string.h>
#include "base/divide.h"
#include "heatmap/scorer_parts.h"
#include "net/stream/work.h"

/* One pass: a model in one symmetry over a block. Rows and columns are those of the laid block. */
struct pass {
    const struct ensemble *ensemble;
    const struct ensemble_model *model;
    const struct scorer_block *block;
    const struct scorer_pixels *pixels;
    struct symmetry symmetry;
    int64_t input_w, input_h; /* px */
    int64_t columns, rows;    /* scores of the network */
    float *logits;            /* [height, width, classes] of the block */
};

static void lay(struct pass *p, int symmetry)
{
    const struct ensemble_model *m = p->model;
    struct symmetry s = scorer_symmetry(symmetry);
    int64_t w = p->block->width, h = p->block->height;
    p->symmetry = s;
    p->input_w = ensemble_input(p->ensemble, m, s.transpose ? h : w);
    p->input_h = ensemble_input(p->ensemble, m, s.transpose ? w : h);
    p->columns = (p->input_w - m->window) / m->dense_stride + 1;
    p->rows = (p->input_h - m->window) / m->dense_stride + 1;
}

/* --- what the plan asks for --- */

static bool read_tile(void *arg, int64_t y, int64_t x, int64_t h, int64_t w, float *out,
                      struct err *err)
{
    const struct pass *p = arg;
    const struct ensemble_model *m = p->model;
    struct symmetry s = p->symmetry;
    int64_t begin = p->ensemble->before - m->window / 2 - m->halo; /* in the region of all models */
    int64_t row = s.flip_y ? p->input_h - y - h : y, column = s.flip_x ? p->input_w - x - w : x;
    struct image image = { 0 };
    bool ok = s.transpose
                  ? p->pixels->read(p->pixels->arg, begin + row, begin + column, h, w, &image, err)
                  : p->pixels->read(p->pixels->arg, begin + column, begin + row, w, h, &image, err);
    if (ok)
        scorer_fill(m, &image, 0, 0, h, w, s, out);
    image_free(&image);
    return ok;
}

/* The cell of the block along one axis that score `at` of `n` belongs to; -1: none. */
static int64_t cell_at(const struct ensemble_model *m, int64_t at, int64_t n, bool flip,
                       int64_t cells)
{
    int64_t from = (flip ? n - 1 - at : at) - m->halo / m->dense_stride;
    bool picked = from >= 0 && from % m->pick == 0 && from / m->pick < cells;
    return picked ? from / m->pick : -1;
}

static bool take_scores(void *arg, int output, int64_t y, int64_t x, int64_t h, int64_t w,
                        const float *map, struct err *err)
{
    const struct pass *p = arg;
    const struct scorer_block *b = p->block;
    struct symmetry s = p->symmetry;
    int64_t classes = p->ensemble->n_classes;
    (void)output, (void)err;
    for (int64_t r = 0; r < h; r++) {
        int64_t i = cell_at(p->model, y + r, p->rows, s.flip_y, s.transpose ? b->width : b->height);
        for (int64_t c = 0; i >= 0 && c < w; c++) {
            int64_t j =
                cell_at(p->model, x + c, p->columns, s.flip_x, s.transpose ? b->height : b->width);
            int64_t cell = s.transpose ? j * b->width + i : i * b->width + j;
            for (int64_t k = 0; j >= 0 && k < classes; k++)
                p->logits[cell * classes + k] = map[(k * h + r) * w + c];
        }
    }
    return true;
}

/* Cells [begin, end). */
struct cells {
    int64_t begin, end;
};

/* The cells along one axis that scores [at, at + count) of n belong to. */
static struct cells cells_at(const struct ensemble_model *m, int64_t at, int64_t count, int64_t n,
                             bool flip, int64_t most)
{
    int64_t from = (flip ? n - at - count : at) - m->halo / m->dense_stride;
    struct cells c = { -floor_div(-from, m->pick), -floor_div(-(from + count), m->pick) };
    c.begin = c.begin > 0 ? c.begin : 0;
    c.end = c.end < most ? c.end : most;
    return c;
}

static bool any_wanted(void *arg, int output, int64_t y, int64_t x, int64_t h, int64_t w)
{
    const struct pass *p = arg;
    const struct scorer_block *b = p->block;
    struct symmetry s = p->symmetry;
    (void)output;
    struct cells i =
        cells_at(p->model, y, h, p->rows, s.flip_y, s.transpose ? b->width : b->height);
    struct cells j =
        cells_at(p->model, x, w, p->columns, s.flip_x, s.transpose ? b->height : b->width);
    struct cells rows = s.transpose ? j : i, columns = s.transpose ? i : j;
    for (int64_t r = rows.begin; columns.begin < columns.end && r < rows.end; r++)
        if (memchr(b->wanted + r * b->width + columns.begin, true,
                   (size_t)(columns.end - columns.begin)))
            return true;
    return false;
}

/* --- plans --- */

static bool dense_graph(const struct ensemble_model *m, int64_t width, int64_t height,
                        struct graph **out, struct err *err)
{
    struct dense_spec spec = { m->window, m->dense_stride, height, width };
    struct graph *sized = NULL;
    bool ok =
        transform_dense(m->graph, &spec, &sized, err) && transform_fuse(sized, NULL, 0, out, err);
    graph_free(sized);
    return ok;
}

static bool make_plan(const struct ensemble *e, const struct graph *graph,
                      const struct plan_stream *stream, void *arena, int threads, struct plan **out,
                      struct err *err)
{
    struct plan_options options = { .mode = PLAN_INFER,
                                    .threads = threads,
                                    .weights = e->weights,
                                    .weights_budget = (size_t)e->weights_budget,
                                    .arena = arena,
                                    .arena_room = arena ? (size_t)e->arena_bytes : 0,
                                    .direct = e->direct,
                                    .fast = e->fast,
                                    .stream = stream };
    return plan_new(graph, &options, out, err);
}

bool scorer_stream_measure(const struct ensemble *e, int64_t cells, int64_t tile, int64_t *bytes,
                           struct err *err)
{
    *bytes = 0;
    for (int i = 0; i < e->n; i++) {
        struct plan_source source = { NULL, read_tile };
        struct plan_sink sink = { NULL, take_scores };
        struct plan_stream stream = { .source = &source, .sink = &sink, .tile_px = tile };
        struct graph *graph = NULL;
        struct plan *plan = NULL;
        struct plan_streamed streamed = { 0 };
        int64_t input = ensemble_input(e, &e->models[i], cells);
        bool ok = dense_graph(&e->models[i], input, input, &graph, err) &&
                  make_plan(e, graph, &stream, NULL, 1, &plan, err) &&
                  plan_streamed(plan, &streamed);
        if (ok) {
            int64_t its = (int64_t)streamed.predicted_bytes - (int64_t)plan_memory(plan).shared;
            *bytes = its > *bytes ? its : *bytes;
        }
        plan_free(plan);
        graph_free(graph);
        if (!ok)
            return false;
    }
    return true;
}

bool scorer_stream_cost(const struct ensemble *e, const struct scorer_block *block, int64_t *cost,
                        struct err *err)
{
    double px = 0;
    for (int i = 0; i < e->n; i++) {
        struct pass p = { .ensemble = e, .model = &e->models[i], .block = block };
        struct plan_wish wish = { &p, any_wanted };
        struct plan_stream stream = { .tile_px = e->stream.tile, .wish = &wish };
        struct stream_work work;
        struct graph *graph = NULL;
        lay(&p, 0);
        bool ok = dense_graph(p.model, p.input_w, p.input_h, &graph, err) &&
                  stream_work(graph, &stream, &work, err);
        graph_free(graph);
        if (!ok)
            return false;
        px += work.share * (double)(p.input_w * p.input_h);
    }
    *cost = (int64_t)(px * (double)scorer_symmetries(e)) + 1;
    return true;
}

/* All symmetries of one model: those that are transposed come last and have a plan of their own. */
static bool run_model(struct scorer *scorer, struct pass *p, int threads, double *scratch,
                      float *scores, struct err *err)
{
    const struct ensemble *e = p->ensemble;
    struct plan_source source = { p, read_tile };
    struct plan_sink sink = { p, take_scores };
    struct plan_wish wish = { p, any_wanted };
    struct plan_stream stream = {
        .source = &source, .sink = &sink, .wish = &wish, .tile_px = e->stream.tile
    };
    struct graph *graph = NULL;
    struct plan *plan = NULL;
    bool ok = true;
    for (int i = 0; ok && i < scorer_symmetries(e); i++) {
        lay(p, i);
        if (i % 4 == 0) {
            plan_free(plan);
            graph_free(graph);
            plan = NULL, graph = NULL;
            ok = dense_graph(p->model, p->input_w, p->input_h, &graph, err) &&
                 make_plan(e, graph, &stream, scorer_lend(scorer), threads, &plan, err);
        }
        ok = ok && plan_forward(plan, err) &&
             scorer_add(e, p->model, p->logits, p->block, scratch, scores, err);
    }
    plan_free(plan);
    graph_free(graph);
    return ok;
}

bool scorer_stream(struct scorer *scorer, const struct scorer_pixels *pixels,
                   const struct scorer_block *block, int threads, float *scores, struct err *err)
{
    const struct ensemble *e = scorer_ensemble(scorer);
    size_t floats = (size_t)(block->width * block->height * e->n_classes);
    float *logits = malloc(floats * sizeof *logits);
    double *scratch = malloc((size_t)e->n_classes * sizeof *scratch);
    bool ok = (logits && scratch) || err_memory(err, "the scores of a block");
    memset(scores, 0, floats * sizeof *scores);
    for (int i = 0; ok && i < e->n; i++) {
        struct pass p = { .ensemble = e,
                          .model = &e->models[i],
                          .block = block,
                          .pixels = pixels,
                          .logits = logits };
        ok = run_model(scorer, &p, threads, scratch, scores, err);
    }
    ok = ok && scorer_finish(e, block, scores, err);
    free(logits);
    free(scratch);
    return ok;
}
