/* embedding.c: tokens of a text: rows of a table by their ids, and T5's biases of attention by how
 * far apart two tokens are. */
#include "net/kernels/embedding.h"
#include <string.h>
#include "net/ops/ops.h"
#include "net/plan/step.h"

enum { TABLE = 1 };

#define ATTR_STRUCT struct relative_attr
static const struct attr_field relative_fields[] = {
    FIELD(ATTR_INT, distance, 1, 1, ATTR_LIMIT),
    { .name = NULL },
};
#undef ATTR_STRUCT

static void relative_complete(union attr *attr)
{
    if (attr->relative.distance == 0)
        attr->relative.distance = RELATIVE_DEFAULT_DISTANCE;
}

static bool embedding_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                            struct shape *out, struct err *err)
{
    (void)attr, (void)n_inputs;
    char text[SHAPE_TEXT], other[SHAPE_TEXT];
    if (in[0]->rank != 2 || in[TABLE]->rank != 2)
        return err_set(err, ERR_FORMAT,
                       "the ids are %s, the table %s; [N, T] and [rows, C] are "
                       "needed",
                       shape_text(in[0], text), shape_text(in[TABLE], other));
    *out = SHAPE(in[0]->dim[0], in[0]->dim[1], in[TABLE]->dim[1]);
    return true;
}

static bool relative_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                           struct shape *out, struct err *err)
{
    (void)n_inputs;
    char text[SHAPE_TEXT];
    if (in[0]->rank < 2)
        return err_set(err, ERR_FORMAT, "the input is %s; [N, T, ..] is needed",
                       shape_text(in[0], text));
    if (in[TABLE]->rank != 2 || in[TABLE]->dim[0] < 4 || in[TABLE]->dim[0] % 4 ||
        attr->relative.distance <= in[TABLE]->dim[0] / 4)
        return err_set(err, ERR_FORMAT,
                       "the table is %s; [rows, heads] is needed, rows a multiple of 4 and below "
                       "4 times the distance %lld",
                       shape_text(in[TABLE], text), (long long)attr->relative.distance);
    *out = SHAPE(1, in[TABLE]->dim[1], in[0]->dim[1], in[0]->dim[1]);
    return true;
}

/* What a step knows; fresh: the gradient of the table is not yet 0. */
struct state {
    struct embedding lookup;
    struct relative_bias bias;
    bool fresh;
    size_t table_bytes;
};

static struct state state_of(const struct plan_node *pn)
{
    const struct shape *x = in_shape(pn, 0), *table = in_shape(pn, TABLE);
    return (struct state){
        .lookup = { shape_span(x, 0, 2), table->dim[0], table->dim[1], pn->tape->options.threads },
        .bias = { x->dim[1], table->dim[0], table->dim[1], pn->node->attr.relative.distance },
        .table_bytes = (size_t)shape_count(table) * sizeof(float),
    };
}

static bool run_embedding(const struct step *step, struct err *err)
{
    const struct state *s = step->state;
    const float *ids = step->at[0];
    int64_t bad = embedding_bad(&s->lookup, ids);
    if (bad >= 0)
        return err_set(err, ERR_FORMAT, "id %g is not in a table of %lld rows", (double)ids[bad],
                       (long long)s->lookup.rows);
    embedding_run(&s->lookup, ids, step->at[1], step->at[2]);
    return true;
}

static bool run_embedding_back(const struct step *step, struct err *err)
{
    (void)err;
    const struct state *s = step->state;
    if (s->fresh)
        memset(step->at[2], 0, s->table_bytes);
    embedding_back(&s->lookup, step->at[0], step->at[1], step->at[2]);
    return true;
}

static bool run_relative(const struct step *step, struct err *err)
{
    (void)err;
    const struct state *s = step->state;
    relative_bias_run(&s->bias, step->at[0], step->at[1]);
    return true;
}

static bool run_relative_back(const struct step *step, struct err *err)
{
    (void)err;
    const struct state *s = step->state;
    if (s->fresh)
        memset(step->at[1], 0, s->table_bytes);
    relative_bias_back(&s->bias, step->at[0], step->at[1]);
    return true;
}

static bool is_embedding(const struct plan_node *pn)
{
    return pn->node->op->kind == OP_EMBEDDING;
}

static bool table_forward(struct plan_node *pn, struct err *err)
{
    struct state s = state_of(pn);
    struct step_spec spec = { pn->node->op->name, is_embedding(pn) ? run_embedding : run_relative,
                              &s, sizeof s, 0 };
    int ids = is_embedding(pn) ? in_slot(pn, 0, LAYOUT_PLAIN, err) : NO_SLOT;
    int table = in_slot(pn, TABLE, LAYOUT_PLAIN, err), y = out_slot(pn, LAYOUT_PLAIN);
    struct step *step = step_add(pn->tape, &spec, err);
    return step && (!is_embedding(pn) || step_use(step, ids, ACCESS_READ, err)) &&
           step_use(step, table, ACCESS_READ, err) && step_use(step, y, ACCESS_WRITE, err);
}

/* Only the table has a gradient: ids are not numbers that could change a little. */
static bool table_backward(struct plan_node *pn, struct err *err)
{
    struct state s = state_of(pn);
    if (!wants_gradient(pn, TABLE))
        return true;
    int into = parameter_gradient_slot(pn, TABLE);
    if (into != NO_SLOT && !plan_units_joined(pn, err))
        return false;
    s.fresh = into == NO_SLOT;
    struct step_spec spec = { pn->node->op->name,
                              is_embedding(pn) ? run_embedding_back : run_relative_back, &s,
                              sizeof s, 0 };
    int ids = is_embedding(pn) ? in_slot(pn, 0, LAYOUT_PLAIN, err) : NO_SLOT;
    int dy = out_gradient(pn, LAYOUT_PLAIN, err);
    int table = s.fresh ? gradient_slot(pn, TABLE, LAYOUT_PLAIN) : into;
    struct step *step = step_add(pn->tape, &spec, err);
    return step && (!is_embedding(pn) || step_use(step, ids, ACCESS_READ, err)) &&
           step_use(step, dy, ACCESS_READ, err) &&
           step_use(step, table, s.fresh ? ACCESS_WRITE : ACCESS_BOTH, err) &&
           (!s.fresh || gradient_add(pn, TABLE, table, LAYOUT_PLAIN, err));
}

const struct op op_embedding = {
    .kind = OP_EMBEDDING,
    .name = "embedding",
    .onnx = NULL,
    .min_inputs = 2,
    .max_inputs = 2,
    .shape = embedding_shape,
    .forward = table_forward,
    .backward = table_backward,
};

const struct op op_relative_bias = {
    .kind = OP_RELATIVE_BIAS,
    .name = "relative_bias",
    .onnx = NULL,
    .min_inputs = 2,
    .max_inputs = 2,
    .fields = relative_fields,
    .complete = relative_complete,
    .shape = relative_shape,
    .forward = table_forward,
    .backward = table_backward,
};
