/* dnnl_batch_norm.c: batch normalisation with the statistics of the batch (PLAN_TRAIN; the running
 * statistics are updated as in PyTorch, with the unbiased variance) or with the running statistics.
 */
#include "net/plan/dnnl_step.h"
#include "net/plan/lower.h"
#include "net/plan/sync_norm.h"

enum { WEIGHT = 1, BIAS, RUNNING_MEAN, RUNNING_VAR };

static dnnl_memory_desc_t data_desc(const struct plan_node *pn, enum layout layout)
{
    const struct shape *x = in_shape(pn, 0);
    if (x->rank == 4)
        return desc_layout(pn->tape, x, layout);
    struct shape image = SHAPE(x->dim[0], x->dim[1], shape_span(x, 2, x->rank), 1);
    return desc_plain(&image);
}

/* The batch as it is spread over processes, if it is (n_groups > 0). */
static struct sync_norm sync_of(const struct plan_node *pn, enum layout layout)
{
    const struct plan_options *options = &pn->tape->options;
    const struct shape *x = in_shape(pn, 0);
    int64_t extents[5] = { x->dim[0], x->dim[1], shape_span(x, 2, x->rank), 1, 1 };
    if (x->rank == 4)
        layout_extents(pn->tape, x, layout, extents);
    struct sync_norm s = { .n = extents[0],
                           .blocks = extents[1],
                           .area = extents[2] * extents[3],
                           .b = extents[4],
                           .channels = x->dim[1],
                           .epsilon = pn->node->attr.norm.epsilon };
    for (int g = 0; g < PEER_GROUPS && options->mode == PLAN_TRAIN; g++)
        if ((options->norm_peers >> g & 1) && options->peers[g])
            s.groups[s.n_groups++] = options->peers[g];
    return s;
}

static bool is_spread(const struct plan_node *pn)
{
    return sync_of(pn, LAYOUT_PLAIN).n_groups > 0;
}

static bool run_statistics(const struct step *step, struct err *err)
{
    return sync_norm_statistics(step->state, step->at[0], step->at[1], step->at[2], err);
}

static bool add_statistics(struct plan_node *pn, int x, int mean, int variance, enum layout layout,
                           struct err *err)
{
    struct sync_norm s = sync_of(pn, layout);
    struct step_spec spec = { "statistics over ranks", run_statistics, &s, sizeof s, 0 };
    struct step *step = step_add(pn->tape, &spec, err);
    if (step)
        step->talks = true;
    return step && step_use(step, x, ACCESS_READ, err) && step_use(step, mean, ACCESS_WRITE, err) &&
           step_use(step, variance, ACCESS_WRITE, err);
}

static bool run_correct(const struct step *step, struct err *err)
{
    return sync_norm_correct(step->state, step->at[0], step->at[1], step->at[2], step->at[3],
                             step->at[4], step->at[5], step->at[6], err);
}

/* slots: x, mean, variance, weight, dweight, dbias; then dx. */
static bool add_correction(struct plan_node *pn, const int slots[6], int dx, enum layout layout,
                           struct err *err)
{
    struct sync_norm s = sync_of(pn, layout);
    struct step_spec spec = { "statistics back", run_correct, &s, sizeof s, 0 };
    struct step *step = step_add(pn->tape, &spec, err);
    bool ok = step != NULL;
    if (step)
        step->talks = true;
    for (int i = 0; ok && i < 6; i++)
        ok = step_use(step, slots[i], ACCESS_READ, err);
    return ok && step_use(step, dx, ACCESS_BOTH, err);
}

/* A relu that alone reads the output is done along with it, unless the output must be readable. */
static bool takes_relu(const struct plan_node *pn)
{
    const struct tape *tape = pn->tape;
    const struct node *user = graph_only_user(tape->graph, pn->node->output);
    return user && user->op->kind == OP_RELU && !tape->options.no_sharing &&
           !tape->values[pn->node->output].keep;
}

static unsigned norm_flags(const struct plan_node *pn)
{
    bool global = pn->tape->options.mode != PLAN_TRAIN || is_spread(pn);
    return dnnl_use_scale | dnnl_use_shift | (global ? dnnl_use_global_stats : 0u) |
           (takes_relu(pn) ? dnnl_fuse_norm_relu : 0u);
}

/* Which elements the fused relu let through, for the backward pass; NULL: not needed. */
static const dnnl_memory_desc_t *workspace_desc(const_dnnl_primitive_desc_t pd)
{
    const dnnl_memory_desc_t *desc = pd_desc(pd, dnnl_query_workspace_md);
    return desc && dnnl_memory_desc_get_size(desc) ? desc : NULL;
}

struct running {
    int64_t channels;
    float momentum, unbiased;
};

static bool run_running(const struct step *step, struct err *err)
{
    (void)err;
    const struct running *r = step->state;
    const float *mean = step->at[0], *variance = step->at[1];
    float *running_mean = step->at[2], *running_variance = step->at[3];
    for (int64_t c = 0; c < r->channels; c++) {
        running_mean[c] += r->momentum * (mean[c] - running_mean[c]);
        running_variance[c] += r->momentum * (variance[c] * r->unbiased - running_variance[c]);
    }
    return true;
}

static bool update_running(struct plan_node *pn, int mean, int variance, struct err *err)
{
    const struct shape *x = in_shape(pn, 0);
    double count = (double)(shape_count(x) / x->dim[1]);
    struct sync_norm s = sync_of(pn, LAYOUT_PLAIN);
    count *= sync_norm_parts(&s);
    struct running r = { x->dim[1], pn->node->attr.norm.momentum,
                         count > 1 ? (float)(count / (count - 1)) : 1 };
    struct step_spec spec = { "running statistics", run_running, &r, sizeof r, 0 };
    struct step *step = step_add(pn->tape, &spec, err);
    return step && step_use(step, mean, ACCESS_READ, err) &&
           step_use(step, variance, ACCESS_READ, err) &&
           step_use(step, in_slot(pn, RUNNING_MEAN, LAYOUT_PLAIN, err), ACCESS_BOTH, err) &&
           step_use(step, in_slot(pn, RUNNING_VAR, LAYOUT_PLAIN, err), ACCESS_BOTH, err);
}

bool lower_batch_norm_forward(struct plan_node *pn, struct err *err)
{
    struct tape *tape = pn->tape;
    bool batch = tape->options.mode == PLAN_TRAIN;
    enum layout layout = in_layout(pn, 0);
    dnnl_memory_desc_t data = data_desc(pn, layout), row = desc_plain(in_shape(pn, WEIGHT));
    dnnl_batch_normalization_desc_t desc;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_prop_kind_t prop =
        tape->options.mode == PLAN_INFER ? dnnl_forward_inference : dnnl_forward_training;
    bool ok = attr_new(&attr, err) &&
              dnnl_ok(dnnl_batch_normalization_forward_desc_init(
                          &desc, prop, &data, pn->node->attr.norm.epsilon, norm_flags(pn)),
                      "batch norm", err) &&
              dnnl_ok(dnnl_primitive_desc_create(&pd, &desc, attr, dnnl_of(tape)->engine, NULL),
                      "batch norm", err);
    dnnl_primitive_attr_destroy(attr);
    pn->state->hint = pd;
    if (!ok)
        return false;
    int x = in_slot(pn, 0, layout, err), y = out_slot(pn, layout);
    int mean = batch ? slot_new(tape, (size_t)row.dims[0] * sizeof(float))
                     : in_slot(pn, RUNNING_MEAN, LAYOUT_PLAIN, err);
    int variance = batch ? slot_new(tape, (size_t)row.dims[0] * sizeof(float))
                         : in_slot(pn, RUNNING_VAR, LAYOUT_PLAIN, err);
    enum access access = batch && !is_spread(pn) ? ACCESS_WRITE : ACCESS_READ;
    const dnnl_memory_desc_t *workspace = workspace_desc(pd);
    int mask = workspace ? slot_new(tape, dnnl_memory_desc_get_size(workspace)) : NO_SLOT;
    struct dnnl_arg args[] = {
        { DNNL_ARG_SRC, &data, x, ACCESS_READ },
        { DNNL_ARG_DST, &data, y, ACCESS_WRITE },
        { DNNL_ARG_SCALE, &row, in_slot(pn, WEIGHT, LAYOUT_PLAIN, err), ACCESS_READ },
        { DNNL_ARG_SHIFT, &row, in_slot(pn, BIAS, LAYOUT_PLAIN, err), ACCESS_READ },
        { DNNL_ARG_MEAN, &row, mean, access },
        { DNNL_ARG_VARIANCE, &row, variance, access },
        { DNNL_ARG_WORKSPACE, workspace, mask, ACCESS_WRITE },
    };
    pn->state->slot[0] = mean, pn->state->slot[1] = variance, pn->state->slot[2] = mask;
    if (takes_relu(pn))
        tape->nodes[graph_only_user(tape->graph, pn->node->output) - tape->graph->nodes].fused =
            true;
    if (is_spread(pn) && !add_statistics(pn, x, mean, variance, layout, err))
        return false;
    struct step *step = dnnl_step(tape, "batch norm", pd, args, 7, 0, err);
    if (!step)
        return false;
    step_in_place(step, 0, -1, 1);
    return !batch || update_running(pn, mean, variance, err);
}

bool lower_batch_norm_backward(struct plan_node *pn, struct err *err)
{
    struct tape *tape = pn->tape;
    enum layout layout = out_layout(pn);
    dnnl_memory_desc_t data = data_desc(pn, layout), row = desc_plain(in_shape(pn, WEIGHT));
    dnnl_batch_normalization_desc_t desc;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    bool ok = attr_new(&attr, err) &&
              dnnl_ok(dnnl_batch_normalization_backward_desc_init(
                          &desc, dnnl_backward, &data, &data, pn->node->attr.norm.epsilon,
                          norm_flags(pn)),
                      "batch norm backward", err) &&
              dnnl_ok(dnnl_primitive_desc_create(&pd, &desc, attr, dnnl_of(tape)->engine,
                                                 pn->state->hint),
                      "batch norm backward", err);
    dnnl_primitive_attr_destroy(attr);
    if (!ok)
        return false;
    const dnnl_memory_desc_t *workspace = workspace_desc(pd);
    int dx = gradient_slot(pn, 0, layout);
    int dw = gradient_slot(pn, WEIGHT, LAYOUT_PLAIN), db = gradient_slot(pn, BIAS, LAYOUT_PLAIN);
    struct dnnl_arg args[] = {
        { DNNL_ARG_DIFF_DST, &data, out_gradient(pn, layout, err), ACCESS_READ },
        { DNNL_ARG_DIFF_SRC, &data, dx, ACCESS_WRITE },
        { DNNL_ARG_SRC, &data, in_slot(pn, 0, layout, err), ACCESS_READ },
        { DNNL_ARG_MEAN, &row, pn->state->slot[0], ACCESS_READ },
        { DNNL_ARG_VARIANCE, &row, pn->state->slot[1], ACCESS_READ },
        { DNNL_ARG_SCALE, &row, in_slot(pn, WEIGHT, LAYOUT_PLAIN, err), ACCESS_READ },
        { DNNL_ARG_SHIFT, &row, in_slot(pn, BIAS, LAYOUT_PLAIN, err), ACCESS_READ },
        { DNNL_ARG_DIFF_SCALE, &row, dw, ACCESS_WRITE },
        { DNNL_ARG_DIFF_SHIFT, &row, db, ACCESS_WRITE },
        { DNNL_ARG_WORKSPACE, workspace, pn->state->slot[2], ACCESS_READ },
    };
    struct step *step = dnnl_step(tape, "batch norm back", pd, args, 10, 0, err);
    dnnl_primitive_desc_destroy(pd);
    if (!step)
        return false;
    step_in_place(step, 0, -1, 1);
    const int slots[] = { args[2].slot, args[3].slot, args[4].slot, args[5].slot, dw, db };
    if (is_spread(pn) && !add_correction(pn, slots, dx, layout, err))
        return false;
    return (!wants_gradient(pn, 0) || gradient_add(pn, 0, dx, layout, err)) &&
           (!wants_gradient(pn, WEIGHT) || gradient_add(pn, WEIGHT, dw, LAYOUT_PLAIN, err)) &&
           (!wants_gradient(pn, BIAS) || gradient_add(pn, BIAS, db, LAYOUT_PLAIN, err));
}
