/* trainer_stages.c: a training whose network is in stages (staged.h, trainer.h): where this rank is
 * in its pipeline, the cut, and what all ranks do together: bring the weights of all stages to all,
 * gather the state of their optimizers, sum the norm of the gradient. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "net/stages/costs.h"
#include "train/peers.h"
#include "train/staged.h"

/* --- ranks --- */

/* Two-way programs have the same pair of stages on ranks r and S - 1 - r. */
static int pair_of(const struct staged *s)
{
    int other = s->program.stages - 1 - s->rank;
    return s->program.two_way && other < s->rank ? other : s->rank;
}

static bool make_groups(struct trainer *trainer, struct staged *s, struct err *err)
{
    struct ranks *all = trainer->request->ranks;
    const struct space_spec *space = &trainer->space;
    bool ok = ranks_split(all, pair_of(s), all->rank, "copies of a stage", &s->copies, err);
    if (ok && trainer_divides(trainer)) {
        ok = ranks_split(all, space->row * space->columns + space->column, all->rank, "samples",
                         &s->samples, err);
        trainer->sample_ranks = &s->samples;
    }
    for (int i = 0; ok && i < (s->program.two_way ? 2 : 1) * CHANNELS; i++) {
        struct ranks *group = &s->groups[i / CHANNELS][i % CHANNELS];
        ok = ranks_split(&trainer->grid.group[GRID_STAGE], 0, s->rank, "pipeline", group, err);
        if (ok)
            s->peers[i / CHANNELS][i % CHANNELS] = peers_of_ranks(group);
    }
    return ok;
}

bool trainer_stages_place(struct trainer *trainer, struct err *err)
{
    const struct train_config *config = trainer->config;
    struct staged *s = trainer->staged = calloc(1, sizeof *s);
    bool ok = s || err_memory(err, "stages");
    ok = ok && program_new((enum program_kind)config->pipeline.schedule,
                           (int)config->parallel[GRID_STAGE], (int)config_micro_batches(config),
                           &s->program, err);
    if (!trainer_agree(trainer, ok, err))
        return false;
    s->rank = trainer->grid.at[GRID_STAGE];
    s->n_held = program_held(&s->program, s->rank, s->held);
    trainer->weight_ranks = &s->copies;
    trainer->sample_ranks = trainer->request->ranks;
    return make_groups(trainer, s, err);
}

void trainer_stages_free(struct trainer *trainer)
{
    struct staged *s = trainer->staged;
    if (!s)
        return;
    if (trainer->learnt != trainer->graph)
        graph_free(trainer->learnt);
    for (int i = 0; i < 2 * CHANNELS; i++)
        ranks_free(&s->groups[i / CHANNELS][i % CHANNELS]);
    ranks_free(&s->copies), ranks_free(&s->samples);
    stages_free(&s->stages);
    graph_free(s->part);
    program_free(&s->program);
    free(s);
    trainer->staged = NULL;
}

/* --- the cut --- */

/* As named; else stages that are counted to take equally long, which is the same on every rank. */
static bool find_cut(const struct trainer *trainer, int32_t *begin, struct err *err)
{
    const struct texts *cut = &trainer->config->pipeline.cut;
    const struct graph *graph = trainer->graph;
    int stages = (int)trainer->config->parallel[GRID_STAGE];
    if (cut->n > 0)
        return stages_at(graph, (const char *const *)cut->items, (int)cut->n, begin, err) ||
               err_prefix(err, "parallel.cut");
    struct node_cost *costs = calloc((size_t)graph->n_nodes + 1, sizeof *costs);
    bool ok = costs || err_memory(err, "costs of layers");
    ok = ok && costs_count(graph, costs, err) &&
         costs_balance(graph, costs, stages, &(struct wire){ 0 }, 0, begin, err);
    free(costs);
    return ok;
}

/* In two-way programs: what this rank's running statistics count for. */
static bool share_statistics(struct trainer *trainer, struct err *err)
{
    struct staged *s = trainer->staged;
    const struct graph *learnt = trainer->learnt;
    float *shares = calloc((size_t)trainer->graph->n_values + 1, sizeof *shares);
    trainer->statistics_shares =
        calloc((size_t)learnt->n_values + 1, sizeof *trainer->statistics_shares);
    bool ok = (shares && trainer->statistics_shares) || err_memory(err, "batch norm's statistics");
    for (int h = 0; ok && h < s->n_held; h++) {
        const struct graph *graph = s->stages.graphs[s->held[h]];
        stages_pair_statistics(&s->stages, s->held[h], s->held[h] == s->rank ? 0 : 1, shares);
        for (value_id v = 0; v < graph->n_values; v++)
            if (shares[v] > 0)
                trainer->statistics_shares[graph_find(learnt, graph->values[v].name)] =
                    2 * shares[v] / (float)s->copies.size;
    }
    free(shares);
    return ok;
}

/* Where the part of a divided network is cut: behind the same layers. */
static bool divide(struct trainer *trainer, int32_t *begin, struct err *err)
{
    struct staged *s = trainer->staged;
    const char *last[STAGES_MOST];
    for (int i = 1; i < s->program.stages; i++)
        last[i - 1] = trainer->graph->nodes[s->begin[i] - 1].name;
    return trainer_space_graph(trainer, trainer->graph, &s->part, err) &&
           stages_at(s->part, last, s->program.stages - 1, begin, err);
}

bool trainer_stages_cut(struct trainer *trainer, struct err *err)
{
    struct staged *s = trainer->staged;
    int32_t begin[STAGES_MOST + 1];
    if (!s)
        return true;
    if (!find_cut(trainer, s->begin, err))
        return false;
    memcpy(begin, s->begin, sizeof begin);
    if ((trainer_divides(trainer) && !divide(trainer, begin, err)) ||
        !stages_new(s->part ? s->part : trainer->graph, begin, s->program.stages, &s->stages,
                    err) ||
        !stages_held(&s->stages, s->held, s->n_held, &trainer->learnt, s->at, err))
        return false;
    s->at[s->n_held] = graph_parameter_count(trainer->learnt);
    return s->n_held == 1 || trainer->config->network.norm == NORM_FROZEN ||
           share_statistics(trainer, err);
}

/* --- all stages on all ranks --- */

/* Of the whole training, the first that has a stage. */
static int owner_of(const struct trainer *trainer, int stage)
{
    int at[GRID_AXES];
    const struct ranks *all = trainer->request->ranks;
    for (int r = 0; r < all->size; r++) {
        rank_grid_place(trainer->grid.extent, r, at);
        if (at[GRID_STAGE] == stage)
            return r;
    }
    return 0;
}

/* Parameters and buffers of a stage, one after another, to or from `flat`. */
static void move_stage(const struct graph *graph, float *flat, bool back)
{
    for (value_id v = 0; v < graph->n_values; v++) {
        if (!graph_is_parameter(graph, v))
            continue;
        size_t count = (size_t)shape_count(&graph->values[v].shape);
        float *data = graph_data(graph, v);
        memcpy(back ? data : flat, back ? flat : data, count * sizeof *data);
        flat += count;
    }
}

static int64_t count_floats(const struct graph *graph)
{
    int64_t count = 0;
    for (value_id v = 0; v < graph->n_values; v++)
        count += graph_is_parameter(graph, v) ? shape_count(&graph->values[v].shape) : 0;
    return count;
}

/* Memory for any stage, of which all ranks agree that it is there; NULL: failed. */
static float *room_for_stage(const struct trainer *trainer, struct err *err)
{
    const struct stages *stages = &trainer->staged->stages;
    int64_t most = 0;
    for (int s = 0; s < stages->n; s++) {
        int64_t count = count_floats(stages->graphs[s]);
        most = count > most ? count : most;
    }
    float *room = calloc((size_t)most + 1, sizeof *room);
    if (trainer_agree(trainer, room || err_memory(err, "the weights of a stage"), err))
        return room;
    free(room);
    return NULL;
}

bool trainer_collect(const struct trainer *trainer, struct err *err)
{
    if (!trainer->staged)
        return true;
    const struct stages *stages = &trainer->staged->stages;
    struct ranks *all = trainer->request->ranks;
    float *flat = room_for_stage(trainer, err);
    bool ok = flat != NULL;
    for (int s = 0; ok && s < stages->n; s++) {
        const struct graph *graph = stages->graphs[s];
        int owner = owner_of(trainer, s);
        if (all->rank == owner)
            move_stage(graph, flat, false);
        ok = ranks_broadcast(all, flat, (size_t)count_floats(graph) * sizeof *flat, owner, err);
        if (ok && all->rank != owner)
            move_stage(graph, flat, true);
    }
    free(flat);
    return ok;
}

bool trainer_norm(const struct trainer *trainer, double *out, struct err *err)
{
    const struct staged *s = trainer->staged;
    if (trainer->heads)
        return trainer_heads_norm(trainer, out, err);
    if (!s) {
        *out = optimizer_norm(trainer->gradients, trainer->n_gradients, trainer->threads);
        return true;
    }
    double squares[STAGES_MOST] = { 0 }, sum = 0;
    for (int h = 0; h < s->n_held; h++) {
        double norm = optimizer_norm(trainer->gradients + s->at[h], s->at[h + 1] - s->at[h],
                                     trainer->threads);
        if (trainer->request->ranks->rank == owner_of(trainer, s->held[h]))
            squares[s->held[h]] = norm * norm; /* once, from the first that has it */
    }
    if (!ranks_sum_reals(trainer->request->ranks, squares, s->stages.n, err))
        return false;
    for (int i = 0; i < s->stages.n; i++)
        sum += squares[i];
    *out = sqrt(sum);
    return true;
}

/* --- checkpoints --- */

static bool counts(const struct graph *graph, value_id v, bool buffers)
{
    return graph->values[v].kind == VALUE_PARAMETER || (buffers && graph_is_parameter(graph, v));
}

/* Where the parameters of a part of the network (with `buffers`, those too) begin in the flat
 * vectors of all of it, in the order of the part; the caller's. */
static int64_t *places_of(const struct graph *whole, const struct graph *part, bool buffers,
                          struct err *err)
{
    int64_t *at = calloc((size_t)whole->n_values + 1, sizeof *at), count = 0;
    int64_t *out = calloc((size_t)part->n_values + 1, sizeof *out), n = 0;
    if (!at || !out) {
        free(at), free(out);
        err_memory(err, "a checkpoint");
        return NULL;
    }
    for (value_id v = 0; v < whole->n_values; v++)
        if (counts(whole, v, buffers)) {
            at[v] = count;
            count += shape_count(&whole->values[v].shape);
        }
    for (value_id v = 0; v < part->n_values; v++)
        if (counts(part, v, buffers))
            out[n++] = at[graph_find(whole, part->values[v].name)];
    free(at);
    return out;
}

/* A flat vector of a stage to, or from, its places in that of the whole network. */
static void scatter(const struct graph *stage, const int64_t *places, float *flat, float *whole,
                    bool back)
{
    int64_t n = 0;
    for (value_id v = 0; v < stage->n_values; v++) {
        if (stage->values[v].kind != VALUE_PARAMETER)
            continue;
        size_t count = (size_t)shape_count(&stage->values[v].shape);
        float *place = whole + places[n++];
        memcpy(back ? flat : place, back ? place : flat, count * sizeof *flat);
        flat += count;
    }
}

/* The optimizer's arrays of one stage. flat: room for it. */
static bool gather_stage(const struct trainer *trainer, int stage, struct trainer_arrays *arrays,
                         float *flat, struct err *err)
{
    const struct staged *s = trainer->staged;
    const struct graph *graph = s->stages.graphs[stage];
    struct ranks *all = trainer->request->ranks;
    int owner = owner_of(trainer, stage), h = s->n_held == 2 && s->held[1] == stage;
    size_t count = (size_t)graph_parameter_count(graph);
    int64_t *places = places_of(trainer->graph, graph, false, err);
    bool ok = trainer_agree(trainer, places, err);
    for (int i = 0; ok && i < arrays->n_whole; i++) {
        struct state_array own = optimizer_array(trainer->optimizer, i);
        if (all->rank == owner)
            memcpy(flat, own.data + s->at[h], count * sizeof *flat);
        ok = ranks_broadcast(all, flat, count * sizeof *flat, owner, err);
        if (ok)
            scatter(graph, places, flat, arrays->whole[i], false);
    }
    free(places);
    return ok;
}

/* The average of all stages is where the weights are, while they are swapped. */
static bool gather_average(const struct trainer *trainer, const struct trainer_arrays *arrays,
                           struct err *err)
{
    if (!trainer->ema)
        return true;
    ema_swap(trainer->ema);
    bool ok = trainer_collect(trainer, err);
    if (ok)
        move_stage(trainer->graph, arrays->average, false);
    ema_swap(trainer->ema);
    return ok;
}

bool staged_gather(const struct trainer *trainer, struct trainer_arrays *arrays, struct err *err)
{
    float *flat = room_for_stage(trainer, err);
    bool ok = flat != NULL;
    for (int i = 0; ok && i < trainer->staged->stages.n; i++)
        ok = gather_stage(trainer, i, arrays, flat, err);
    free(flat);
    return ok && gather_average(trainer, arrays, err) && trainer_collect(trainer, err);
}

static bool take_average(const struct trainer *trainer, const float *average, struct err *err)
{
    if (!trainer->ema)
        return true;
    int64_t *places = places_of(trainer->graph, trainer->learnt, true, err);
    for (int i = 0; places && i < ema_n_arrays(trainer->ema); i++) {
        struct state_array own = ema_array(trainer->ema, i);
        memcpy(own.data, average + places[i], (size_t)own.count * sizeof *own.data);
    }
    free(places);
    return places != NULL;
}

bool staged_take(const struct trainer *trainer, const struct trainer_arrays *arrays,
                 struct err *err)
{
    const struct staged *s = trainer->staged;
    bool ok = true;
    for (int h = 0; ok && h < s->n_held; h++) {
        const struct graph *graph = s->stages.graphs[s->held[h]];
        int64_t *places = places_of(trainer->graph, graph, false, err);
        ok = places != NULL;
        for (int i = 0; ok && i < arrays->n_whole; i++)
            scatter(graph, places, optimizer_array(trainer->optimizer, i).data + s->at[h],
                    arrays->whole[i], true);
        free(places);
    }
    return ok && take_average(trainer, arrays->average, err);
}
