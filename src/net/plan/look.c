/* look.c: looking into a tape: activations and gradients in plain order, memory, text. */
#include <stdlib.h>
#include <string.h>
#include "base/divide.h"
#include "net/kernels/peak.h"
#include "net/plan/tape.h"

/* [N, C/b, H, W, b] -> [N, C, H, W] */
static void unblock(const struct shape *shape, int block, const float *from, float *to)
{
    int64_t channels = shape->dim[1], pixels = shape->dim[2] * shape->dim[3];
    int64_t blocks = ceil_div(channels, block);
    for (int64_t n = 0; n < shape->dim[0]; n++)
        for (int64_t c = 0; c < channels; c++) {
            const float *in = from + (n * blocks + c / block) * pixels * block + c % block;
            float *out = to + (n * channels + c) * pixels;
            for (int64_t p = 0; p < pixels; p++)
                out[p] = in[p * block];
        }
}

/* What is at `at`, kept in `form`, in plain order. */
static bool read_plain(const struct tape *tape, value_id value, struct form form, const void *at,
                       float *out, struct err *err)
{
    const struct shape *shape = graph_shape(tape->graph, value);
    const struct storage *storage = &tape->graph->values[value].storage;
    int64_t count = layout_count(tape, shape, form.layout);
    float *restored = NULL;
    if (form.dtype != DTYPE_FLOAT32) {
        restored = malloc((size_t)count * sizeof *restored);
        if (!restored)
            return err_memory(err, tape->graph->values[value].name);
        stored_run(form.dtype == DTYPE_INT8 ? STORED_FROM_INT8 : STORED_FROM_BFLOAT16, count, at,
                   restored, stored_scale_of(storage), tape->options.threads);
        at = restored;
    }
    if (form.layout == LAYOUT_BLOCKED)
        unblock(shape, tape->block, at, out);
    else
        memcpy(out, at, (size_t)count * sizeof *out);
    free(restored);
    return true;
}

static bool read_value(const struct tape *tape, value_id value, int slot, struct form form,
                       float *out, struct err *err)
{
    const struct value_state *state = &tape->values[value];
    const char *name = tape->graph->values[value].name;
    if (slot == NO_SLOT)
        return err_set(err, ERR_USAGE, "%s: this plan does not compute it", name);
    if (!state->keep && !tape->options.no_sharing)
        return err_set(err, ERR_USAGE, "%s: not kept; name it in plan_options.keep", name);
    return read_plain(tape, value, form, tape->slots[slot].at, out, err);
}

bool tape_read(const struct tape *tape, value_id value, bool gradient, float *out, struct err *err)
{
    const struct value_state *state = &tape->values[value];
    if (gradient)
        return read_value(tape, value, state->gradient, FLOATS(state->native.layout), out, err);
    return read_value(tape, value, native_slot(state), state->native, out, err);
}

struct plan_memory tape_memory(const struct tape *tape)
{
    return (struct plan_memory){ .arena = tape->arena_bytes,
                                 .lent = tape->arena_lent,
                                 .unshared = tape->unshared_bytes,
                                 .weights = tape->weights_bytes,
                                 .shared = tape->shared_bytes,
                                 .winograd = tape->winograd_bytes,
                                 .gradients =
                                     (size_t)(tape->units * tape->n_gradients) * sizeof(float),
                                 .gradients_lent = tape->gradients_lent };
}

int tape_steps(const struct tape *tape)
{
    int count = 0;
    for (int i = 0; i < tape->n_steps; i++)
        count += !tape->steps[i].dropped;
    return count;
}

/* The output of the step's node, "-" for other steps. */
static const char *shape_of_step(const struct tape *tape, const struct step *step,
                                 char text[SHAPE_TEXT])
{
    if (step->node < 0)
        return "-";
    return shape_text(graph_shape(tape->graph, tape->graph->nodes[step->node].output), text);
}

static void print_step(const struct tape *tape, int i, double peak_gflops, FILE *stream)
{
    static const char *const phases[] = { "prepare", "forward", "backward", "join" };
    const struct step *step = &tape->steps[i];
    char shape[SHAPE_TEXT];
    size_t written = 0;
    for (int k = 0; k < step->n_slots; k++)
        if (step->slot[k] != NO_SLOT && (step->access[k] & ACCESS_WRITE))
            written += tape->slots[step->slot[k]].bytes;
    fprintf(stream, "%5d %-8s %-28s %-40s %-20s %9.1f KB", i, phases[step->phase],
            step->node < 0 ? "-" : tape->graph->nodes[step->node].name, step->kernel,
            shape_of_step(tape, step, shape), (double)written / 1024);
    if (step->runs)
        fprintf(stream, " %9.3f ms", step->seconds * 1e3);
    if (step->runs && step->flops > 0) {
        double gflops = step->flops / step->seconds / 1e9;
        fprintf(stream, " %8.1f GFLOP/s", gflops);
        if (peak_gflops > 0)
            fprintf(stream, " %5.1f %%", 100 * gflops / peak_gflops);
    }
    fputc('\n', stream);
}

void tape_print(const struct tape *tape, FILE *stream)
{
    static const char *const modes[] = { "infer", "train", "tune" };
    double total_s = 0, flops = 0;
    double peak = tape->options.profile ? peak_gflops(tape->options.threads) : 0;
    for (int i = 0; i < tape->n_steps; i++) {
        const struct step *step = &tape->steps[i];
        if (step->dropped)
            continue;
        print_step(tape, i, peak, stream);
        if (step->phase != PHASE_PREPARE && step->runs)
            total_s += step->seconds, flops += step->flops;
    }
    struct plan_memory m = tape_memory(tape);
    fprintf(stream,
            "%s, %d threads, %d steps; arena %.1f MB (%.1f MB without sharing), weights %.1f MB, "
            "gradients %.1f MB",
            modes[tape->options.mode], tape->options.threads, tape_steps(tape),
            (double)m.arena / 1e6, (double)m.unshared / 1e6, (double)m.weights / 1e6,
            (double)m.gradients / 1e6);
    if (total_s > 0)
        fprintf(stream, "; %.3f ms, %.1f of %.1f GFLOP/s", total_s * 1e3, flops / total_s / 1e9,
                peak);
    fputc('\n', stream);
}
