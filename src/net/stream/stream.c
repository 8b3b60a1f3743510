/* stream.c: an execution for images that are too large to be run whole: the body of the network
 * runs tile by tile, each cell of every map computed once a pass, and the tail behind its poolings
 * as an ordinary plan. Equal to the whole graph to rounding, at any size of tiles. See axis.h for
 * the arithmetic, frontier.h for what tiles hand over to each other, pass.c for how they run. */
#include "net/stream/stream.h"
#include <stdlib.h>
#include <string.h>
#include "net/plan/tape.h"

static void free_parts(struct stream *s)
{
    for (int p = 0; p < s->body.n_poolings; p++) {
        if (s->reductions)
            reduction_free(s->reductions[p]);
        if (s->pooled)
            free(s->pooled[p]);
    }
    for (int e = 0; s->spare && e < s->body.n_ends; e++)
        free(s->spare[e]);
    for (int o = 0; s->outputs && o < s->body.graph->n_outputs; o++)
        free(s->outputs[o].map), free(s->outputs[o].gradient);
    free(s->reductions), free(s->pooled), free(s->spare), free(s->outputs), free(s->readers);
}

static void stream_free(struct plan *plan)
{
    struct stream *s = stream_of(plan);
    plan_free(s->tail);
    for (int k = 0; s->plans && k < stream_kinds(s); k++)
        plan_free(s->plans[k]);
    if (!s->arena_lent)
        memory_return(s->arena, s->arena_bytes);
    ahead_free(s->ahead);
    records_free(s->records);
    free_parts(s);
    free(s->plans), free(s->parts), free(s->record), free(s->image), free(s->needed);
    free(s->sums);
    if (!s->gradients_lent)
        free(s->gradients);
    stream_forget_layout(s);
    body_free(&s->body);
    free(s);
}

/* --- the plans of tiles and what is around them --- */

static bool make_plans(struct stream *s, struct err *err)
{
    s->arena_lent = s->options.arena && s->options.arena_room >= s->arena_bytes;
    s->arena = s->arena_lent ? s->options.arena : memory_reserve(s->arena_bytes);
    if (!s->arena)
        return err_set(err, ERR_MEMORY, "out of memory: tiles need %zu MB", s->arena_bytes >> 20);
    s->plans = calloc((size_t)stream_kinds(s), sizeof(struct plan *));
    if (!s->plans)
        return err_memory(err, "tiles");
    struct plan_options options = stream_tile_options(s);
    for (int k = 0; k < stream_kinds(s); k++)
        if (!plan_new(s->graphs[k], &options, &s->plans[k], err))
            return false;
    return true;
}

static bool make_gradients(struct stream *s, struct err *err)
{
    if (!stream_trains(s))
        return true;
    s->n_gradients = graph_parameter_count(s->body.graph);
    s->gradients_lent = s->options.gradients != NULL;
    s->gradients = s->gradients_lent ? s->options.gradients
                                     : calloc((size_t)s->n_gradients + 1, sizeof *s->gradients);
    s->sums = calloc((size_t)s->n_gradients + 1, sizeof *s->sums);
    return (s->gradients && s->sums) || err_memory(err, "gradients");
}

static bool make_records(struct stream *s, struct err *err)
{
    struct records_options options = { .n = stream_tiles(s),
                                       .bytes = s->record_bytes,
                                       .memory = s->records_memory,
                                       .folder = s->settings.spill,
                                       .bf16 = s->settings.bf16,
                                       .group_bytes = s->settings.spilling == SPILLING_TILES,
                                       .wait = s->settings.spilling != SPILLING_AHEAD };
    if (stream_trains(s))
        return records_new(&options, &s->records, err);
    s->record = malloc(stream_record_most(s) + 1);
    return s->record || err_memory(err, "strips");
}

static bool make_input(struct stream *s, struct err *err)
{
    const struct shape *image = graph_shape(s->body.graph, s->body.maps[0]);
    if (!s->settings.source) {
        s->image = calloc((size_t)shape_count(image), sizeof *s->image);
        return s->image || err_memory(err, "the image");
    }
    s->parts = calloc((size_t)stream_tiles(s), sizeof *s->parts);
    if (!s->parts)
        return err_memory(err, "tiles");
    return ahead_new(s->settings.source, image->dim[1], image->dim[1] * stream_most_cells(s, 0),
                     &s->ahead, err);
}

static bool make_needed(struct stream *s, struct err *err)
{
    if (!s->settings.wish)
        return true;
    if (stream_trains(s) || s->bands || s->body.tail)
        return err_set(err, ERR_USAGE,
                       "%s: tiles are left out only in one process, in inference, and where all "
                       "outputs are maps",
                       s->body.graph->name);
    s->needed = calloc((size_t)stream_tiles(s), sizeof *s->needed);
    return s->needed || err_memory(err, "tiles");
}

static bool make_outputs(struct stream *s, struct err *err)
{
    const struct graph *graph = s->body.graph;
    int tail = 0;
    s->outputs = calloc((size_t)graph->n_outputs, sizeof *s->outputs);
    if (!s->outputs)
        return err_memory(err, "outputs");
    for (int o = 0; o < graph->n_outputs; o++) {
        value_id value = graph->outputs[o].value;
        struct stream_output *output = &s->outputs[o];
        bool map = s->body.parts[value] == PART_MAP, whole = map && !s->settings.sink;
        size_t floats = (size_t)shape_count(graph_shape(graph, value));
        *output = (struct stream_output){
            .end = map ? body_end(&s->body, s->body.map_of[value]) : -1,
            .tail = map ? -1 : tail++,
            .map = whole ? calloc(floats, sizeof *output->map) : NULL,
            .gradient = whole && stream_trains(s) ? calloc(floats, sizeof *output->gradient) : NULL,
        };
        if (whole && (!output->map || (stream_trains(s) && !output->gradient)))
            return err_memory(err, graph->outputs[o].name);
    }
    return true;
}

static bool make_ends(struct stream *s, struct err *err)
{
    const struct graph *graph = s->body.graph;
    size_t poolings = (size_t)s->body.n_poolings + 1, ends = (size_t)s->body.n_ends;
    s->reductions = calloc(poolings, sizeof(struct reduction *));
    s->pooled = calloc(poolings, sizeof(float *));
    s->spare = calloc(ends, sizeof(float *));
    s->readers = calloc(ends, sizeof *s->readers);
    if (!s->reductions || !s->pooled || !s->spare || !s->readers)
        return err_memory(err, "poolings");
    for (int p = 0; p < s->body.n_poolings; p++) {
        const struct node *node = &graph->nodes[s->body.poolings[p]];
        if (!reduction_new(graph, node, s->options.threads, &s->reductions[p], err))
            return false;
        s->pooled[p] = calloc((size_t)shape_count(graph_shape(graph, node->output)), sizeof(float));
        if (!s->pooled[p])
            return err_memory(err, "poolings");
    }
    for (int e = 0; e < s->body.n_ends; e++) {
        size_t bytes = stream_spare_bytes(s, e);
        s->spare[e] = bytes ? calloc(1, bytes) : NULL;
        if (bytes && !s->spare[e])
            return err_memory(err, "gradients");
    }
    return true;
}

static bool make_tail(struct stream *s, struct err *err)
{
    struct plan_options options = stream_tail_options(s);
    return !s->body.tail || plan_new(s->body.tail, &options, &s->tail, err);
}

static bool check_options(const struct graph *graph, const struct plan_options *options,
                          struct err *err)
{
    if (options->n_keep > 0)
        return err_set(err, ERR_USAGE, "%s: a streamed plan keeps no values", graph->name);
    if (options->input_gradients)
        return err_set(err, ERR_USAGE, "%s: a streamed plan has no gradient of the image",
                       graph->name);
    if (options->per_sample)
        return err_set(err, ERR_USAGE, "%s: a streamed plan has one sample", graph->name);
    if (options->stream->tile_px < 0)
        return err_set(err, ERR_USAGE, "%s: the side of a tile cannot be %lld px", graph->name,
                       (long long)options->stream->tile_px);
    return true;
}

static bool stream_make(const struct graph *graph, const struct plan_options *options,
                        struct plan **out, struct err *err)
{
    if (!options->stream)
        return true;
    if (!check_options(graph, options, err))
        return false;
    struct stream *s = calloc(1, sizeof *s);
    if (!s)
        return err_memory(err, graph->name);
    const struct plan_peers *bands = options->peers[PEERS_BANDS];
    s->options = *options, s->settings = *options->stream;
    s->bands = bands && bands->size > 1 ? bands : NULL;
    s->carry = (struct plan_carry){ &s->frontier, frontier_forward, frontier_backward };
    bool ok = body_new(graph, options, &s->body, err) && make_gradients(s, err) &&
              stream_choose_layout(s, err) && make_plans(s, err) &&
              frontier_allocate(&s->frontier, err) && bands_allocate(&s->borders, err) &&
              make_records(s, err) && make_input(s, err) && make_needed(s, err) &&
              make_outputs(s, err) && make_ends(s, err) && make_tail(s, err);
    if (!bands_meet(&s->borders, s->bands, ok, err)) {
        stream_free(&s->plan);
        return false;
    }
    s->frontier.bands = &s->borders;
    *out = &s->plan;
    return true;
}

/* --- access --- */

static const struct stream *of_const(const struct plan *plan)
{
    return (const struct stream *)plan;
}

static float *stream_input(struct plan *plan, int i)
{
    (void)i;
    return stream_of(plan)->image;
}

static const float *stream_output(const struct plan *plan, int i)
{
    const struct stream_output *output = &of_const(plan)->outputs[i];
    return output->end >= 0 ? output->map : plan_output(of_const(plan)->tail, output->tail);
}

static float *stream_output_gradient(struct plan *plan, int i)
{
    const struct stream_output *output = &stream_of(plan)->outputs[i];
    return output->end >= 0 ? output->gradient
                            : plan_output_gradient(stream_of(plan)->tail, output->tail);
}

static float *stream_gradients(struct plan *plan, int64_t *count)
{
    *count = stream_of(plan)->n_gradients;
    return stream_of(plan)->gradients;
}

static float *stream_parameter_gradient(struct plan *plan, value_id parameter)
{
    const struct graph *graph = stream_of(plan)->body.graph;
    int64_t offset = 0;
    if (graph->values[parameter].kind != VALUE_PARAMETER)
        return NULL;
    for (value_id i = 0; i < parameter; i++)
        if (graph->values[i].kind == VALUE_PARAMETER)
            offset += shape_count(&graph->values[i].shape);
    return stream_of(plan)->gradients + offset;
}

static void stream_on_gradient(struct plan *plan, plan_gradient_hook hook, void *arg)
{
    stream_of(plan)->hook = hook, stream_of(plan)->hook_arg = arg;
}

static void stream_set_random(struct plan *plan, struct plan_random random)
{
    if (stream_of(plan)->tail)
        plan_set_random(stream_of(plan)->tail, random.seed, random.first_sample);
}

static bool stream_refresh(struct plan *plan, struct err *err)
{
    struct stream *s = stream_of(plan);
    for (int k = 0; k < stream_kinds(s); k++)
        if (!plan_refresh(s->plans[k], err))
            return false;
    return !s->tail || plan_refresh(s->tail, err);
}

static struct plan_memory stream_memory(const struct plan *plan)
{
    const struct stream *s = of_const(plan);
    struct plan_memory sum = { .arena = s->arena_bytes + frontier_bytes(&s->frontier) +
                                        bands_bytes(&s->borders) };
    if (s->records)
        sum.arena += records_stats(s->records).memory;
    for (int k = 0; k < stream_kinds(s); k++) {
        struct plan_memory m = plan_memory(s->plans[k]);
        sum.unshared = m.unshared > sum.unshared ? m.unshared : sum.unshared;
        sum.shared = m.shared > sum.shared ? m.shared : sum.shared;
        sum.winograd = m.winograd > sum.winograd ? m.winograd : sum.winograd;
    }
    if (s->tail)
        plan_memory_add(&sum, s->tail);
    sum.lent = s->arena_lent;
    sum.gradients = (size_t)s->n_gradients * (sizeof(float) + sizeof(double));
    sum.gradients_lent = s->gradients_lent;
    return sum;
}

static bool stream_streamed(const struct plan *plan, struct plan_streamed *out)
{
    const struct stream *s = of_const(plan);
    *out = (struct plan_streamed){ .tile_px = s->tiles.axes[0].tile,
                                   .tiles_down = s->tiles.axes[0].tiles,
                                   .tiles_across = s->tiles.axes[1].tiles,
                                   .tiles_still = s->tiles_still,
                                   .tiles_left_out = s->tiles_left_out,
                                   .predicted_bytes = s->predicted_bytes };
    if (s->records) {
        struct records_stats stats = records_stats(s->records);
        out->strip_bytes = stats.bytes, out->strips_spilled = stats.spilled;
        out->waited_strips_s = stats.waited_s, out->strip_io_s = stats.written_s + stats.read_s;
    }
    if (s->ahead)
        out->waited_source_s = ahead_waited_s(s->ahead);
    return true;
}

/* The plan of the most frequent kind of tiles. */
static const struct plan *middle(const struct stream *s)
{
    const struct stream_axis *rows = &s->tiles.axes[0], *columns = &s->tiles.axes[1];
    return s->plans[rows->kinds[rows->tiles / 2] * columns->n_kinds +
                    columns->kinds[columns->tiles / 2]];
}

static int stream_steps(const struct plan *plan)
{
    const struct stream *s = of_const(plan);
    return plan_steps(middle(s)) + (s->tail ? plan_steps(s->tail) : 0);
}

static void stream_print(const struct plan *plan, FILE *stream)
{
    const struct stream *s = of_const(plan);
    fprintf(stream, "%lld x %lld tiles of %lld px, of %d kinds; most of them:\n",
            (long long)s->tiles.axes[0].tiles, (long long)s->tiles.axes[1].tiles,
            (long long)s->tiles.axes[0].tile, stream_kinds(s));
    plan_print(middle(s), stream);
    if (s->tail) {
        fprintf(stream, "behind the poolings:\n");
        plan_print(s->tail, stream);
    }
}

const struct plan_ops plan_stream = {
    .name = "stream",
    .make = stream_make,
    .free = stream_free,
    .input = stream_input,
    .output = stream_output,
    .forward = stream_forward,
    .memory = stream_memory,
    .steps = stream_steps,
    .print = stream_print,
    .refresh = stream_refresh,
    .set_random = stream_set_random,
    .backward = stream_backward,
    .output_gradient = stream_output_gradient,
    .gradients = stream_gradients,
    .parameter_gradient = stream_parameter_gradient,
    .on_gradient = stream_on_gradient,
    .streamed = stream_streamed,
};
