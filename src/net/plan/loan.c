/* loan.c: memory lent to a plan that is made of parts, given on to them; see execution.h. */
#include "net/plan/execution.h"

struct loan loan_of(const struct plan_options *options)
{
    return (struct loan){ options->arena, options->arena ? options->arena_room : 0 };
}

size_t loan_bytes(size_t bytes)
{
    return (bytes + LOAN_ALIGNMENT - 1) / LOAN_ALIGNMENT * LOAN_ALIGNMENT;
}

void *loan_take(struct loan *loan, size_t bytes)
{
    bytes = loan_bytes(bytes);
    if (!loan->at || loan->room < bytes)
        return NULL;
    void *taken = loan->at;
    loan->at += bytes, loan->room -= bytes;
    return taken;
}

bool loan_plan(struct loan *loan, const struct graph *graph, const struct plan_options *options,
               struct plan **out, struct err *err)
{
    struct plan_options given = *options;
    given.arena = loan->at, given.arena_room = loan->room;
    if (!plan_new(graph, &given, out, err))
        return false;
    if (plan_memory(*out).lent)
        loan_take(loan, plan_memory(*out).arena);
    return true;
}

void plan_memory_add(struct plan_memory *sum, const struct plan *part)
{
    struct plan_memory m = plan_memory(part);
    sum->lent = sum->lent && m.lent;
    sum->arena += m.arena, sum->unshared += m.unshared, sum->weights += m.weights;
    sum->shared += m.shared, sum->winograd += m.winograd, sum->gradients += m.gradients;
    sum->gradients_lent = m.gradients_lent;
}
