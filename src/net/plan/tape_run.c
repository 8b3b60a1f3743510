/* tape_run.c: running the steps of a tape. */
#include <omp.h>
#include <time.h>
#include "base/clock.h"
#include "net/plan/tape.h"

static void tell_gradients(const struct tape *tape, int step)
{
    for (int32_t i = 0; tape->hook && i < tape->graph->n_values; i++) {
        const struct value_state *state = &tape->values[i];
        if (state->grad_last == step)
            tape->hook(tape->hook_arg, i, tape->gradients + state->grad_offset,
                       shape_count(graph_shape(tape->graph, i)));
    }
}

/* On one thread the processor's time is taken, which other programs disturb less. */
static double clock_s(const struct tape *tape)
{
    struct timespec now;
    if (tape->options.threads > 1 || clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0)
        return clock_monotonic_s();
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void note_time(struct step *step, double seconds)
{
    if (step->runs == 0 || seconds < step->seconds)
        step->seconds = seconds;
    step->runs++;
}

/* The reason keeps its kind; the layer and the kernel are put in front of it. */
static bool blame(const struct tape *tape, const struct step *step, const struct err *why,
                  struct err *err)
{
    const char *layer = step->node < 0 ? tape->graph->name : tape->graph->nodes[step->node].name;
    return err_set(err, why->kind, "%.200s: the kernel %.100s failed: %.600s", layer, step->kernel,
                   why->text);
}

/* Messages that are under way behind a step get time to move. */
static bool move_messages(const struct step *step, bool ok, int *under_way,
                          const struct plan_peers **peers, struct err *why)
{
    if (step->message != MESSAGE_NONE)
        *peers = step->peers;
    *under_way += (step->message == MESSAGE_START) - (step->message == MESSAGE_END);
    if (ok && *under_way > 0)
        ok = (*peers)->progress((*peers)->arg, why);
    if (!ok && *peers && (*under_way > 0 || step->message != MESSAGE_NONE))
        (*peers)->abandon((*peers)->arg);
    return ok;
}

static bool run_step(const struct step *step, struct err *err)
{
    if (step->units <= 1)
        return step->run(step, err);
    struct step one = *step;
    bool ok = true;
    for (int64_t u = 0; ok && u < step->units; u++) {
        ok = step->run(&one, err);
        for (int k = 0; k < step->n_slots; k++)
            if (one.at[k])
                one.at[k] = (char *)one.at[k] + step->unit_bytes[k];
    }
    return ok;
}

bool tape_run(struct tape *tape, int begin, int end, enum step_phase phase, struct err *err)
{
    int threads = omp_get_max_threads(), under_way = 0;
    const struct plan_peers *peers = NULL;
    bool ok = true;
    omp_set_num_threads(tape->options.threads);
    for (int i = begin; i < end && ok; i++) {
        struct step *step = &tape->steps[i];
        if (step->phase != phase || step->dropped || (step->statistics && tape->hold))
            continue;
        double start = tape->options.profile ? clock_s(tape) : 0;
        struct err why = { 0 };
        ok = move_messages(step, run_step(step, &why), &under_way, &peers, &why);
        if (tape->options.profile)
            note_time(step, clock_s(tape) - start);
        if (!ok)
            blame(tape, step, &why, err);
        if (ok && phase == PHASE_BACKWARD && tape->hook)
            tell_gradients(tape, i);
        if (ok && tape->step_hook && phase != PHASE_PREPARE)
            tape->step_hook(tape->step_arg);
    }
    omp_set_num_threads(threads);
    return ok;
}
