/* trainer_space.c: patches that are divided over ranks (parallel.space; trainer.h). Every rank of a
 * patch reads all of it and computes its part, in training and in evaluations; behind the pooling
 * all of them compute the same, so that each has the outputs and the loss of the whole patch. */
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "base/json.h"
#include "net/model/model.h"
#include "train/peers.h"
#include "train/trainer.h"

void trainer_space_place(struct trainer *trainer)
{
    struct rank_grid *grid = &trainer->grid;
    trainer->columns = peers_of_ranks(&grid->group[GRID_SPACE]);
    trainer->space = (struct space_spec){ .rows = 1, .columns = 1, .whole_outputs = true };
    if (!config_divided(trainer->config))
        return;
    trainer->space.rows = grid->extent[GRID_BANDS];
    trainer->space.columns = grid->extent[GRID_SPACE];
    trainer->space.row = grid->at[GRID_BANDS];
    trainer->space.column = grid->at[GRID_SPACE];
}

bool trainer_divides(const struct trainer *trainer)
{
    return trainer->space.rows * trainer->space.columns > 1;
}

void trainer_space_gradient(const struct trainer *trainer, const struct graph *graph, int output,
                            float *gradient)
{
    const struct shape *shape = graph_shape(graph, graph->outputs[output].value);
    if (trainer->space.row > 0 || trainer->space.column > 0)
        memset(gradient, 0, (size_t)shape_count(shape) * sizeof *gradient);
}

bool trainer_space_graph(const struct trainer *trainer, const struct graph *graph,
                         struct graph **out, struct err *err)
{
    return transform_space(graph, &trainer->space, out, err) || err_prefix(err, "parallel.space");
}

void trainer_space_peers(const struct trainer *trainer, struct plan_options *options)
{
    if (!trainer_divides(trainer))
        return;
    options->peers[PEERS_BANDS] = trainer->bands.size > 1 ? &trainer->bands : NULL;
    options->peers[PEERS_SPACE] = trainer->columns.size > 1 ? &trainer->columns : NULL;
    options->norm_peers |= 1u << PEERS_BANDS | 1u << PEERS_SPACE;
    options->wait_for_sums = !trainer->config->ranks.overlap;
}

/* from [planes, side, side], whole -> to [planes, height, width], the part. laid [side, side]: room
 * for a plane. */
void trainer_space_cut(const struct trainer *trainer, const float *from, int64_t planes,
                       int64_t side, int way, float *laid, float *to)
{
    struct space_part part = space_part(&trainer->space, side, side);
    size_t width = (size_t)(part.x1 - part.x0);
    for (int64_t p = 0; p < planes; p++) {
        const float *plane = from + p * side * side;
        if (way != 0) {
            model_lay(plane, 1, side, way, laid);
            plane = laid;
        }
        for (int64_t y = part.y0; y < part.y1; y++, to += width)
            memcpy(to, plane + y * side + part.x0, width * sizeof *to);
    }
}

/* --- memory --- */

bool trainer_share_memory(struct trainer *trainer, int64_t bytes, struct err *err)
{
    struct ranks *ranks = trainer->request->ranks;
    if (!trainer_divides(trainer) || trainer->arena_bytes)
        return true;
    trainer->arena_bytes = calloc((size_t)ranks->size, sizeof *trainer->arena_bytes);
    if (!trainer_agree(trainer, trainer->arena_bytes || err_memory(err, "the trainer"), err) ||
        !ranks_gather_equal(ranks, &bytes, sizeof bytes, trainer->arena_bytes, err))
        return false;
    int64_t least = bytes, most = bytes;
    for (int r = 0; r < ranks->size; r++) {
        least = trainer->arena_bytes[r] < least ? trainer->arena_bytes[r] : least;
        most = trainer->arena_bytes[r] > most ? trainer->arena_bytes[r] : most;
    }
    if (trainer_leads(trainer))
        console_note(trainer->ctx->console,
                     "parallel.space: %dx%d parts of a patch; activations and their gradients take "
                     "%.1f to %.1f MB on a rank",
                     trainer->space.rows, trainer->space.columns, (double)least / 1e6,
                     (double)most / 1e6);
    return true;
}

void trainer_space_record(const struct trainer *trainer, struct json_out *json)
{
    if (!trainer->arena_bytes)
        return;
    json_out_object_line(json, "space");
    json_out_int(json, "rows", trainer->space.rows);
    json_out_int(json, "columns", trainer->space.columns);
    json_out_array(json, "activation_bytes"); /* of each rank */
    for (int r = 0; r < trainer->request->ranks->size; r++)
        json_out_int(json, NULL, trainer->arena_bytes[r]);
    json_out_close_array(json);
    json_out_close_object(json);
}
