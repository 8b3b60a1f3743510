/* lower_batch_norm.c: batch normalisation with the statistics of the batch (PLAN_TRAIN; the running
 * statistics are updated as in PyTorch, with the unbiased variance) or with the running statistics,
 * by our own kernels. */
#include "net/kernels/batch_norm.h"
#include "net/plan/lower.h"
#include "net/plan/sync_norm.h"

enum { WEIGHT = 1, BIAS, RUNNING_MEAN, RUNNING_VAR };

static bool uses_batch(const struct plan_options *options)
{
    return options->mode == PLAN_TRAIN && !options->norm_frozen;
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
    uint32_t among = options->norm_peers;
    if (pn->node->attr.norm.alike)
        among &= ~(1u << PEERS_SPACE | 1u << PEERS_BANDS);
    for (int g = 0; g < PEER_GROUPS && uses_batch(options); g++)
        if ((among >> g & 1) && options->peers[g])
            s.groups[s.n_groups++] = options->peers[g];
    return s;
}

static bool is_spread(const struct plan_node *pn)
{
    return sync_of(pn, LAYOUT_PLAIN).n_groups > 0;
}

static bool run_statistics(const struct step *step, struct err *err)
{
    return sync_norm_statistics(step->state, step->at[0], step->at[1], step->at[2], step->at[3],
                                err);
}

static bool add_statistics(struct plan_node *pn, int x, int mean, int variance, int count,
                           enum layout layout, struct err *err)
{
    struct sync_norm s = sync_of(pn, layout);
    struct step_spec spec = { "statistics over ranks", run_statistics, &s, sizeof s, 0 };
    struct step *step = step_add(pn->tape, &spec, err);
    if (step)
        step->talks = true;
    return step && step_use(step, x, ACCESS_READ, err) && step_use(step, mean, ACCESS_WRITE, err) &&
           step_use(step, variance, ACCESS_WRITE, err) && step_use(step, count, ACCESS_WRITE, err);
}

static bool run_correct(const struct step *step, struct err *err)
{
    const double *count = step->at[3];
    return sync_norm_correct(step->state, step->at[0], step->at[1], step->at[2], *count,
                             step->at[4], step->at[5], step->at[6], step->at[7], err);
}

/* slots: x, mean, variance, count, weight, dweight, dbias; then dx. */
static bool add_correction(struct plan_node *pn, const int slots[7], int dx, enum layout layout,
                           struct err *err)
{
    struct sync_norm s = sync_of(pn, layout);
    struct step_spec spec = { "statistics back", run_correct, &s, sizeof s, 0 };
    struct step *step = step_add(pn->tape, &spec, err);
    bool ok = step != NULL;
    if (step)
        step->talks = true;
    for (int i = 0; ok && i < 7; i++)
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

/* Where x is rounded between the passes the backward pass would find other signs. */
static bool keeps_passed(const struct plan_node *pn)
{
    return takes_relu(pn) && pn->tape->options.mode != PLAN_INFER &&
           pn->tape->options.saving == SAVING_HALF;
}

static struct batch_norm norm_of(const struct plan_node *pn, enum layout layout)
{
    struct sync_norm s = sync_of(pn, layout);
    return (struct batch_norm){ .level = simd_best(),
                                .threads = pn->tape->options.threads,
                                .images = s.n,
                                .blocks = s.blocks,
                                .area = s.area,
                                .block = s.b,
                                .channels = s.channels,
                                .epsilon = s.epsilon,
                                .relu = takes_relu(pn),
                                .given = !uses_batch(&pn->tape->options) || is_spread(pn) };
}

struct running {
    int64_t channels;
    float momentum;
    double count; /* of elements, unless a slot has it */
};

static bool run_running(const struct step *step, struct err *err)
{
    (void)err;
    const struct running *r = step->state;
    const float *mean = step->at[0], *variance = step->at[1];
    float *running_mean = step->at[2], *running_variance = step->at[3];
    const double count = step->at[4] ? *(const double *)step->at[4] : r->count;
    const float unbiased = count > 1 ? (float)(count / (count - 1)) : 1;
    for (int64_t c = 0; c < r->channels; c++) {
        running_mean[c] += r->momentum * (mean[c] - running_mean[c]);
        running_variance[c] += r->momentum * (variance[c] * unbiased - running_variance[c]);
    }
    return true;
}

static bool update_running(struct plan_node *pn, int mean, int variance, int count, struct err *err)
{
    const struct shape *x = in_shape(pn, 0);
    struct running r = { x->dim[1], pn->node->attr.norm.momentum,
                         (double)(shape_count(x) / x->dim[1]) };
    struct step_spec spec = { "running statistics", run_running, &r, sizeof r, 0 };
    struct step *step = step_add(pn->tape, &spec, err);
    if (!step || !step_use(step, mean, ACCESS_READ, err) ||
        !step_use(step, variance, ACCESS_READ, err) ||
        !step_use(step, in_slot(pn, RUNNING_MEAN, LAYOUT_PLAIN, err), ACCESS_BOTH, err) ||
        !step_use(step, in_slot(pn, RUNNING_VAR, LAYOUT_PLAIN, err), ACCESS_BOTH, err))
        return false;
    step_use_optional(step, count, ACCESS_READ);
    step->statistics = true;
    return true;
}

static bool run_norm(const struct step *step, struct err *err)
{
    (void)err;
    void *const *at = step->at;
    batch_norm_run(step->state, at[0], at[1], at[2], at[3], at[4], at[5], at[7], at[6]);
    return true;
}

static bool run_norm_back(const struct step *step, struct err *err)
{
    (void)err;
    void *const *at = step->at;
    batch_norm_back(step->state, at[0], at[1], at[2], at[3], at[4], at[5], at[10], at[6], at[7],
                    at[8], at[9]);
    return true;
}

static bool use_all(struct step *step, const int *slots, int n, enum access access, struct err *err)
{
    bool ok = step != NULL;
    for (int i = 0; ok && i < n; i++)
        ok = step_use(step, slots[i], access, err);
    return ok;
}

/* That of the input. Where it is an input of the graph, that which it would have had behind another
 * layer: so the sums of a stage that begins with a batch norm have the order of the whole
 * network's.
 */
enum layout lower_norm_layout(const struct plan_node *pn)
{
    const struct graph *graph = pn->tape->graph;
    const struct shape *x = in_shape(pn, 0);
    bool enters = graph->values[pn->node->inputs[0]].kind == VALUE_INPUT;
    return enters && pn->tape->options.mode != PLAN_INFER && x->rank == 4 &&
                   x->dim[1] >= pn->tape->block
               ? LAYOUT_BLOCKED
               : in_layout(pn, 0);
}

bool lower_batch_norm_forward(struct plan_node *pn, struct err *err)
{
    struct tape *tape = pn->tape;
    bool batch = uses_batch(&tape->options);
    enum layout layout = lower_norm_layout(pn);
    struct batch_norm norm = norm_of(pn, layout);
    size_t row = (size_t)norm.channels * sizeof(float);
    int x = in_slot(pn, 0, layout, err), y = out_slot(pn, layout);
    int mean = batch ? slot_new(tape, row) : in_slot(pn, RUNNING_MEAN, LAYOUT_PLAIN, err);
    int variance = batch ? slot_new(tape, row) : in_slot(pn, RUNNING_VAR, LAYOUT_PLAIN, err);
    int passed = keeps_passed(pn) ? slot_new(tape, batch_norm_passed_bytes(&norm)) : NO_SLOT;
    int count = is_spread(pn) ? slot_new(tape, sizeof(double)) : NO_SLOT;
    pn->state->slot[0] = mean, pn->state->slot[1] = variance, pn->state->slot[2] = passed;
    pn->state->slot[3] = count;
    if (norm.relu)
        tape->nodes[graph_only_user(tape->graph, pn->node->output) - tape->graph->nodes].fused =
            true;
    if (is_spread(pn) && !add_statistics(pn, x, mean, variance, count, layout, err))
        return false;
    const int reads[] = { x, in_slot(pn, WEIGHT, LAYOUT_PLAIN, err),
                          in_slot(pn, BIAS, LAYOUT_PLAIN, err) };
    const int statistics[] = { mean, variance };
    int scratch = norm.given ? NO_SLOT : slot_new(tape, batch_norm_scratch(&norm));
    struct step_spec spec = { norm.relu ? "batch norm relu" : "batch norm", run_norm, &norm,
                              sizeof norm, 0 };
    struct step *step = step_add(tape, &spec, err);
    if (!use_all(step, reads, 3, ACCESS_READ, err) ||
        !use_all(step, statistics, 2, norm.given ? ACCESS_READ : ACCESS_WRITE, err) ||
        !step_use(step, y, ACCESS_WRITE, err))
        return false;
    step_use_optional(step, scratch, ACCESS_WRITE);
    step_use_optional(step, passed, ACCESS_WRITE);
    step_in_place(step, 0, -1, 5);
    return !batch || update_running(pn, mean, variance, count, err);
}

bool lower_batch_norm_backward(struct plan_node *pn, struct err *err)
{
    struct tape *tape = pn->tape;
    enum layout layout = tape->values[pn->node->output].native.layout;
    struct batch_norm norm = norm_of(pn, layout);
    int dx = gradient_slot(pn, 0, layout);
    int dw = gradient_slot(pn, WEIGHT, LAYOUT_PLAIN), db = gradient_slot(pn, BIAS, LAYOUT_PLAIN);
    int x = in_slot(pn, 0, layout, err), weight = in_slot(pn, WEIGHT, LAYOUT_PLAIN, err);
    const int reads[] = { x,
                          pn->state->slot[0],
                          pn->state->slot[1],
                          weight,
                          in_slot(pn, BIAS, LAYOUT_PLAIN, err),
                          out_gradient(pn, layout, err) };
    const int writes[] = { dx, dw, db, slot_new(tape, batch_norm_scratch(&norm)) };
    struct step_spec spec = { norm.relu ? "batch norm relu back" : "batch norm back", run_norm_back,
                              &norm, sizeof norm, 0 };
    struct step *step = step_add(tape, &spec, err);
    if (!use_all(step, reads, 6, ACCESS_READ, err) || !use_all(step, writes, 4, ACCESS_WRITE, err))
        return false;
    step_use_optional(step, pn->state->slot[2], ACCESS_READ);
    step_in_place(step, 5, -1, 6);
    const int *state = pn->state->slot;
    const int slots[] = { x, state[0], state[1], state[3], weight, dw, db };
    if (is_spread(pn) && !add_correction(pn, slots, dx, layout, err))
        return false;
    return (!wants_gradient(pn, 0) || gradient_add(pn, 0, dx, layout, err)) &&
           (!wants_gradient(pn, WEIGHT) || gradient_add(pn, WEIGHT, dw, LAYOUT_PLAIN, err)) &&
           (!wants_gradient(pn, BIAS) || gradient_add(pn, BIAS, db, LAYOUT_PLAIN, err));
}
