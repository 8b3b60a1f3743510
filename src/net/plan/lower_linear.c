/* lower_linear.c: linear layers on many rows, such as those of Transformers, and the gradients of
 * their inputs as steps of our own kernel. */
#include "net/kernels/direct_gradient.h"
#include "net/kernels/linear.h"
#include "net/plan/lower.h"

/* In training weights are packed in every run: for that there must be some rows. */
#define FEWEST_ROWS 64
#define ROWS_OF_TILE 24 /* pieces are so many, and again */

/* What a step needs; those that pack have only the steps. */
struct packed {
    struct linear linear;
    int64_t input_step, output_step; /* of the weight */
};

static int64_t rows_of(const struct plan_node *pn)
{
    const struct shape *x = in_shape(pn, 0);
    return shape_span(x, 0, x->rank - 1);
}

bool lower_packed_takes(const struct plan_node *pn)
{
    return pn->tape->options.mode == PLAN_INFER || rows_of(pn) >= FEWEST_ROWS;
}

static enum simd level_of(const struct plan_node *pn)
{
    enum simd level = lower_level(pn->tape);
    return direct_gradient_available(level) ? level : SIMD_PORTABLE;
}

static const char *name_of(enum simd level, bool forward)
{
    static const char *const names[SIMD_LEVELS][2] = {
        [SIMD_PORTABLE] = { "linear data packed", "linear packed" },
        [SIMD_AVX2] = { "linear data packed avx2", "linear packed avx2" },
        [SIMD_AVX512] = { "linear data packed avx512", "linear packed avx512" },
    };
    return names[level][forward];
}

static enum linear_function function_of(enum activation activation)
{
    switch (activation) {
    case ACT_RELU:
        return LINEAR_RELU;
    case ACT_SILU:
        return LINEAR_SILU;
    case ACT_GELU:
        return LINEAR_GELU;
    case ACT_NONE:
        break;
    }
    return LINEAR_SAME;
}

/* weight [O, C]: forward x [rows, C] to y [rows, O]; else dy to dx */
static struct packed packed_of(const struct plan_node *pn, bool forward)
{
    const struct shape *w = in_shape(pn, 1);
    struct packed p = { .linear = { .level = level_of(pn),
                                    .threads = pn->tape->options.threads,
                                    .rows = rows_of(pn),
                                    .inputs = w->dim[forward ? 1 : 0],
                                    .outputs = w->dim[forward ? 0 : 1] } };
    if (forward)
        p.linear.function = function_of(pn->node->attr.linear.activation);
    p.input_step = forward ? 1 : w->dim[1];
    p.output_step = forward ? w->dim[1] : 1;
    return p;
}

static bool run_pack(const struct step *step, struct err *err)
{
    (void)err;
    const struct packed *p = step->state;
    linear_pack(&p->linear, step->at[0], p->input_step, p->output_step, step->at[2]);
    return true;
}

static int weight_of(struct plan_node *pn, const struct packed *p, bool forward, struct err *err)
{
    struct step_spec spec = { "weight packed", run_pack, p, sizeof *p, 0 };
    struct step_layout layout = { linear_packed_floats(&p->linear) * sizeof(float),
                                  0x6c696e00u + 2 * (uint64_t)p->linear.level + forward, false };
    return step_prepare(pn, &spec, &layout, err);
}

/* Slots of a step. */
enum { AT_X, AT_WEIGHT, AT_BIAS, AT_RESIDUAL, AT_Y };

static bool run_packed(const struct step *step, struct err *err)
{
    (void)err;
    const struct packed *p = step->state;
    linear_run(&p->linear, step->at[AT_X], step->at[AT_WEIGHT], step->at[AT_BIAS],
               step->at[AT_RESIDUAL], step->at[AT_Y]);
    return true;
}

static struct step *add_step(struct plan_node *pn, const struct packed *p, bool forward, int x,
                             const int others[2], int y, struct err *err)
{
    double flops = 2.0 * (double)p->linear.rows * (double)shape_count(in_shape(pn, 1));
    struct step_spec spec = { name_of(p->linear.level, forward), run_packed, p, sizeof *p, flops };
    int weight = weight_of(pn, p, forward, err);
    struct step *step = weight == NO_SLOT ? NULL : step_add(pn->tape, &spec, err);
    if (!step || !step_use(step, x, ACCESS_READ, err) || !step_use(step, weight, ACCESS_READ, err))
        return NULL;
    for (int i = 0; i < 2; i++)
        step_use_optional(step, others[i], ACCESS_READ);
    return step_use(step, y, ACCESS_WRITE, err) ? step : NULL;
}

bool lower_packed_forward(struct plan_node *pn, struct err *err)
{
    struct packed p = packed_of(pn, true);
    int x = in_slot(pn, 0, LAYOUT_PLAIN, err), others[2];
    for (int i = 0; i < 2; i++) {
        others[i] = has_input(pn, 2 + i) ? in_slot(pn, 2 + i, LAYOUT_PLAIN, err) : NO_SLOT;
        if (has_input(pn, 2 + i) && others[i] == NO_SLOT)
            return false;
    }
    struct step *step = add_step(pn, &p, true, x, others, out_slot(pn, LAYOUT_PLAIN), err);
    if (step && others[1] != NO_SLOT)
        step_in_place(step, AT_RESIDUAL, -1, AT_Y);
    return step != NULL;
}

bool lower_packed_data(struct plan_node *pn, int dy, int dx, struct err *err)
{
    struct packed p = packed_of(pn, false);
    return add_step(pn, &p, false, dy, (const int[]){ NO_SLOT, NO_SLOT }, dx, err) != NULL;
}

/* --- in pieces --- */

bool lower_packed_rows(const struct tape *tape, int slot, struct lower_rows *out)
{
    const struct step *step = tape->n_steps > 0 ? &tape->steps[tape->n_steps - 1] : NULL;
    if (!step || step->run != run_packed || step->slot[AT_Y] != slot ||
        step->slot[AT_RESIDUAL] != NO_SLOT)
        return false;
    const struct packed *p = step->state;
    *out = (struct lower_rows){ tape->n_steps - 1, step->slot[AT_X], slot, p->linear.rows };
    return true;
}

int64_t lower_packed_begin(const struct lower_rows *rows, int pieces, int i)
{
    return i < pieces ? rows->rows * i / pieces / ROWS_OF_TILE * ROWS_OF_TILE : rows->rows;
}

/* The rows of a slot that has so many floats in each. */
static int view_rows(struct tape *tape, int slot, int64_t begin, int64_t rows, int64_t floats)
{
    return slot_view(tape, slot, (size_t)(begin * floats) * sizeof(float),
                     (size_t)(rows * floats) * sizeof(float));
}

int lower_packed_piece(struct tape *tape, const struct lower_rows *rows, int pieces, int i,
                       struct err *err)
{
    int64_t begin = lower_packed_begin(rows, pieces, i);
    struct packed *first = tape->steps[rows->step].state, p = *first;
    p.linear.rows = lower_packed_begin(rows, pieces, i + 1) - begin;
    int x = view_rows(tape, rows->x, begin, p.linear.rows, p.linear.inputs);
    int y = view_rows(tape, rows->y, begin, p.linear.rows, p.linear.outputs);
    double flops = 2.0 * (double)p.linear.rows * (double)p.linear.inputs * (double)p.linear.outputs;
    if (x == NO_SLOT || y == NO_SLOT) {
        err_memory(err, "plan");
        return NO_SLOT;
    }
    if (i == 0) {
        struct step *step = &tape->steps[rows->step];
        *first = p;
        step->slot[AT_X] = x, step->slot[AT_Y] = y, step->flops = flops;
        return y;
    }
    struct step_spec spec = { tape->steps[rows->step].kernel, run_packed, &p, sizeof p, flops };
    struct step *step = step_add(tape, &spec, err);
    if (!step)
        return NO_SLOT;
    const struct step *whole = &tape->steps[rows->step];
    step->node = whole->node;
    const int slots[] = { x, whole->slot[AT_WEIGHT], whole->slot[AT_BIAS], NO_SLOT };
    for (int k = AT_X; k < AT_Y; k++)
        step_use_optional(step, slots[k], ACCESS_READ);
    return step_use(step, y, ACCESS_WRITE, err) ? y : NO_SLOT;
}
