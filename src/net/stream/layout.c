/* layout.c: how a network is cut into tiles, and the memory that this takes, found before any of it
 * is allocated, so that the size of the tiles can be chosen by a budget. */
#include <stdlib.h>
#include <string.h>
#include "net/plan/tape.h"
#include "net/stream/budget.h"
#include "net/stream/divide.h"
#include "net/stream/stream.h"
#include "net/stream/tally.h"

/* The rows of the image that this process computes. */
static bool find_band(const struct stream *s, struct span *rows, struct err *err)
{
    *rows = (struct span){ 0, graph_shape(s->body.graph, s->body.maps[0])->dim[2] };
    if (!s->bands)
        return true;
    int n = s->bands->size, own = s->bands->rank;
    int64_t *all = calloc((size_t)n + 1, sizeof *all);
    if (!all)
        return err_memory(err, "bands");
    if (s->settings.band_rows)
        memcpy(all, s->settings.band_rows, ((size_t)n + 1) * sizeof *all);
    bool ok = s->settings.band_rows ? bands_check(&s->body, all, n, err)
                                    : bands_divide_evenly(&s->body, n, all, err);
    *rows = (struct span){ all[own], all[own + 1] };
    free(all);
    return ok;
}

static bool make_tiles(struct stream *s, int64_t tile_px, struct err *err)
{
    struct tiles_spec spec = { .tile_px = tile_px };
    if (!find_band(s, &spec.rows, err) || !tiles_new(&s->body, &spec, &s->tiles, err))
        return false;
    int columns = s->tiles.axes[1].n_kinds;
    s->graphs = calloc((size_t)stream_kinds(s), sizeof(struct graph *));
    if (!s->graphs)
        return err_memory(err, "tiles");
    for (int k = 0; k < stream_kinds(s); k++)
        if (!tiles_graph(&s->tiles, k / columns, k % columns, &s->graphs[k], err))
            return false;
    return true;
}

struct plan_options stream_tile_options(const struct stream *s)
{
    struct plan_options options = {
        .mode = stream_trains(s) ? PLAN_TUNE : PLAN_INFER, /* the body has nothing that is random */
        .threads = s->options.threads,
        .weights = s->weights,
        .arena = s->arena,
        .arena_room = s->arena_bytes,
        .gradients = s->gradients,
        .weights_budget = s->options.weights_budget,
        .winograd_tile = s->options.winograd_tile,
        .fast = s->options.fast,
        .direct = s->options.direct,
        .profile = s->options.profile,
        .carry = &s->carry,
    };
    return options;
}

struct plan_options stream_tail_options(const struct stream *s)
{
    struct plan_options options = s->options;
    options.stream = NULL;
    options.arena = NULL, options.arena_room = 0;
    options.gradients = s->gradients;
    options.input_gradients = stream_trains(s);
    options.saving = SAVING_ALL;
    return options;
}

/* The arena that suffices for every kind of tile, and with the first of them the frontier, whose
 * layouts follow from the processor. Nothing is allocated. */
static bool measure_kinds(struct stream *s, struct err *err)
{
    struct plan_options options = stream_tile_options(s);
    struct tally tally = { 0 };
    bool ok = true;
    for (int k = 0; ok && k < stream_kinds(s); k++) {
        struct tape tape;
        size_t bytes = 0;
        ok = tape_begin(&tape, s->graphs[k], &options, err) &&
             tape_estimate(&tape, 1, &bytes, err) && tally_add(&tally, &tape, err) &&
             (k > 0 || (frontier_new(&s->tiles, &tape, s->options.threads, &s->frontier, err) &&
                        bands_new(&s->tiles, &tape, s->bands, &s->options, &s->borders, err)));
        tape_free(&tape);
        s->arena_bytes = bytes > s->arena_bytes ? bytes : s->arena_bytes;
    }
    s->plans_bytes = tally.bytes;
    s->kernels_bytes = tally.left;
    tally_free(&tally);
    return ok;
}

/* The plan behind the poolings is the same for tiles of all sizes. */
static bool measure_tail(struct stream *s, struct err *err)
{
    struct plan_options options = stream_tail_options(s);
    struct tally tally = { .bytes = 1 }; /* not the first */
    struct tape tape;
    size_t arena = 0;
    if (!s->body.tail)
        return true;
    bool ok = tape_begin(&tape, s->body.tail, &options, err) &&
              tape_estimate(&tape, 1, &arena, err) && tally_add(&tally, &tape, err);
    tape_free(&tape);
    s->tail_bytes = arena + tally.bytes;
    tally_free(&tally);
    return ok;
}

static bool measure_records(struct stream *s, struct err *err)
{
    const struct stream_axis *rows = &s->tiles.axes[0], *columns = &s->tiles.axes[1];
    s->record_bytes = calloc((size_t)stream_tiles(s), sizeof *s->record_bytes);
    size_t *of_kind = calloc((size_t)stream_kinds(s), sizeof *of_kind);
    bool ok = s->record_bytes && of_kind;
    for (int k = 0; ok && k < stream_kinds(s); k++)
        of_kind[k] = frontier_record_bytes(&s->frontier, rows->examples[k / columns->n_kinds],
                                           columns->examples[k % columns->n_kinds]);
    for (int64_t k = 0; ok && k < stream_tiles(s); k++)
        s->record_bytes[k] = of_kind[rows->kinds[k / columns->tiles] * columns->n_kinds +
                                     columns->kinds[k % columns->tiles]];
    free(of_kind);
    return ok || err_memory(err, "strips");
}

size_t stream_record_most(const struct stream *s)
{
    size_t most = 0;
    for (int64_t k = 0; k < stream_tiles(s); k++)
        most = s->record_bytes[k] > most ? s->record_bytes[k] : most;
    return most;
}

int64_t stream_most_cells(const struct stream *s, int map)
{
    int64_t most = 0;
    for (int k = 0; k < stream_kinds(s); k++) {
        int columns = s->tiles.axes[1].n_kinds;
        struct stream_region r =
            tiles_region(&s->tiles, map, s->tiles.axes[0].examples[k / columns],
                         s->tiles.axes[1].examples[k % columns]);
        most = r.h * r.w > most ? r.h * r.w : most;
    }
    return most;
}

/* How many gradients of a tile meet at an end. */
static int readers_of(const struct body *body, int end)
{
    const struct graph *graph = body->graph;
    value_id map = body->maps[body->ends[end]];
    int readers = 0;
    for (int p = 0; p < body->n_poolings; p++) {
        const struct node *node = &graph->nodes[body->poolings[p]];
        for (int k = 0; k < node->n_inputs; k++)
            readers += node->inputs[k] == map;
    }
    for (int o = 0; o < graph->n_outputs; o++)
        readers += graph->outputs[o].value == map;
    return readers;
}

size_t stream_spare_bytes(const struct stream *s, int end)
{
    int map = s->body.ends[end];
    int64_t channels = graph_shape(s->body.graph, s->body.maps[map])->dim[1];
    if (!stream_trains(s) || readers_of(&s->body, end) < 2)
        return 0;
    return (size_t)(channels * stream_most_cells(s, map)) * sizeof(float);
}

void stream_forget_layout(struct stream *s)
{
    for (int k = 0; s->graphs && k < stream_kinds(s); k++)
        graph_free(s->graphs[k]);
    free(s->graphs), free(s->record_bytes);
    bands_free(&s->borders);
    if (!s->weights_lent)
        plan_weights_free(s->weights);
    frontier_free(&s->frontier);
    tiles_free(&s->tiles);
    s->graphs = NULL, s->record_bytes = NULL, s->weights = NULL;
    s->arena_bytes = s->plans_bytes = 0;
}

/* once: weights are brought into the kernels' layouts once a pass, not for every tile. */
static bool lay_out(struct stream *s, int64_t tile_px, bool once, struct err *err)
{
    stream_forget_layout(s);
    s->weights_lent = !stream_trains(s) && s->options.weights;
    s->weights = s->weights_lent ? s->options.weights : once ? plan_weights_new() : NULL;
    if (once && !s->weights)
        return err_memory(err, "weights");
    return make_tiles(s, tile_px, err) && measure_kinds(s, err) && measure_records(s, err);
}

/* Bytes of the image, or of the parts of it that are read ahead. */
static size_t input_bytes(const struct stream *s)
{
    const struct shape *image = graph_shape(s->body.graph, s->body.maps[0]);
    if (s->settings.source)
        return ahead_bytes(image->dim[1] * stream_most_cells(s, 0), stream_tiles(s));
    return (size_t)shape_count(image) * sizeof(float);
}

static size_t output_bytes(const struct stream *s)
{
    const struct graph *graph = s->body.graph;
    size_t bytes = 0;
    for (int o = 0; o < graph->n_outputs && !s->settings.sink; o++)
        if (s->body.parts[graph->outputs[o].value] == PART_MAP)
            bytes += (size_t)shape_count(graph_shape(graph, graph->outputs[o].value)) *
                     sizeof(float) * (stream_trains(s) ? 2 : 1);
    return bytes;
}

/* What a plan of these tiles allocates, but for records and what is negligible. */
static size_t bytes_of_all(const struct stream *s)
{
    size_t parameter = (s->gradients_lent ? 0 : sizeof(float)) + sizeof(double), spare = 0;
    for (int e = 0; e < s->body.n_ends; e++)
        spare += stream_spare_bytes(s, e);
    return spare + s->arena_bytes + s->plans_bytes + s->tail_bytes + s->left_bytes +
           frontier_bytes(&s->frontier) + bands_bytes(&s->borders) + input_bytes(s) +
           output_bytes(s) + (size_t)s->n_gradients * parameter;
}

static struct budget_need need_of(const struct stream *s)
{
    return (struct budget_need){
        .bytes = bytes_of_all(s) + (stream_trains(s) ? 0 : stream_record_most(s)),
        .records = s->record_bytes,
        .n = stream_trains(s) ? stream_tiles(s) : 0,
    };
}

static bool fits(const struct stream *s, const struct budget_need *need)
{
    struct records_options records = {
        .n = need->n, .bytes = need->records, .folder = s->settings.spill, .bf16 = s->settings.bf16
    };
    return s->settings.budget == 0 || need->bytes + records_least(&records) <= s->settings.budget;
}

/* Below this, bringing weights into the kernels' layouts for every tile costs more than 1 %. */
#define SMALL_TILE_PX 1024

static bool ask(void *arg, int64_t tile_px, struct budget_need *out, struct err *err)
{
    struct stream *s = arg;
    bool once = !stream_trains(s) || tile_px < SMALL_TILE_PX;
    s->left_bytes += s->kernels_bytes; /* of the size that was asked for before */
    if (!lay_out(s, tile_px, once, err))
        return false;
    *out = need_of(s);
    if (!once || !stream_trains(s) || fits(s, out))
        return true;
    if (!lay_out(s, tile_px, false, err))
        return false;
    *out = need_of(s);
    return true;
}

bool stream_choose_layout(struct stream *s, struct err *err)
{
    const struct shape *image = graph_shape(s->body.graph, s->body.maps[0]);
    int64_t step[2];
    for (int a = 0; a < 2; a++)
        step[a] = stream_axis_step(s->body.edges[a], s->body.n_edges, s->body.n_maps);
    struct budget_options options = { .name = s->body.graph->name,
                                      .height = image->dim[2],
                                      .width = image->dim[3],
                                      .step = step[0] > step[1] ? step[0] : step[1],
                                      .stream = &s->settings,
                                      .ask = ask,
                                      .arg = s };
    struct budget_choice choice;
    if (!measure_tail(s, err) || !budget_choose(&options, &choice, err))
        return false;
    s->records_memory = choice.records;
    s->predicted_bytes = choice.bytes;
    return true; /* it was the last that was asked for */
}
