/* node_costs.c: times and memory of a tape, by node. */
#include "net/plan/node_costs.h"
#include <stdlib.h>
#include <string.h>
#include "net/plan/execution.h"
#include "net/plan/tape.h"

/* Where the tape is that of a graph derived from the plan's, nodes are found by their names. */
static int32_t node_of(const struct graph *graph, const struct tape *tape, const struct step *step)
{
    if (step->node < 0 || tape->graph == graph)
        return step->node;
    value_id value = graph_find(graph, tape->graph->nodes[step->node].name);
    return value == NO_VALUE ? -1 : graph->values[value].node;
}

bool plan_node_times(const struct plan *plan, struct plan_node_times *out, struct err *err)
{
    const struct tape *tape = plan->ops->tape ? plan->ops->tape(plan) : NULL;
    if (!tape)
        return err_set(err, ERR_USAGE, "%s: a plan of kind %s does not measure its nodes",
                       plan->graph->name, plan->ops->name);
    memset(out, 0, (size_t)plan->graph->n_nodes * sizeof *out);
    for (int i = 0; i < tape->n_steps; i++) {
        const struct step *step = &tape->steps[i];
        int32_t node = node_of(plan->graph, tape, step);
        if (node < 0 || step->runs == 0 || step->phase == PHASE_PREPARE)
            continue;
        if (step->phase == PHASE_FORWARD)
            out[node].forward_s += step->seconds;
        else
            out[node].backward_s += step->seconds;
        if (step->only_weights)
            out[node].weights_s += step->seconds;
    }
    return true;
}

/* Whether a slot has memory in the arena that no other is a part of. */
static bool is_piece(const struct tape *tape, int slot)
{
    const struct slot *s = &tape->slots[slot];
    return s->root == slot && s->first >= 0 && s->home == SLOT_ARENA;
}

/* From the lifetimes of slots: those that begin forward and end backward are kept by the node that
 * makes them; all others are what is being worked on. */
static bool sum_slots(const struct tape *tape, struct plan_node_memory *out, struct err *err)
{
    size_t *working = calloc((size_t)tape->n_steps + 2, sizeof *working);
    if (!working)
        return err_memory(err, tape->graph->name);
    for (int i = 0; i < tape->n_slots; i++) {
        const struct slot *slot = &tape->slots[i];
        if (!is_piece(tape, i) || slot->last < tape->begin_backward)
            continue;
        if (slot->first >= tape->begin_backward) {
            working[slot->first] += slot->bytes;
            working[slot->last + 1] -= slot->bytes; /* wraps, and back in the sum below */
        } else if (tape->steps[slot->first].node >= 0) {
            out[tape->steps[slot->first].node].kept += slot->bytes;
        }
    }
    for (int i = 0; i < tape->n_steps; i++) {
        working[i] += i > 0 ? working[i - 1] : 0;
        int32_t node = tape->steps[i].node;
        if (i >= tape->begin_backward && node >= 0 && working[i] > out[node].working)
            out[node].working = working[i];
    }
    free(working);
    return true;
}

bool plan_node_memory(const struct graph *graph, const struct plan_options *options,
                      struct plan_node_memory *out, struct err *err)
{
    struct tape tape;
    memset(out, 0, (size_t)graph->n_nodes * sizeof *out);
    bool ok = tape_begin(&tape, graph, options, err) && tape_arrange(&tape, err) &&
              sum_slots(&tape, out, err);
    tape_free(&tape);
    return ok;
}
