/* pass.c: the passes of a streamed plan: forward over all tiles, through the poolings and the tail;
 * backward through the tail and over the tiles in the opposite order, each of which is first run
 * forward again from its record. */
#include <string.h>
#include "net/stream/skip.h"
#include "net/stream/stream.h"

/* Gradients of weights are summed as floats over tiles of so many pixels, and then as doubles. */
#define SUMMED_PX (1 << 22)

/* A tile of the image. */
struct tile {
    int64_t i, j, n; /* row, column, number */
    struct plan *plan;
};

static struct tile tile_at(const struct stream *s, int64_t n)
{
    const struct stream_axis *rows = &s->tiles.axes[0], *columns = &s->tiles.axes[1];
    struct tile t = { n / columns->tiles, n % columns->tiles, n, NULL };
    t.plan = s->plans[rows->kinds[t.i] * columns->n_kinds + columns->kinds[t.j]];
    return t;
}

/* --- rows of tiles, for the bands above and below --- */

static bool is_end_of_row(const struct stream *s, const struct tile *t, bool right)
{
    return t->j == (right ? s->tiles.axes[1].tiles - 1 : 0);
}

static bool enter_tile(struct stream *s, const struct tile *t, bool back, struct err *err)
{
    return !is_end_of_row(s, t, back) || bands_enter(&s->borders, t->i, err);
}

static bool leave_tile(struct stream *s, const struct tile *t, bool back, struct err *err)
{
    return bands_tile(&s->borders, err) &&
           (!is_end_of_row(s, t, !back) || bands_leave(&s->borders, t->i, err));
}

/* --- pixels --- */

static void begin_pixels(struct stream *s, bool back)
{
    int64_t n = stream_tiles(s), read = 0;
    for (int64_t k = 0; s->ahead && k < n; k++) {
        struct tile t = tile_at(s, back ? n - 1 - k : k);
        struct stream_region r = tiles_region(&s->tiles, 0, t.i, t.j);
        if (!s->needed || s->needed[t.n])
            s->parts[read++] = (struct ahead_part){ r.y, r.x, r.h, r.w };
    }
    if (s->ahead)
        ahead_begin(s->ahead, s->parts, read);
}

/* The source is not read outside a pass: its owner may close it. */
static void end_pixels(struct stream *s)
{
    if (s->ahead)
        ahead_begin(s->ahead, s->parts, 0);
}

static void skip_pixels(struct stream *s)
{
    if (s->ahead)
        ahead_skip(s->ahead);
}

/* Part of a [C, height, width] map, or into it. */
static void cut_out(const struct shape *shape, const float *map, const struct stream_region *r,
                    float *out)
{
    for (int64_t c = 0; c < shape->dim[1]; c++)
        for (int64_t y = 0; y < r->h; y++)
            memcpy(out + (c * r->h + y) * r->w,
                   map + (c * shape->dim[2] + r->y + y) * shape->dim[3] + r->x,
                   (size_t)r->w * sizeof *out);
}

static void put_in(const struct shape *shape, float *map, const struct stream_region *r,
                   const float *part)
{
    for (int64_t c = 0; c < shape->dim[1]; c++)
        for (int64_t y = 0; y < r->h; y++)
            memcpy(map + (c * shape->dim[2] + r->y + y) * shape->dim[3] + r->x,
                   part + (c * r->h + y) * r->w, (size_t)r->w * sizeof *map);
}

static bool take_pixels(struct stream *s, const struct tile *t, struct err *err)
{
    const struct shape *image = graph_shape(s->body.graph, s->body.maps[0]);
    struct stream_region r = tiles_region(&s->tiles, 0, t->i, t->j);
    float *to = plan_input(t->plan, 0);
    const float *pixels;
    if (!s->ahead) {
        cut_out(image, s->image, &r, to);
        return true;
    }
    if (!ahead_next(s->ahead, &pixels, err))
        return false;
    memcpy(to, pixels, (size_t)(image->dim[1] * r.h * r.w) * sizeof *to);
    return true;
}

/* --- forward --- */

static struct stream_region end_region(const struct stream *s, const struct tile *t, int end)
{
    return tiles_region(&s->tiles, s->body.ends[end], t->i, t->j);
}

/* The ends of the body that a pooling reads. */
#define MOST_INPUTS 8

static int pooling_ends(const struct stream *s, int pooling, int ends[MOST_INPUTS])
{
    const struct node *node = &s->body.graph->nodes[s->body.poolings[pooling]];
    for (int k = 0; k < node->n_inputs && k < MOST_INPUTS; k++)
        ends[k] = body_end(&s->body, s->body.map_of[node->inputs[k]]);
    return node->n_inputs;
}

static void pool_tile(struct stream *s, const struct tile *t)
{
    for (int p = 0; p < s->body.n_poolings; p++) {
        int ends[MOST_INPUTS], n = pooling_ends(s, p, ends);
        const float *inputs[MOST_INPUTS];
        struct stream_region region = end_region(s, t, ends[0]);
        for (int k = 0; k < n; k++)
            inputs[k] = plan_output(t->plan, ends[k]);
        reduction_add(s->reductions[p], &region, inputs);
    }
}

static bool give_maps(struct stream *s, const struct tile *t, struct err *err)
{
    const struct graph *graph = s->body.graph;
    const struct plan_sink *sink = s->settings.sink;
    for (int o = 0; o < graph->n_outputs; o++) {
        const struct stream_output *output = &s->outputs[o];
        if (output->end < 0)
            continue;
        struct stream_region r = end_region(s, t, output->end);
        const float *part = plan_output(t->plan, output->end);
        if (!sink)
            put_in(graph_shape(graph, graph->outputs[o].value), output->map, &r, part);
        else if (!sink->write(sink->arg, o, r.y, r.x, r.h, r.w, part, err))
            return false;
    }
    return true;
}

static bool run_forward(struct stream *s, const struct tile *t, struct err *err)
{
    void *record = s->record;
    if (s->needed && !s->needed[t->n]) {
        frontier_leave_out(&s->frontier, t->i, t->j, record);
        s->tiles_left_out++;
        return true;
    }
    if (s->records && !records_put(s->records, t->n, &record, err))
        return false;
    if (!take_pixels(s, t, err))
        return false;
    frontier_set(&s->frontier, FRONTIER_FIRST, t->i, t->j, record);
    if (!plan_forward(t->plan, err))
        return false;
    pool_tile(s, t);
    return give_maps(s, t, err);
}

static bool run_tail(struct stream *s, struct err *err)
{
    for (int p = 0; p < s->body.n_poolings; p++)
        if (!reduction_finish(s->reductions[p], s->bands, s->tail ? plan_input(s->tail, p) : NULL,
                              err))
            return false;
    return !s->tail || plan_forward(s->tail, err);
}

bool stream_forward(struct plan *plan, struct err *err)
{
    struct stream *s = stream_of(plan);
    int64_t n = stream_tiles(s);
    bool ok = true;
    s->last_is_ready = false;
    for (int k = 0; ok && s->weights && stream_trains(s) && k < stream_kinds(s); k++)
        ok = plan_refresh(s->plans[k], err); /* for all tiles of the passes */
    for (int p = 0; p < s->body.n_poolings; p++)
        reduction_begin(s->reductions[p]);
    s->tiles_left_out = 0;
    ok = ok && (!s->needed || skip_find(&s->tiles, s->settings.wish, s->needed, err));
    begin_pixels(s, false);
    ok = ok && bands_begin(&s->borders, false, err);
    for (int64_t k = 0; ok && k < n; k++) {
        struct tile t = tile_at(s, k);
        ok = enter_tile(s, &t, false, err) && run_forward(s, &t, err) &&
             leave_tile(s, &t, false, err);
    }
    end_pixels(s);
    ok = ok && bands_end(&s->borders, err);
    ok = ok && (!s->records || records_turn(s->records, err)) && run_tail(s, err);
    s->last_is_ready = ok && plan->mode != PLAN_INFER;
    return ok;
}

/* --- gradients of weights --- */

static void begin_sums(struct stream *s)
{
#pragma omp parallel for num_threads(s->options.threads) schedule(static)
    for (int64_t i = 0; i < s->n_gradients; i++)
        s->sums[i] = (double)s->gradients[i], s->gradients[i] = 0;
    s->unsummed_px = 0;
}

static void add_to_sums(struct stream *s)
{
#pragma omp parallel for num_threads(s->options.threads) schedule(static)
    for (int64_t i = 0; i < s->n_gradients; i++)
        s->sums[i] += (double)s->gradients[i], s->gradients[i] = 0;
    s->unsummed_px = 0;
}

static void end_sums(struct stream *s)
{
    add_to_sums(s);
#pragma omp parallel for num_threads(s->options.threads) schedule(static)
    for (int64_t i = 0; i < s->n_gradients; i++)
        s->gradients[i] = (float)s->sums[i];
    const struct graph *graph = s->body.graph;
    float *at = s->gradients;
    for (int32_t i = 0; s->hook && i < graph->n_values; i++)
        if (graph->values[i].kind == VALUE_PARAMETER) {
            int64_t count = shape_count(&graph->values[i].shape);
            s->hook(s->hook_arg, i, at, count);
            at += count;
        }
}

/* --- backward --- */

static bool run_tail_back(struct stream *s, struct err *err)
{
    if (s->tail && !plan_backward(s->tail, err))
        return false;
    for (int p = 0; p < s->body.n_poolings; p++) {
        if (!plan_activation_gradient(s->tail, s->body.tail->inputs[p].value, s->pooled[p], err))
            return false;
        reduction_set_gradient(s->reductions[p], s->pooled[p]);
    }
    /* All bands have the same tail: only the first one counts it. */
    if (s->bands && s->bands->rank > 0)
        memset(s->gradients, 0, (size_t)s->n_gradients * sizeof *s->gradients);
    return true;
}

static bool region_is_zero(const struct shape *shape, const float *map,
                           const struct stream_region *r)
{
    for (int64_t c = 0; c < shape->dim[1]; c++)
        for (int64_t y = 0; y < r->h; y++) {
            const float *row = map + (c * shape->dim[2] + r->y + y) * shape->dim[3] + r->x;
            for (int64_t x = 0; x < r->w; x++)
                if (row[x] != 0)
                    return false;
        }
    return true;
}

/* Whether no gradient comes to this tile, from the ends or from later tiles. */
static bool is_still(const struct stream *s, const struct tile *t)
{
    const struct graph *graph = s->body.graph;
    for (int p = 0; p < s->body.n_poolings; p++) {
        int ends[MOST_INPUTS];
        pooling_ends(s, p, ends);
        struct stream_region region = end_region(s, t, ends[0]);
        if (!reduction_is_still(s->reductions[p], &region))
            return false;
    }
    for (int o = 0; o < graph->n_outputs; o++)
        if (s->outputs[o].gradient) {
            struct stream_region r = end_region(s, t, s->outputs[o].end);
            if (!region_is_zero(graph_shape(graph, graph->outputs[o].value), s->outputs[o].gradient,
                                &r))
                return false;
        }
    return frontier_is_still(&s->frontier, t->i, t->j);
}

static void add_floats(float *to, const float *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

/* The gradient of an end from one of its readers: the first is written in place, others are added.
 */
static float *place_for(struct stream *s, const struct tile *t, int end, const int *readers)
{
    return readers[end] ? s->spare[end] : plan_output_gradient(t->plan, end);
}

static void note_gradient(struct stream *s, const struct tile *t, int end, int *readers)
{
    const struct shape *shape = graph_shape(s->body.graph, s->body.maps[s->body.ends[end]]);
    struct stream_region r = end_region(s, t, end);
    if (readers[end]++)
        add_floats(plan_output_gradient(t->plan, end), s->spare[end], shape->dim[1] * r.h * r.w);
}

static void pool_back(struct stream *s, const struct tile *t, int pooling, int *readers)
{
    int ends[MOST_INPUTS], n = pooling_ends(s, pooling, ends);
    const float *inputs[MOST_INPUTS];
    float *gradients[MOST_INPUTS];
    struct stream_region region = end_region(s, t, ends[0]);
    for (int k = 0; k < n; k++) {
        inputs[k] = plan_output(t->plan, ends[k]);
        gradients[k] = place_for(s, t, ends[k], readers);
    }
    reduction_gradient(s->reductions[pooling], &region, inputs, gradients);
    for (int k = 0; k < n; k++)
        note_gradient(s, t, ends[k], readers);
}

static void set_gradients(struct stream *s, const struct tile *t)
{
    const struct graph *graph = s->body.graph;
    int *readers = s->readers;
    memset(readers, 0, (size_t)s->body.n_ends * sizeof *readers);
    for (int p = 0; p < s->body.n_poolings; p++)
        pool_back(s, t, p, readers);
    for (int o = 0; o < graph->n_outputs; o++) {
        int end = s->outputs[o].end;
        if (!s->outputs[o].gradient)
            continue;
        struct stream_region r = end_region(s, t, end);
        cut_out(graph_shape(graph, graph->outputs[o].value), s->outputs[o].gradient, &r,
                place_for(s, t, end, readers));
        note_gradient(s, t, end, readers);
    }
    for (int e = 0; e < s->body.n_ends; e++)
        if (!readers[e]) { /* a map that went to a sink */
            const struct shape *shape = graph_shape(graph, s->body.maps[s->body.ends[e]]);
            struct stream_region r = end_region(s, t, e);
            memset(plan_output_gradient(t->plan, e), 0,
                   (size_t)(shape->dim[1] * r.h * r.w) * sizeof(float));
        }
}

static bool run_again(struct stream *s, const struct tile *t, struct err *err)
{
    const void *record;
    if (!records_get(s->records, t->n, &record, err) || !take_pixels(s, t, err))
        return false;
    frontier_set(&s->frontier, FRONTIER_AGAIN, t->i, t->j, (float *)(uintptr_t)record);
    return plan_forward(t->plan, err);
}

static bool run_back(struct stream *s, const struct tile *t, struct err *err)
{
    struct stream_region r = tiles_region(&s->tiles, 0, t->i, t->j);
    bool ready = s->last_is_ready && t->n == stream_tiles(s) - 1;
    if (is_still(s, t)) {
        frontier_skip(&s->frontier, t->i, t->j);
        skip_pixels(s);
        s->tiles_still++;
        return true;
    }
    if (ready)
        skip_pixels(s);
    else if (!run_again(s, t, err))
        return false;
    set_gradients(s, t);
    frontier_set(&s->frontier, FRONTIER_BACK, t->i, t->j, NULL);
    if (!plan_backward(t->plan, err))
        return false;
    s->unsummed_px += r.h * r.w;
    if (s->unsummed_px >= SUMMED_PX)
        add_to_sums(s);
    return true;
}

bool stream_backward(struct plan *plan, struct err *err)
{
    struct stream *s = stream_of(plan);
    bool ok = true;
    begin_sums(s);
    if (!run_tail_back(s, err))
        return false;
    frontier_clear(&s->frontier);
    begin_pixels(s, true);
    s->tiles_still = 0;
    ok = bands_begin(&s->borders, true, err);
    for (int64_t k = stream_tiles(s) - 1; ok && k >= 0; k--) {
        struct tile t = tile_at(s, k);
        ok = enter_tile(s, &t, true, err) && run_back(s, &t, err) && leave_tile(s, &t, true, err);
        s->last_is_ready = false;
    }
    end_pixels(s);
    ok = ok && bands_end(&s->borders, err);
    if (ok)
        end_sums(s);
    return ok;
}
