/* function.c: a function of one element that is named by an attribute. */
#include "net/kernels/functions.h"
#include "net/plan/step.h"
#include "net/ops/ops.h"

static const char *const names[] = { "exp", "log", "sqrt",  "reciprocal", "abs", "erf",
                                     "sin", "cos", "power", "from_nan",   NULL };

static const enum function_row rows[] = {
    [FUNCTION_EXP] = ROW_EXP,     [FUNCTION_LOG] = ROW_LOG,
    [FUNCTION_SQRT] = ROW_SQRT,   [FUNCTION_RECIPROCAL] = ROW_RECIPROCAL,
    [FUNCTION_ABS] = ROW_ABS,     [FUNCTION_ERF] = ROW_ERF,
    [FUNCTION_SIN] = ROW_SIN,     [FUNCTION_COS] = ROW_COS,
    [FUNCTION_POWER] = ROW_POWER, [FUNCTION_FROM_NAN] = ROW_FROM_NAN,
};

#define ATTR_STRUCT struct function_attr
static const struct attr_field fields[] = {
    { .name = "function",
      .type = ATTR_CHOICE,
      .offset = offsetof(struct function_attr, function),
      .count = 1,
      .min = FUNCTION_EXP,
      .max = FUNCTION_FROM_NAN,
      .choices = names },
    FIELD(ATTR_REAL, exponent, 1, -1e6, 1e6),
    { .name = NULL },
};
#undef ATTR_STRUCT

static bool run_function(const struct step *step, struct err *err)
{
    (void)err;
    functions_run(step->state, step->at[0], step->at[1]);
    return true;
}

static bool run_function_back(const struct step *step, struct err *err)
{
    (void)err;
    functions_back(step->state, step->at[0], step->at[1], step->at[2]);
    return true;
}

static struct functions functions_of(const struct plan_node *pn, enum layout layout)
{
    const struct function_attr *a = &pn->node->attr.function;
    return (struct functions){ rows[a->function], a->exponent,
                               layout_count(pn->tape, out_shape(pn), layout),
                               pn->tape->options.threads };
}

/* Most of them do not keep the zeros that fill up a block. */
static bool function_forward(struct plan_node *pn, struct err *err)
{
    enum layout layout = in_layout_whole(pn, 0);
    struct functions f = functions_of(pn, layout);
    struct step_spec spec = { names[pn->node->attr.function.function], run_function, &f, sizeof f,
                              0 };
    int x = in_slot(pn, 0, layout, err), y = out_slot(pn, layout);
    struct step *step = step_add(pn->tape, &spec, err);
    if (!step || !step_use(step, x, ACCESS_READ, err) || !step_use(step, y, ACCESS_WRITE, err))
        return false;
    step_in_place(step, 0, -1, 1);
    return true;
}

static bool function_backward(struct plan_node *pn, struct err *err)
{
    enum layout layout = out_layout(pn);
    struct functions f = functions_of(pn, layout);
    struct step_spec spec = { "function back", run_function_back, &f, sizeof f, 0 };
    if (!wants_gradient(pn, 0))
        return true;
    int x = in_slot(pn, 0, layout, err), dy = out_gradient(pn, layout, err);
    int dx = gradient_slot(pn, 0, layout);
    struct step *step = step_add(pn->tape, &spec, err);
    if (!step || !step_use(step, dy, ACCESS_READ, err) || !step_use(step, x, ACCESS_READ, err) ||
        !step_use(step, dx, ACCESS_WRITE, err))
        return false;
    step_in_place(step, 0, 1, 2);
    return gradient_add(pn, 0, dx, layout, err);
}

const struct op op_function = {
    .kind = OP_FUNCTION,
    .name = "function",
    .onnx = NULL,
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = fields,
    .shape = shape_same,
    .forward = function_forward,
    .backward = function_backward,
};
