/* dnnl_rows.c: primitives that process rows independently, in pieces of a number of rows that
 * depends on their count alone: each piece is done by one thread, so that the number of threads
 * changes no bits. oneDNN itself splits sums as it likes by the number of threads. */
#include <omp.h>
#include <stdlib.h>
#include "base/divide.h"
#include "net/plan/dnnl_step.h"

#define FEW_ROWS 64   /* of a piece: fewer do not pay for reading the weights again */
#define MANY_ROWS 256 /* enough for that */
#define PIECES 8      /* at least, if the rows suffice */

int64_t dnnl_rows_of_piece(int64_t rows)
{
    int64_t piece = ceil_div(rows, PIECES);
    piece = piece < FEW_ROWS ? FEW_ROWS : piece > MANY_ROWS ? MANY_ROWS : piece;
    return piece < rows ? piece : rows;
}

/* Memories are set to their place whenever a piece is done. */
struct worker {
    dnnl_stream_t stream;
    dnnl_exec_arg_t args[2][DNNL_STEP_ARGS]; /* of whole pieces, and of the last one */
};

struct rows_state {
    dnnl_primitive_t primitives[2];
    int64_t pieces;
    bool has_rest; /* the last piece has fewer rows */
    int n_args, threads;
    size_t step[DNNL_STEP_ARGS]; /* bytes from a piece to the next; 0: the same for all */
    size_t thread_bytes;         /* of scratch, the last argument, if there is any */
    struct worker *workers;      /* [threads] */
    char name[64];
};

static void rows_destroy(void *at)
{
    struct rows_state *state = at;
    for (int t = 0; state->workers && t < state->threads; t++) {
        for (int k = 0; k < 2; k++)
            for (int i = 0; i < state->n_args; i++)
                dnnl_memory_destroy(state->workers[t].args[k][i].memory);
        dnnl_stream_destroy(state->workers[t].stream);
    }
    free(state->workers);
    for (int k = 0; k < 2; k++)
        dnnl_primitive_destroy(state->primitives[k]);
    free(state);
}

static dnnl_status_t run_piece(const struct step *step, int64_t piece)
{
    const struct rows_state *state = step->state;
    int kind = state->has_rest && piece + 1 == state->pieces, me = omp_get_thread_num();
    struct worker *worker = &state->workers[me];
    for (int i = 0; i < state->n_args; i++) {
        bool scratch = worker->args[kind][i].arg == DNNL_ARG_SCRATCHPAD;
        size_t offset = scratch ? (size_t)me * state->thread_bytes : (size_t)piece * state->step[i];
        dnnl_memory_set_data_handle(worker->args[kind][i].memory, (char *)step->at[i] + offset);
    }
    return dnnl_primitive_execute(state->primitives[kind], worker->stream, state->n_args,
                                  worker->args[kind]);
}

static bool rows_run(const struct step *step, struct err *err)
{
    const struct rows_state *state = step->state;
    dnnl_status_t failed = dnnl_success;
#pragma omp parallel for num_threads(state->threads) schedule(static)
    for (int64_t i = 0; i < state->pieces; i++) {
        dnnl_status_t status = run_piece(step, i);
        if (status != dnnl_success) {
#pragma omp critical(rows_failed)
            failed = status;
        }
    }
    return dnnl_ok(failed, "its execution", err);
}

static bool make_workers(struct tape *tape, struct rows_state *state,
                         const struct dnnl_rows_arg *args,
                         const dnnl_memory_desc_t *const scratch[2], struct err *err)
{
    dnnl_engine_t engine = dnnl_of(tape)->engine;
    state->workers = calloc((size_t)state->threads, sizeof *state->workers);
    bool ok = state->workers || err_memory(err, state->name);
    int n = state->n_args;
    for (int t = 0; ok && t < state->threads; t++) {
        struct worker *worker = &state->workers[t];
        ok = dnnl_ok(dnnl_stream_create(&worker->stream, engine, dnnl_stream_default_flags),
                     state->name, err);
        for (int k = 0; ok && k < 2; k++)
            for (int i = 0; ok && i < n; i++) {
                bool last = i + 1 == n && scratch[0];
                const dnnl_memory_desc_t *desc = last ? scratch[k] : args[i].desc[k];
                worker->args[k][i].arg = last ? DNNL_ARG_SCRATCHPAD : args[i].arg;
                ok = dnnl_ok(
                    dnnl_memory_create(&worker->args[k][i].memory, desc, engine, DNNL_MEMORY_NONE),
                    state->name, err);
            }
    }
    return ok;
}

/* The larger of the scratch memories of both, or NULL for both if neither needs any. */
static size_t find_scratch(const dnnl_primitive_desc_t pd[2], const dnnl_memory_desc_t *out[2])
{
    size_t most = 0;
    for (int k = 0; k < 2; k++) {
        out[k] = pd_desc(pd[k], dnnl_query_scratchpad_md);
        size_t bytes = dnnl_memory_desc_get_size(out[k]);
        most = bytes > most ? bytes : most;
    }
    if (most == 0)
        out[0] = out[1] = NULL;
    return (most + 63) / 64 * 64;
}

bool dnnl_rows_step(struct tape *tape, const struct dnnl_rows *rows,
                    const struct dnnl_rows_arg *args, int n_args, struct err *err)
{
    const dnnl_memory_desc_t *scratch[2];
    struct rows_state state = { .threads = tape->options.threads,
                                .pieces = ceil_div(rows->rows, rows->piece),
                                .has_rest = rows->rows % rows->piece != 0 };
    state.thread_bytes = find_scratch(rows->pd, scratch);
    struct step_spec spec = { "oneDNN", rows_run, &state, sizeof state, rows->flops };
    struct step *step = step_add(tape, &spec, err);
    if (!step)
        return false;
    struct rows_state *kept = step->state;
    step->destroy = rows_destroy;
    snprintf(kept->name, sizeof kept->name, "%s %s", rows->what, pd_name(rows->pd[0]));
    step->kernel = kept->name;
    bool ok = true;
    for (int k = 0; ok && k < 2; k++)
        ok = dnnl_ok(dnnl_primitive_create(&kept->primitives[k], rows->pd[k]), kept->name, err);
    for (int i = 0; ok && i < n_args; i++)
        if (args[i].desc[0]) {
            kept->step[i] = args[i].each_row ? dnnl_memory_desc_get_size(args[i].desc[0]) : 0;
            ok = step_use(step, args[i].slot, args[i].access, err);
        }
    if (ok && scratch[0])
        ok = step_use(step, slot_new(tape, (size_t)kept->threads * kept->thread_bytes),
                      ACCESS_WRITE, err);
    kept->n_args = step->n_slots;
    return ok && make_workers(tape, kept, args, scratch, err);
}
