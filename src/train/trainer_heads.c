/* trainer_heads.c: a Transformer whose attention heads and MLP columns are divided over ranks
 * (parallel.heads; trainer.h). A rank has its rows and columns of the divided weights, with their
 * gradients, optimizer and average; all else is the same on the ranks that share a sample. What is
 * saved is the network as a whole: the first rank has it for that long, the others never. */
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "base/identity.h"
#include "base/json.h"
#include "train/heads.h"
#include "train/peers.h"

/* Of the part of a network, the same with its tokens divided (parallel.sequence). */
static bool cut_tokens(const struct trainer *trainer, struct heads *heads, struct graph **part,
                       struct err *err)
{
    struct graph *divided = *part;
    if (!trainer->config->sequence)
        return true;
    bool ok = transform_tokens(divided, trainer->grid.extent[GRID_HEADS],
                               trainer->grid.at[GRID_HEADS], part, &heads->summed, err);
    if (ok)
        graph_free(divided);
    for (value_id v = 0; ok && v < (*part)->n_values; v++)
        heads->n_sums += heads->summed[v] ? shape_count(&(*part)->values[v].shape) : 0;
    heads->sums = ok ? calloc((size_t)heads->n_sums + 1, sizeof *heads->sums) : NULL;
    return ok ? heads->sums || err_memory(err, "the parts of a network")
              : err_prefix(err, "parallel.sequence");
}

static void free_heads(struct heads *heads)
{
    free(heads->outer), free(heads->summed), free(heads->sums), free(heads->arena_bytes);
    free(heads);
}

bool trainer_heads_cut(struct trainer *trainer, struct err *err)
{
    int parts = trainer->grid.extent[GRID_HEADS];
    struct graph *whole = trainer->graph, *part = NULL;
    if (parts == 1)
        return true;
    struct heads *heads = calloc(1, sizeof *heads);
    if (!heads)
        return err_memory(err, "the parts of a network");
    *heads = (struct heads){ .outer = calloc((size_t)whole->n_values + 1, sizeof *heads->outer),
                             .ranks = &trainer->grid.group[GRID_HEADS],
                             .peers = peers_of_ranks(&trainer->grid.group[GRID_HEADS]) };
    bool ok = heads->outer || err_memory(err, "the parts of a network");
    ok = ok &&
         (transform_heads(whole, parts, trainer->grid.at[GRID_HEADS], &part, heads->outer, err) ||
          err_prefix(err, "parallel.heads"));
    if (!ok || !cut_tokens(trainer, heads, &part, err)) {
        graph_free(part);
        free_heads(heads);
        return false;
    }
    heads->whole = whole;
    graph_forget(whole);
    malloc_trim(0); /* the whole network is not to be held beside the part */
    trainer->heads = heads;
    trainer->graph = trainer->learnt = part;
    return true;
}

void trainer_heads_free(struct trainer *trainer)
{
    if (!trainer->heads)
        return;
    graph_free(trainer->heads->whole);
    free_heads(trainer->heads);
    trainer->heads = NULL;
}

const struct graph *trainer_network(const struct trainer *trainer)
{
    return trainer->heads ? trainer->heads->whole : trainer->graph;
}

void trainer_heads_peers(const struct trainer *trainer, struct plan_options *options)
{
    if (!trainer->heads)
        return;
    options->peers[PEERS_HEADS] = &trainer->heads->peers;
    options->wait_for_sums = !trainer->config->ranks.overlap;
}

/* --- parameter by parameter --- */

/* A parameter or buffer: of the whole network, and what this rank has of it. Both networks have
 * them in the same order. */
struct share {
    value_id whole, part;
    int64_t outer;      /* 0: not divided */
    int64_t count, own; /* floats of both */
    int64_t at, at_own; /* where they begin in the flat vectors of learnt parameters */
    int64_t at_all;     /* the same of parameters and buffers, in that of the whole network */
    int number;         /* of parameters and buffers */
    bool learnt;
};

static value_id next_parameter(const struct graph *graph, value_id v)
{
    while (v < graph->n_values && !graph_is_parameter(graph, v))
        v++;
    return v;
}

/* Begins with a zeroed share whose number is -1; false: no more. */
static bool next_share(const struct trainer *trainer, struct share *s)
{
    const struct graph *whole = trainer->heads->whole, *part = trainer->graph;
    bool first = s->number < 0;
    s->at += s->learnt ? s->count : 0, s->at_own += s->learnt ? s->own : 0;
    s->at_all += s->count;
    s->whole = next_parameter(whole, first ? 0 : s->whole + 1);
    s->part = next_parameter(part, first ? 0 : s->part + 1);
    if (s->whole >= whole->n_values)
        return false;
    s->number++;
    s->outer = trainer->heads->outer[s->whole];
    s->count = shape_count(&whole->values[s->whole].shape);
    s->own = shape_count(&part->values[s->part].shape);
    s->learnt = whole->values[s->whole].kind == VALUE_PARAMETER;
    return true;
}

static const struct share FIRST = { .number = -1 };

/* Room for any parameter, of which all ranks agree that it is there; NULL: failed. */
static float *new_room(const struct trainer *trainer, struct err *err)
{
    int64_t most = 0;
    for (struct share s = FIRST; next_share(trainer, &s);)
        most = s.count > most ? s.count : most;
    float *room = malloc((size_t)(most + 1) * sizeof *room);
    if (trainer_agree(trainer, room || err_memory(err, "a parameter"), err))
        return room;
    free(room);
    return NULL;
}

/* --- gradients --- */

/* Those of parameters of which each rank has added up its own tokens, to the room or back. */
static void move_sums(const struct trainer *trainer, bool back)
{
    const struct heads *heads = trainer->heads;
    float *room = heads->sums;
    for (struct share s = FIRST; next_share(trainer, &s);) {
        if (!s.learnt || !heads->summed[s.part])
            continue;
        float *gradient = trainer->gradients + s.at_own;
        memcpy(back ? gradient : room, back ? room : gradient, (size_t)s.own * sizeof *room);
        room += s.own;
    }
}

bool trainer_heads_sum(struct trainer *trainer, struct err *err)
{
    if (!trainer->heads || !trainer->heads->summed)
        return true;
    move_sums(trainer, false);
    if (!ranks_sum_floats(trainer->heads->ranks, trainer->heads->sums, trainer->heads->n_sums, err))
        return false;
    move_sums(trainer, true);
    return true;
}

bool trainer_heads_norm(const struct trainer *trainer, double *out, struct err *err)
{
    double square = 0;
    for (struct share s = FIRST; next_share(trainer, &s);) {
        bool counts = s.learnt && (s.outer > 0 || trainer->grid.at[GRID_HEADS] == 0);
        double norm =
            counts ? optimizer_norm(trainer->gradients + s.at_own, s.own, trainer->threads) : 0;
        square += norm * norm;
    }
    bool ok = ranks_sum_reals(trainer->heads->ranks, &square, 1, err);
    *out = sqrt(square);
    return ok;
}

bool trainer_heads_same(const struct trainer *trainer, struct err *err)
{
    uint64_t hash = IDENTITY_HASH_BEGIN;
    if (!trainer->heads)
        return true;
    for (struct share s = FIRST; next_share(trainer, &s);)
        if (s.outer == 0)
            hash = identity_hash(hash, graph_data(trainer->graph, s.part),
                                 (size_t)s.own * sizeof(float));
    return ranks_same(trainer->heads->ranks, hash, "weights", err);
}

/* --- what is saved --- */

/* own -> to, whole, on the ranks that have it; the others give NULL. */
static bool gather(const struct trainer *trainer, const struct share *s, const float *own,
                   float *to, float *room, struct err *err)
{
    int parts = trainer->grid.extent[GRID_HEADS];
    if (s->outer == 0) {
        if (to)
            memcpy(to, own, (size_t)s->count * sizeof *to);
        return true;
    }
    if (!ranks_gather_equal(trainer->heads->ranks, own, (size_t)s->own * sizeof *own, room, err))
        return false;
    for (int r = 0; to && r < parts; r++)
        heads_move(to, s->count, s->outer, parts, r, room + r * s->own, true);
    return true;
}

/* whole, on the first rank -> own, on all. */
static bool spread(const struct trainer *trainer, const struct share *s, const float *whole,
                   float *own, float *room, struct err *err)
{
    if (whole)
        memcpy(room, whole, (size_t)s->count * sizeof *room);
    if (!ranks_broadcast(trainer->request->ranks, room, (size_t)s->count * sizeof *room, 0, err))
        return false;
    if (s->outer == 0)
        memcpy(own, room, (size_t)s->count * sizeof *own);
    else
        heads_move(room, s->count, s->outer, trainer->grid.extent[GRID_HEADS],
                   trainer->grid.at[GRID_HEADS], own, false);
    return true;
}

static float *behind(float *begin, int64_t at)
{
    return begin ? begin + at : NULL;
}

/* Weights, average and optimizer of one parameter, to the whole arrays or from them. */
static bool move_share(const struct trainer *trainer, const struct trainer_arrays *arrays,
                       const struct share *s, bool back, float *room, struct err *err)
{
    float *own[4], *whole[4];
    int n = 0;
    bool ok = true;
    own[n] = graph_data(trainer->graph, s->part);
    whole[n++] = behind(arrays->weights, s->at_all);
    if (trainer->ema) {
        own[n] = ema_array(trainer->ema, s->number).data;
        whole[n++] = behind(arrays->average, s->at_all);
    }
    for (int i = 0; s->learnt && i < arrays->n_whole; i++) {
        own[n] = optimizer_array(trainer->optimizer, i).data + s->at_own;
        whole[n++] = behind(arrays->whole[i], s->at);
    }
    for (int i = 0; ok && i < n; i++)
        ok = back ? spread(trainer, s, whole[i], own[i], room, err)
                  : gather(trainer, s, own[i], whole[i], room, err);
    return ok;
}

bool heads_gather(const struct trainer *trainer, struct trainer_arrays *arrays, struct err *err)
{
    float *room = new_room(trainer, err);
    bool ok = room != NULL, takes_part = trainer->grid.at[GRID_DATA] == 0;
    for (struct share s = FIRST; ok && takes_part && next_share(trainer, &s);)
        ok = move_share(trainer, arrays, &s, false, room, err);
    free(room);
    return ok;
}

bool heads_take(const struct trainer *trainer, const struct trainer_arrays *arrays, struct err *err)
{
    float *room = new_room(trainer, err);
    bool ok = room != NULL;
    for (struct share s = FIRST; ok && next_share(trainer, &s);)
        ok = move_share(trainer, arrays, &s, true, room, err);
    free(room);
    return ok;
}

bool trainer_heads_collect(const struct trainer *trainer, struct err *err)
{
    if (!trainer->heads)
        return true;
    struct graph *whole = trainer->heads->whole;
    bool ok = trainer_agree(trainer, !trainer_leads(trainer) || graph_allocate(whole, err), err);
    float *room = ok ? new_room(trainer, err) : NULL;
    bool takes_part = trainer->grid.at[GRID_DATA] == 0;
    ok = room != NULL;
    for (struct share s = FIRST; ok && takes_part && next_share(trainer, &s);)
        ok = gather(trainer, &s, graph_data(trainer->graph, s.part), graph_data(whole, s.whole),
                    room, err);
    free(room);
    return ok;
}

/* --- what is told --- */

bool trainer_heads_tell(struct trainer *trainer, int64_t bytes, struct err *err)
{
    struct heads *heads = trainer->heads;
    struct ranks *ranks = trainer->request->ranks;
    if (!heads || heads->arena_bytes)
        return true;
    heads->arena_bytes = calloc((size_t)ranks->size, sizeof *heads->arena_bytes);
    if (!trainer_agree(trainer, heads->arena_bytes || err_memory(err, "the trainer"), err) ||
        !ranks_gather_equal(ranks, &bytes, sizeof bytes, heads->arena_bytes, err))
        return false;
    if (trainer_leads(trainer))
        console_note(trainer->ctx->console,
                     "parallel.heads: %d parts of every attention and MLP%s; a rank has %.2f M of "
                     "%.2f M parameters, and activations and their gradients take %.1f MB",
                     trainer->grid.extent[GRID_HEADS],
                     heads->summed ? ", of tokens between them" : "",
                     (double)trainer->n_gradients / 1e6,
                     (double)graph_parameter_count(heads->whole) / 1e6, (double)bytes / 1e6);
    return true;
}

void trainer_heads_record(const struct trainer *trainer, struct json_out *json)
{
    if (!trainer->heads || !trainer->heads->arena_bytes)
        return;
    json_out_object_line(json, "heads");
    json_out_int(json, "parts", trainer->grid.extent[GRID_HEADS]);
    json_out_int(json, "parameters", trainer->n_gradients); /* of a rank */
    json_out_bool(json, "sequence", trainer->heads->summed != NULL);
    json_out_array(json, "activation_bytes"); /* of each rank */
    for (int r = 0; r < trainer->request->ranks->size; r++)
        json_out_int(json, NULL, trainer->heads->arena_bytes[r]);
    json_out_close_array(json);
    json_out_close_object(json);
}
