/* lower_group_norm.c: group normalisation in the layout of its input, by our own kernels, together
 * with a relu or SiLU that alone reads it. */
#include "net/kernels/group_norm.h"
#include "net/plan/lower.h"

enum { WEIGHT = 1, BIAS };

/* A relu could see other signs in the backward pass where x is rounded between the passes. */
static enum group_norm_then then_of(const struct plan_node *pn)
{
    const struct tape *tape = pn->tape;
    const struct node *user = graph_only_user(tape->graph, pn->node->output);
    bool rounded = tape->options.mode != PLAN_INFER && tape->options.saving == SAVING_HALF;
    if (!user || tape->options.no_sharing || tape->values[pn->node->output].keep)
        return GROUP_NORM_THEN_NOTHING;
    if (user->op->kind == OP_SILU)
        return GROUP_NORM_THEN_SILU;
    return user->op->kind == OP_RELU && !rounded ? GROUP_NORM_THEN_RELU : GROUP_NORM_THEN_NOTHING;
}

static struct group_norm norm_of(const struct plan_node *pn, enum layout layout)
{
    const struct shape *x = in_shape(pn, 0);
    int64_t extents[5] = { x->dim[0], x->dim[1], shape_span(x, 2, x->rank), 1, 1 };
    if (x->rank == 4)
        layout_extents(pn->tape, x, layout, extents);
    return (struct group_norm){ .level = simd_best(),
                                .threads = pn->tape->options.threads,
                                .images = extents[0],
                                .blocks = extents[1],
                                .area = extents[2] * extents[3],
                                .block = extents[4],
                                .channels = x->dim[1],
                                .groups = pn->node->attr.norm.groups,
                                .epsilon = pn->node->attr.norm.epsilon,
                                .then = then_of(pn) };
}

static bool run(const struct step *step, struct err *err)
{
    (void)err;
    void *const *at = step->at;
    group_norm_run(step->state, at[0], at[1], at[2], at[3], at[4], at[5]);
    return true;
}

static bool run_back(const struct step *step, struct err *err)
{
    (void)err;
    void *const *at = step->at;
    group_norm_back(step->state, at[0], at[1], at[2], at[3], at[4], at[5], at[7], at[8], at[6]);
    return true;
}

static bool use_all(struct step *step, const int *slots, int n, enum access access, struct err *err)
{
    bool ok = step != NULL;
    for (int i = 0; ok && i < n; i++)
        ok = step_use(step, slots[i], access, err);
    return ok;
}

bool lower_group_norm_forward(struct plan_node *pn, struct err *err)
{
    static const char *const names[] = { "group norm", "group norm relu", "group norm silu" };
    struct tape *tape = pn->tape;
    enum layout layout = lower_norm_layout(pn);
    struct group_norm norm = norm_of(pn, layout);
    if (norm.then != GROUP_NORM_THEN_NOTHING)
        tape->nodes[graph_only_user(tape->graph, pn->node->output) - tape->graph->nodes].fused =
            true;
    pn->state->slot[0] = slot_new(tape, group_norm_stats_bytes(&norm));
    const int reads[] = { in_slot(pn, 0, layout, err), in_slot(pn, WEIGHT, LAYOUT_PLAIN, err),
                          in_slot(pn, BIAS, LAYOUT_PLAIN, err) };
    const int writes[] = { out_slot(pn, layout), pn->state->slot[0],
                           slot_new(tape, group_norm_scratch(&norm)) };
    struct step_spec spec = { names[norm.then], run, &norm, sizeof norm, 0 };
    struct step *step = step_add(tape, &spec, err);
    if (!use_all(step, reads, 3, ACCESS_READ, err) || !use_all(step, writes, 3, ACCESS_WRITE, err))
        return false;
    step_in_place(step, 0, -1, 3);
    return true;
}

bool lower_group_norm_backward(struct plan_node *pn, struct err *err)
{
    static const char *const names[] = { "group norm back", "group norm relu back",
                                         "group norm silu back" };
    enum layout layout = out_layout(pn);
    struct group_norm norm = norm_of(pn, layout);
    norm.images = unit_rows(pn, norm.images);
    int dx = gradient_slot(pn, 0, layout);
    const int reads[] = { in_slot(pn, 0, layout, err), in_slot(pn, WEIGHT, LAYOUT_PLAIN, err),
                          in_slot(pn, BIAS, LAYOUT_PLAIN, err), pn->state->slot[0],
                          out_gradient(pn, layout, err) };
    const int writes[] = { dx, slot_new(pn->tape, group_norm_scratch(&norm)) };
    struct step_spec spec = { names[norm.then], run_back, &norm, sizeof norm, 0 };
    struct step *step = step_add(pn->tape, &spec, err);
    if (!use_all(step, reads, 5, ACCESS_READ, err) || !use_all(step, writes, 2, ACCESS_WRITE, err))
        return false;
    step_use_optional(step, parameter_gradient_slot(pn, WEIGHT), ACCESS_BOTH);
    step_use_optional(step, parameter_gradient_slot(pn, BIAS), ACCESS_BOTH);
    step_in_place(step, 4, -1, 5);
    step_each_unit(pn->tape, step, 1u << 0 | 1u << 3 | 1u << 4 | 1u << 5);
    return !wants_gradient(pn, 0) || gradient_add(pn, 0, dx, layout, err);
}
