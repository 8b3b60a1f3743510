/* all_reduce.c: sums over peers (collective.h), each as three steps: parts go out, are added where
 * they came together, and come back. What does not depend on the sum may run between them: in the
 * backward pass gradients of weights (net/plan/overlap.c); in the forward pass the next rows of the
 * linear layer whose output is summed, a piece of its rows after another. */
#include <string.h>
#include "net/ops/collective.h"
#include "net/plan/lower.h"
#include "net/plan/peer_parts.h"

#define MOST_PIECES 4
#define ROWS_OF_PIECE 96 /* at least: fewer are computed more slowly */

const char *const peer_group_names[] = { "data", "stage", "space", "bands", "heads", NULL };

#define ATTR_STRUCT struct all_reduce_attr
static const struct attr_field fields[] = {
    GROUP_FIELD,
    FIELD(ATTR_BOOL, sum_forward, 1, 0, 1),
    FIELD(ATTR_BOOL, sum_backward, 1, 0, 1),
    { .name = NULL },
};
#undef ATTR_STRUCT

const struct plan_peers *peers_of(const struct plan_node *pn, enum peer_group group)
{
    const struct plan_peers *peers = pn->tape->options.peers[group];
    return peers && peers->size > 1 ? peers : NULL;
}

static bool all_reduce_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                             struct shape *out, struct err *err)
{
    (void)n_inputs;
    *out = *in[0];
    return attr->all_reduce.sum_forward || attr->all_reduce.sum_backward ||
           err_set(err, ERR_FORMAT, "neither sum_forward nor sum_backward is set");
}

/* --- steps --- */

/* Slots: the sum, the room, and at the start what is summed. */
enum { AT_SUM, AT_ROOM, AT_FROM };

static float *own_part(const struct step *step)
{
    const struct peer_parts *p = step->state;
    return (float *)step->at[AT_SUM] +
           peer_part_begin(p->extent, p->peers->size, p->peers->rank) * p->inner;
}

static bool run_start(const struct step *step, struct err *err)
{
    const struct peer_parts *p = step->state;
    if (step->at[AT_FROM] != step->at[AT_SUM])
        memcpy(step->at[AT_SUM], step->at[AT_FROM], (size_t)peer_part_whole(p) * sizeof(float));
    return peer_scatter_start(p, step->at[AT_SUM], step->at[AT_ROOM], err);
}

static bool run_turn(const struct step *step, struct err *err)
{
    const struct peer_parts *p = step->state;
    float *whole = step->at[AT_SUM], *own = own_part(step);
    return peer_scatter_end(p, whole, own, step->at[AT_ROOM], err) &&
           peer_gather_start(p, own, whole, step->at[AT_ROOM], err);
}

static bool run_end(const struct step *step, struct err *err)
{
    return peer_gather_end(step->state, own_part(step), step->at[AT_SUM], step->at[AT_ROOM], err);
}

/* A sum of the floats in a slot. */
struct reduction {
    struct peer_parts parts;
    int from, sum, room; /* slots; the first two may be one */
};

static struct reduction reduction_of(struct plan_node *pn, int from, int sum)
{
    int64_t n = (int64_t)(pn->tape->slots[sum].bytes / sizeof(float));
    struct reduction r = { .parts = { peers_of(pn, pn->node->attr.all_reduce.group), 1, n, 1 },
                           .from = from,
                           .sum = sum };
    r.room = slot_new(pn->tape, peer_parts_room(&r.parts));
    return r;
}

static bool add_step(struct plan_node *pn, const struct reduction *r, enum step_message message,
                     struct err *err)
{
    static const struct {
        const char *name;
        bool (*run)(const struct step *step, struct err *err);
    } kinds[] = {
        [MESSAGE_START] = { "sum over peers: parts out", run_start },
        [MESSAGE_TURN] = { "sum over peers", run_turn },
        [MESSAGE_END] = { "sum over peers: parts back", run_end },
    };
    struct step_spec spec = { kinds[message].name, kinds[message].run, &r->parts, sizeof r->parts,
                              0 };
    struct step *step = step_add(pn->tape, &spec, err);
    bool first = message == MESSAGE_START, fresh = first && r->from != r->sum;
    if (!step || !step_use(step, r->sum, fresh ? ACCESS_WRITE : ACCESS_BOTH, err) ||
        !step_use(step, r->room, first ? ACCESS_WRITE : ACCESS_BOTH, err) ||
        (first && !step_use(step, r->from, ACCESS_READ, err)))
        return false;
    step->talks = true;
    step->message = message;
    step->peers = r->parts.peers;
    if (fresh)
        step_in_place(step, AT_FROM, -1, AT_SUM);
    return true;
}

static bool add_sum(struct plan_node *pn, int from, int sum, struct err *err)
{
    struct reduction r = reduction_of(pn, from, sum);
    return add_step(pn, &r, MESSAGE_START, err) && add_step(pn, &r, MESSAGE_TURN, err) &&
           add_step(pn, &r, MESSAGE_END, err);
}

/* --- forward --- */

/* Whether nobody but the sum reads its input, so that it may be summed in place. */
static bool is_alone(const struct plan_node *pn)
{
    value_id x = pn->node->inputs[0];
    if (pn->tape->options.no_sharing)
        return false;
    for (int i = 0; i < pn->tape->graph->n_outputs; i++)
        if (pn->tape->graph->outputs[i].value == x)
            return false;
    return !pn->tape->values[x].keep && graph_users(pn->tape->graph, x) == 1;
}

/* Into how many pieces the rows of the layer before are divided; 1: they are not. */
static int pieces_of(const struct plan_node *pn, int x, struct lower_rows *rows)
{
    if (pn->tape->options.wait_for_sums || !is_alone(pn) || !lower_packed_rows(pn->tape, x, rows))
        return 1;
    int64_t most = rows->rows / ROWS_OF_PIECE;
    return most < 1 ? 1 : most < MOST_PIECES ? (int)most : MOST_PIECES;
}

/* Each piece is summed while the next one is computed: its parts go out behind it, and turn behind
 * the next one. */
static bool add_pieces(struct plan_node *pn, const struct lower_rows *rows, int pieces,
                       struct err *err)
{
    struct reduction r[MOST_PIECES];
    bool ok = true;
    for (int i = 0; ok && i < pieces; i++) {
        int piece = lower_packed_piece(pn->tape, rows, pieces, i, err);
        if (piece == NO_SLOT)
            return false;
        r[i] = reduction_of(pn, piece, piece);
        ok = (i == 0 || add_step(pn, &r[i - 1], MESSAGE_TURN, err)) &&
             add_step(pn, &r[i], MESSAGE_START, err);
    }
    ok = ok && add_step(pn, &r[pieces - 1], MESSAGE_TURN, err);
    for (int i = 0; ok && i < pieces; i++)
        ok = add_step(pn, &r[i], MESSAGE_END, err);
    return ok;
}

static bool all_reduce_forward(struct plan_node *pn, struct err *err)
{
    const struct all_reduce_attr *a = &pn->node->attr.all_reduce;
    enum layout layout = in_layout(pn, 0);
    struct lower_rows rows;
    int x = in_slot(pn, 0, layout, err);
    if (!a->sum_forward || !peers_of(pn, a->group)) {
        out_is(pn, x, FLOATS(layout));
        return true;
    }
    int pieces = pieces_of(pn, x, &rows);
    if (pieces == 1)
        return add_sum(pn, x, out_slot(pn, layout), err);
    out_is(pn, x, FLOATS(layout));
    return add_pieces(pn, &rows, pieces, err);
}

static bool all_reduce_backward(struct plan_node *pn, struct err *err)
{
    const struct all_reduce_attr *a = &pn->node->attr.all_reduce;
    enum layout layout = out_layout(pn);
    if (!wants_gradient(pn, 0))
        return true;
    int dy = out_gradient(pn, layout, err), dx = dy;
    if (a->sum_backward && peers_of(pn, a->group)) {
        dx = gradient_slot(pn, 0, layout);
        if (!add_sum(pn, dy, dx, err))
            return false;
    }
    return gradient_add(pn, 0, dx, layout, err);
}

const struct op op_all_reduce = {
    .kind = OP_ALL_REDUCE,
    .name = "all_reduce",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = fields,
    .shape = all_reduce_shape,
    .forward = all_reduce_forward,
    .backward = all_reduce_backward,
};
