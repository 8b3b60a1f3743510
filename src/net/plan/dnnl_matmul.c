/* dnnl_matmul.c: products of stacks of matrices. The gradient of a factor is again such a product;
 * if a factor was repeated over the stack, its gradient is summed over the stack. */
#include "net/plan/dnnl_step.h"
#include "net/plan/lower.h"
#include "net/kernels/strided.h"

/* A stack of matrices in memory; `transposed` swaps the last two axes. */
struct factor {
    struct shape shape;
    bool transposed;
    int slot;
};

static dnnl_memory_desc_t factor_desc(const struct factor *f, int rank)
{
    dnnl_dims_t dims, strides;
    int lead = rank - f->shape.rank;
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        dims[i] = i < lead ? 1 : f->shape.dim[i - lead];
        strides[i] = stride;
        stride *= dims[i];
    }
    if (f->transposed) {
        int64_t d = dims[rank - 1], s = strides[rank - 1];
        dims[rank - 1] = dims[rank - 2], strides[rank - 1] = strides[rank - 2];
        dims[rank - 2] = d, strides[rank - 2] = s;
    }
    dnnl_memory_desc_t desc;
    dnnl_memory_desc_init_by_strides(&desc, rank, dims, dnnl_f32, strides);
    return desc;
}

static bool product(struct tape *tape, const struct factor *a, const struct factor *b,
                    const struct factor *out, float scale, struct err *err)
{
    int rank = out->shape.rank;
    dnnl_memory_desc_t da = factor_desc(a, rank), db = factor_desc(b, rank);
    dnnl_memory_desc_t dy = factor_desc(out, rank);
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_matmul_desc_t desc;
    bool ok = attr_new(&attr, err);
    if (ok && scale != 1)
        ok = dnnl_ok(dnnl_primitive_attr_set_output_scales(attr, 1, 0, &scale), "matmul", err);
    ok = ok && dnnl_ok(dnnl_matmul_desc_init(&desc, &da, &db, NULL, &dy), "matmul", err) &&
         dnnl_ok(dnnl_primitive_desc_create(&pd, &desc, attr, dnnl_of(tape)->engine, NULL),
                 "matmul", err);
    if (ok) {
        struct dnnl_arg args[] = {
            { DNNL_ARG_SRC, &da, a->slot, ACCESS_READ },
            { DNNL_ARG_WEIGHTS, &db, b->slot, ACCESS_READ },
            { DNNL_ARG_DST, &dy, out->slot, ACCESS_WRITE },
        };
        double flops = 2.0 * (double)shape_count(&out->shape) * (double)da.dims[rank - 1];
        ok = dnnl_step(tape, "matmul", pd, args, 3, flops, err) != NULL;
    }
    dnnl_primitive_desc_destroy(pd);
    dnnl_primitive_attr_destroy(attr);
    return ok;
}

static struct factor input_factor(struct plan_node *pn, int i, struct err *err)
{
    const struct matmul_attr *a = &pn->node->attr.matmul;
    return (struct factor){ *in_shape(pn, i), i ? a->transpose_b : a->transpose_a,
                            in_slot(pn, i, LAYOUT_PLAIN, err) };
}

bool lower_matmul_forward(struct plan_node *pn, struct err *err)
{
    struct factor a = input_factor(pn, 0, err), b = input_factor(pn, 1, err);
    struct factor y = { *out_shape(pn), false, out_slot(pn, LAYOUT_PLAIN) };
    return product(pn->tape, &a, &b, &y, pn->node->attr.matmul.scale, err);
}

static bool run_stack_sum(const struct step *step, struct err *err)
{
    (void)err;
    strided_sum(step->state, step->at[0], 1, step->at[1]);
    return true;
}

/* Sums `from` over the axes along which input i was repeated. */
static bool sum_over_stack(struct plan_node *pn, int i, const struct factor *from, int to,
                           struct err *err)
{
    const struct shape *x = in_shape(pn, i);
    struct strided s = { .rank = from->shape.rank, .threads = pn->tape->options.threads };
    int lead = s.rank - x->rank;
    int64_t stride = 1, out = 1;
    for (int k = s.rank - 1; k >= 0; k--) {
        bool repeated = k < lead || (x->dim[k - lead] == 1 && from->shape.dim[k] > 1);
        s.extent[k] = from->shape.dim[k];
        s.a[k] = stride, s.out[k] = repeated ? 0 : out;
        stride *= s.extent[k];
        out *= repeated ? 1 : s.extent[k];
    }
    struct step_spec spec = { "sum over stack", run_stack_sum, &s, sizeof s, 0 };
    struct step *step = step_add(pn->tape, &spec, err);
    return step && step_use(step, from->slot, ACCESS_READ, err) &&
           step_use(step, to, ACCESS_WRITE, err);
}

/* The gradient by input i: with C = A B it is dC Bt or At dC, written the other way round where the
 * input is stored transposed. */
static bool factor_gradient(struct plan_node *pn, int i, struct err *err)
{
    struct factor other = input_factor(pn, 1 - i, err);
    struct factor dy = { *out_shape(pn), false, out_gradient(pn, LAYOUT_PLAIN, err) };
    bool stored_transposed =
        i ? pn->node->attr.matmul.transpose_b : pn->node->attr.matmul.transpose_a;
    const struct shape *x = in_shape(pn, i);
    struct factor dx = { dy.shape, false, NO_SLOT };
    for (int k = 1; k <= 2; k++)
        dx.shape.dim[dx.shape.rank - k] = x->dim[x->rank - k];
    bool repeated = shape_count(&dx.shape) != shape_count(x);
    int target = gradient_slot(pn, i, LAYOUT_PLAIN);
    dx.slot =
        repeated ? slot_new(pn->tape, (size_t)shape_count(&dx.shape) * sizeof(float)) : target;
    other.transposed = !other.transposed;
    /* plain: dA = dC Bt, dB = At dC; stored transposed: (dA)t = B dCt, (dB)t = dCt A */
    if (stored_transposed) {
        other.transposed = !other.transposed;
        dy.transposed = true;
    }
    bool gradient_first = (i == 0) != stored_transposed;
    bool ok = product(pn->tape, gradient_first ? &dy : &other, gradient_first ? &other : &dy, &dx,
                      pn->node->attr.matmul.scale, err);
    if (ok && repeated)
        ok = sum_over_stack(pn, i, &dx, target, err);
    return ok && gradient_add(pn, i, target, LAYOUT_PLAIN, err);
}

bool lower_matmul_backward(struct plan_node *pn, struct err *err)
{
    for (int i = 0; i < 2; i++)
        if (wants_gradient(pn, i) && !factor_gradient(pn, i, err))
            return false;
    return true;
}
