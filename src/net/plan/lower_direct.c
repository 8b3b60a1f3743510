/* lower_direct.c: convolutions as steps of our own direct kernels, for inference, where oneDNN's
 * were measured to be slower. See docs/kernels.md. */
#include <stdlib.h>
#include "base/divide.h"
#include "net/kernels/direct_conv.h"
#include "net/plan/lower.h"

#define MOST_TOGETHER 4

/* Whether oneDNN's direct kernels come near the peak on all but small maps: with AVX2, and where
 * there is one multiply-add of AVX-512 in a cycle. With two they do not. */
static bool is_near_peak(const struct tape *tape)
{
    return lower_level(tape) == SIMD_AVX2 || simd_multiply_adds(SIMD_AVX512) == 1;
}

static bool is_1x1(const struct plan_node *pn)
{
    const struct conv_attr *a = &pn->node->attr.conv;
    return a->kernel[0] == 1 && a->kernel[1] == 1 && a->stride[0] == 1 && a->stride[1] == 1 &&
           a->pad[0] == 0 && a->pad[1] == 0 && a->pad[2] == 0 && a->pad[3] == 0;
}

/* Small maps of several images would read the weights once for each. */
static bool has_pixels(const struct plan_node *pn)
{
    const struct shape *y = out_shape(pn);
    return y->dim[0] == 1 || y->dim[2] * y->dim[3] >= 14 * 14;
}

/* Whether the map stays in the caches: oneDNN's kernel for 1 x 1 is ahead on larger ones. */
static bool is_small(const struct plan_node *pn)
{
    const struct shape *y = out_shape(pn);
    return y->dim[2] * y->dim[3] <= 56 * 56;
}

static bool follows_max_pool(const struct plan_node *pn)
{
    const struct graph *graph = pn->tape->graph;
    value_id x = pn->node->inputs[0];
    const struct node *maker = graph_maker(graph, x);
    return maker && maker->op->kind == OP_MAX_POOL && graph_only_user(graph, x) == pn->node;
}

/* Whether the map comes from oneDNN's batch norm, behind which our kernels were measured to be
 * slower than oneDNN's, and than themselves behind others. */
static bool is_cold(const struct plan_node *pn)
{
    const struct graph *graph = pn->tape->graph;
    const struct node *maker = graph_maker(graph, pn->node->inputs[0]);
    if (maker && maker->op->kind == OP_RELU)
        maker = graph_maker(graph, maker->inputs[0]);
    return maker && maker->op->kind == OP_BATCH_NORM;
}

static bool has_strides(const struct plan_node *pn)
{
    const struct conv_attr *a = &pn->node->attr.conv;
    return a->stride[0] > 1 || a->stride[1] > 1;
}

/* Kernels larger than 1 x 1, where oneDNN reaches 40 to 55 % of the peak, more for a batch with the
 * tall ones (7 x 1) and with small maps of stride 2. */
static bool is_faster_for_taps(const struct plan_node *pn)
{
    const struct conv_attr *a = &pn->node->attr.conv;
    const struct shape *y = out_shape(pn);
    bool strides = has_strides(pn);
    return y->dim[0] == 1 || (strides ? y->dim[2] * y->dim[3] >= 28 * 28 : a->kernel[1] > 1);
}

/* With AVX-512 at full width, where oneDNN's reaches 85 % of the peak for wide 1 x 1 convolutions:
 * up to four blocks of outputs or an odd number of them, up to eight on small maps and with a
 * pooling. */
static bool is_faster_at_full_width(const struct plan_node *pn)
{
    const struct conv_attr *a = &pn->node->attr.conv;
    const struct shape *y = out_shape(pn);
    int64_t blocks = ceil_div(y->dim[1], pn->tape->block);
    if (a->kernel[0] * a->kernel[1] > 1)
        return is_faster_for_taps(pn);
    int64_t most = is_small(pn) || follows_max_pool(pn) ? 8 : 4;
    return is_1x1(pn) && blocks > 1 && (blocks <= most || blocks % 2 == 1) && has_pixels(pn);
}

/* Where oneDNN's kernels come near the peak: rows of up to 8 pixels, which do not fill their
 * registers (with AVX-512 it takes several images at once), and 1 x 1 of one image on small maps or
 * with few outputs. With AVX-512 a residual is waited for on all but the smallest maps. */
static bool is_faster_near_peak(const struct plan_node *pn)
{
    const struct shape *y = out_shape(pn);
    bool avx2 = lower_level(pn->tape) == SIMD_AVX2, one = y->dim[0] == 1;
    if (!is_1x1(pn))
        return y->dim[3] <= 8 && (one || avx2);
    int64_t side = avx2 || !has_input(pn, 3) ? 14 : 8;
    return one && y->dim[1] > pn->tape->block && !is_cold(pn) &&
           (y->dim[2] * y->dim[3] <= side * side || y->dim[1] <= 32);
}

/* 3 x 3 of stride 1 that Winograd's method did not get (memory) are as with --kernels direct. */
static bool is_faster(const struct plan_node *pn)
{
    const struct conv_attr *a = &pn->node->attr.conv;
    if (!has_strides(pn) && a->kernel[0] == 3 && a->kernel[1] == 3)
        return false;
    return is_near_peak(pn->tape) ? is_faster_near_peak(pn) : is_faster_at_full_width(pn);
}

/* Whether 1 x 1 convolutions of this input gain by being worked on together. */
static bool gains_together(const struct plan_node *pn)
{
    const struct shape *y = out_shape(pn);
    if (!is_near_peak(pn->tape))
        return has_pixels(pn) && is_small(pn);
    int64_t side = lower_level(pn->tape) == SIMD_AVX2 ? 28 : 14;
    return y->dim[0] == 1 && y->dim[2] * y->dim[3] <= side * side;
}

static bool is_suitable(const struct plan_node *pn)
{
    const struct conv_attr *a = &pn->node->attr.conv;
    const struct tape *tape = pn->tape;
    if (pn->node->op->kind != OP_CONV || tape->options.mode != PLAN_INFER || tape->options.direct ||
        a->groups != 1 || !direct_conv_available(lower_level(tape)) ||
        !graph_is_parameter(tape->graph, pn->node->inputs[1]) ||
        (has_input(pn, 2) && !graph_is_parameter(tape->graph, pn->node->inputs[2])))
        return false;
    return (a->activation == ACT_NONE || a->activation == ACT_RELU) &&
           in_shape(pn, 0)->dim[1] >= tape->block;
}

/* 1 x 1 convolutions of one input: this one and those that follow in the graph, which are worked on
 * together. members [MOST_TOGETHER]. */
static int find_group(const struct plan_node *pn, struct plan_node *members)
{
    const struct graph *graph = pn->tape->graph;
    bool alike = is_1x1(pn) && gains_together(pn) && !has_input(pn, 3);
    int n = 0;
    members[n++] = *pn;
    for (int32_t i = (int32_t)(pn->node - graph->nodes) + 1; alike && i < graph->n_nodes; i++) {
        struct plan_node other = { pn->tape, &graph->nodes[i], &pn->tape->nodes[i] };
        if (other.node->op->kind == OP_CONV && other.node->inputs[0] == pn->node->inputs[0] &&
            !other.state->fused && is_suitable(&other) && is_1x1(&other) && !has_input(&other, 3) &&
            n < MOST_TOGETHER)
            members[n++] = other;
    }
    return n;
}

bool lower_direct_takes(const struct plan_node *pn)
{
    struct plan_node members[MOST_TOGETHER];
    return is_suitable(pn) && (is_faster(pn) || find_group(pn, members) > 1);
}

static struct direct_conv conv_of(const struct plan_node *pn, const struct pool_window *pool)
{
    const struct conv_attr *a = &pn->node->attr.conv;
    const struct shape *x = in_shape(pn, 0), *y = out_shape(pn);
    struct direct_conv c = { .level = lower_level(pn->tape),
                             .batch = x->dim[0],
                             .in_channels = x->dim[1],
                             .out_channels = y->dim[1],
                             .height = x->dim[2],
                             .width = x->dim[3],
                             .out_height = y->dim[2],
                             .out_width = y->dim[3],
                             .relu = a->activation == ACT_RELU,
                             .threads = pn->tape->options.threads,
                             .pool = pool };
    for (int i = 0; i < 2; i++) {
        c.kernel[i] = a->kernel[i], c.stride[i] = a->stride[i];
        c.dilation[i] = a->dilation[i], c.pad[i] = a->pad[i];
    }
    direct_conv_plan(&c);
    return c;
}

static bool run_weights(const struct step *step, struct err *err)
{
    (void)err;
    direct_conv_weights(step->state, step->at[0], step->at[1], step->at[2]);
    return true;
}

/* What one step does; its slots: x, scratch, residual, then weights and output of each. */
struct direct_group {
    int n;
    struct direct_conv conv[MOST_TOGETHER];
    struct pool_window pool; /* where conv[0].pool points */
    int32_t *tables;         /* of the window; NULL: no pooling */
};
enum { GROUP_X, GROUP_SCRATCH, GROUP_RESIDUAL, GROUP_FIRST };

static void group_free(void *at)
{
    struct direct_group *group = at;
    free(group->tables);
    free(group);
}

static bool run_group(const struct step *step, struct err *err)
{
    (void)err;
    const struct direct_group *group = step->state;
    struct direct_work works[MOST_TOGETHER];
    for (int i = 0; i < group->n; i++)
        works[i] =
            (struct direct_work){ &group->conv[i], step->at[GROUP_FIRST + 2 * i],
                                  step->at[GROUP_RESIDUAL], step->at[GROUP_FIRST + 2 * i + 1] };
    direct_conv_run(works, group->n, step->at[GROUP_X], step->at[GROUP_SCRATCH]);
    return true;
}

struct direct_names {
    const char *pooled, *other, *together[MOST_TOGETHER + 1];
    struct {
        int64_t kernel[2], stride;
        const char *name;
    } of[7];
};

#define NAMES(isa)                                                                                 \
    {                                                                                              \
        "max pool + conv 1x1 direct " isa, "conv direct " isa,                                     \
            { "", "conv 1x1 direct " isa, "2 conv 1x1 direct " isa, "3 conv 1x1 direct " isa,      \
              "4 conv 1x1 direct " isa },                                                          \
        {                                                                                          \
            { { 3, 3 }, 2, "conv 3x3 s2 direct " isa },                                            \
                { { 1, 1 }, 2, "conv 1x1 s2 direct " isa },                                        \
                { { 5, 5 }, 1, "conv 5x5 direct " isa }, { { 1, 7 }, 1, "conv 1x7 direct " isa },  \
                { { 7, 1 }, 1, "conv 7x1 direct " isa }, { { 1, 3 }, 1, "conv 1x3 direct " isa },  \
                { { 3, 1 }, 1, "conv 3x1 direct " isa },                                           \
        }                                                                                          \
    }

static const char *kernel_name(const struct direct_group *group)
{
    static const struct direct_names avx2 = NAMES("avx2"), avx512 = NAMES("avx512");
    const struct direct_conv *c = &group->conv[0];
    const struct direct_names *names = c->level == SIMD_AVX512 ? &avx512 : &avx2;
    if (group->tables)
        return names->pooled;
    for (size_t i = 0; i < sizeof names->of / sizeof *names->of; i++)
        if (c->kernel[0] == names->of[i].kernel[0] && c->kernel[1] == names->of[i].kernel[1] &&
            c->stride[0] == names->of[i].stride && c->stride[1] == names->of[i].stride)
            return names->of[i].name;
    return c->kernel[0] * c->kernel[1] == 1 && c->stride[0] == 1 ? names->together[group->n]
                                                                 : names->other;
}

static int weights_of(struct plan_node *pn, const struct direct_conv *c, struct err *err)
{
    struct step_spec spec = { "weight direct", run_weights, c, sizeof *c, 0 };
    struct step_layout layout = { c->weight_floats * sizeof(float),
                                  (uint64_t)(1 << 16 | c->lanes), /* not those of other kernels */
                                  true };
    return step_prepare(pn, &spec, &layout, err);
}

/* Weights and output of every member go to slots [n][2]. */
static double add_members(struct plan_node *members, struct direct_group *group, int slots[][2],
                          struct err *err)
{
    double flops = 0;
    for (int i = 0; i < group->n; i++) {
        const struct direct_conv *c = &group->conv[i];
        group->conv[i] = conv_of(&members[i], group->tables ? &group->pool : NULL);
        slots[i][0] = weights_of(&members[i], c, err);
        slots[i][1] = out_slot(&members[i], LAYOUT_BLOCKED);
        members[i].state->fused = i > 0;
        flops += 2 * (double)(c->batch * c->out_channels * c->out_height * c->out_width) *
                 (double)(c->in_channels * c->kernel[0] * c->kernel[1]);
    }
    direct_conv_join(group->conv, group->n);
    return flops;
}

/* The step of a group, whose tables become its own also on failure. */
static struct step *add_group(struct tape *tape, const struct direct_group *group, double flops,
                              struct err *err)
{
    struct step_spec spec = { kernel_name(group), run_group, group, sizeof *group, flops };
    struct step *step = step_add(tape, &spec, err);
    if (!step) {
        free(group->tables);
        return NULL;
    }
    struct direct_group *own = step->state;
    step->destroy = group_free;
    own->conv[0].pool = group->tables ? &own->pool : NULL;
    return step;
}

bool lower_direct_forward(struct plan_node *pn, struct err *err)
{
    struct plan_node members[MOST_TOGETHER];
    struct direct_group group = { .n = find_group(pn, members) };
    int slots[MOST_TOGETHER][2], x = NO_SLOT;
    if (!is_1x1(pn) || !lower_take_max_pool(pn, &group.pool, &group.tables, &x))
        x = in_slot(pn, 0, LAYOUT_BLOCKED, err);
    int residual = has_input(pn, 3) ? in_slot(pn, 3, LAYOUT_BLOCKED, err) : NO_SLOT;
    double flops = add_members(members, &group, slots, err);
    int scratch = slot_new(pn->tape, group.conv[0].scratch_floats * sizeof(float));
    struct step *step = add_group(pn->tape, &group, flops, err);
    if (!step || !step_use(step, x, ACCESS_READ, err) ||
        !step_use(step, scratch, ACCESS_WRITE, err))
        return false;
    if (has_input(pn, 3) && residual == NO_SLOT)
        return err_memory(err, "conv");
    step_use_optional(step, residual, ACCESS_READ);
    for (int i = 0; i < group.n; i++)
        if (!step_use(step, slots[i][0], ACCESS_READ, err) ||
            !step_use(step, slots[i][1], ACCESS_WRITE, err))
            return false;
    if (residual != NO_SLOT)
        step_in_place(step, GROUP_RESIDUAL, -1, GROUP_FIRST + 1);
    return true;
}
