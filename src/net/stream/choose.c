/* choose.c: see choose.h. */
#include "net/stream/choose.h"

#include <stdio.h>
#include "net/stream/budget.h"

#define MB 1000000

static const char *const way_names[] = { "plain", "half", "recompute", "stream" };

/* What a plan of the whole graph takes besides its arena. */
static size_t gradient_bytes(const struct graph *graph, const struct plan_options *options)
{
    bool own = options->mode != PLAN_INFER && !options->gradients;
    return own ? (size_t)graph_parameter_count(graph) * sizeof(float) : 0;
}

/* The fastest way to run the whole graph by a plan of at most `room` bytes. *bytes: what it takes
 * then. False: none; the least that one would take, or SIZE_MAX: unknown. */
static bool whole_way(const struct graph *graph, struct plan_options *options, size_t room,
                      bool bf16, enum memory_way *way, size_t *bytes, struct err *err)
{
    static const enum plan_saving savings[] = {
        [WAY_PLAIN] = SAVING_ALL, [WAY_HALF] = SAVING_HALF, [WAY_RECOMPUTE] = SAVING_RECOMPUTE
    };
    size_t own = 0; /* of the plan besides its arena */
    *bytes = SIZE_MAX;
    for (*way = WAY_PLAIN; *way < WAY_STREAM; (*way)++) {
        struct plan_estimate estimate = { .arena = SIZE_MAX };
        if (*way == WAY_HALF && !bf16)
            continue;
        options->saving = savings[*way];
        options->arena_budget = *way != WAY_RECOMPUTE ? 0 : room > own ? room - own : 1;
        own = plan_estimate(graph, options, &estimate, err) ? estimate.plan : own;
        if (estimate.arena < SIZE_MAX - own && estimate.arena + own < *bytes)
            *bytes = estimate.arena + own;
        if (*bytes <= room)
            return true;
    }
    return false;
}

/* Nothing fits: the least limit that would, if any is known. */
static bool refuse(const struct graph *graph, const struct memory_limit *limit, size_t least,
                   struct err *err)
{
    const struct shape *image = graph_shape(graph, graph->inputs[0].value);
    char size[64] = "";
    if (image->rank == 4)
        snprintf(size, sizeof size, " at %lld x %lld px", (long long)image->dim[3],
                 (long long)image->dim[2]);
    return err_set(err, ERR_MEMORY,
                   "%s%s needs at least %zu MB, but the limit is %lld MB; raise it, or use a "
                   "smaller batch or image",
                   graph->name, size, least / MB + 1, (long long)limit->peak_mb);
}

bool choose_plan(const struct graph *graph, const struct plan_options *options,
                 const struct memory_limit *limit, struct plan **out, struct memory_chosen *chosen,
                 struct err *err)
{
    struct plan_options made = *options;
    struct plan_stream stream = options->stream ? *options->stream : (struct plan_stream){ 0 };
    stream.budget = limit->budget, stream.besides = limit->besides;
    if (limit->budget == 0)
        budget_of_process(limit->peak_mb, limit->coming, &stream);
    size_t besides = stream.besides + gradient_bytes(graph, options), bytes;
    size_t taken = stream.besides + stream.budget, room = taken > besides ? taken - besides : 0;
    made.stream = NULL;
    if (whole_way(graph, &made, room, limit->bf16, &chosen->way, &bytes, err)) {
        chosen->predicted = besides + bytes;
        return plan_new(graph, &made, out, err);
    }
    *out = NULL;
    if (!options->stream) /* the error has what failed if it is not the memory */
        return bytes < SIZE_MAX ? refuse(graph, limit, besides + bytes, err) : false;
    made.saving = SAVING_ALL, made.arena_budget = 0;
    stream.bf16 = limit->bf16;
    made.stream = &stream;
    chosen->way = WAY_STREAM;
    if (!plan_new(graph, &made, out, err))
        return false;
    struct plan_streamed streamed = { 0 };
    plan_streamed(*out, &streamed);
    chosen->predicted = stream.besides + streamed.predicted_bytes;
    return true;
}

void choose_describe(const struct plan *plan, const struct memory_chosen *chosen,
                     char text[CHOSEN_TEXT])
{
    struct plan_streamed s;
    char how[CHOSEN_TEXT / 2] = "";
    if (chosen->way == WAY_STREAM && plan_streamed(plan, &s))
        snprintf(how, sizeof how,
                 ", %lld x %lld tiles of %lld px, strips of %.0f MB, %.0f MB of them spilled",
                 (long long)s.tiles_down, (long long)s.tiles_across, (long long)s.tile_px,
                 (double)s.strip_bytes / MB, (double)s.strips_spilled / MB);
    snprintf(text, CHOSEN_TEXT, "%s%s; predicted peak %.0f MB", way_names[chosen->way], how,
             (double)chosen->predicted / MB);
}
