/* dnnl_step.c: descriptions, primitives and memories of oneDNN as steps of a plan. */
#include "net/plan/dnnl_step.h"
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include "base/room.h"

struct dnnl_state {
    dnnl_primitive_t primitive;
    dnnl_stream_t stream;
    bool alone; /* on one thread */
    int n_args;
    dnnl_exec_arg_t args[DNNL_STEP_ARGS];
    char name[64];
};

bool dnnl_ok(dnnl_status_t status, const char *what, struct err *err)
{
    if (status == dnnl_success)
        return true;
    if (status == dnnl_out_of_memory)
        return err_memory(err, what);
    return err_set(err, ERR_FORMAT, "%s: %s by oneDNN (status %d)", what,
                   status == dnnl_unimplemented ? "not implemented" : "rejected", (int)status);
}

#define PRIMITIVE_ROOM                                                                             \
    ((size_t)64 << 20) /* oneDNN does not look whether there is memory for code */

static bool make_primitive(dnnl_primitive_t *out, const_dnnl_primitive_desc_t pd, const char *what,
                           struct err *err)
{
    if (!room_for(PRIMITIVE_ROOM))
        return err_memory(err, what);
    return dnnl_ok(dnnl_primitive_create(out, pd), what, err);
}

dnnl_memory_desc_t desc_plain(const struct shape *shape)
{
    dnnl_dims_t dims = { 1 }, strides = { 1 };
    int rank = shape->rank ? shape->rank : 1;
    int64_t stride = 1;
    for (int i = shape->rank - 1; i >= 0; i--) {
        dims[i] = shape->dim[i], strides[i] = stride;
        stride *= shape->dim[i];
    }
    dnnl_memory_desc_t desc;
    dnnl_memory_desc_init_by_strides(&desc, rank, dims, dnnl_f32, strides);
    return desc;
}

dnnl_memory_desc_t desc_layout(const struct tape *tape, const struct shape *shape,
                               enum layout layout)
{
    if (layout == LAYOUT_PLAIN)
        return desc_plain(shape);
    dnnl_memory_desc_t desc;
    dnnl_dims_t dims = { shape->dim[0], shape->dim[1], shape->dim[2], shape->dim[3] };
    dnnl_memory_desc_init_by_tag(&desc, 4, dims, dnnl_f32,
                                 tape->block == 16 ? dnnl_nChw16c : dnnl_nChw8c);
    return desc;
}

dnnl_memory_desc_t desc_any(const dnnl_memory_desc_t *desc)
{
    dnnl_memory_desc_t any;
    dnnl_memory_desc_init_by_tag(&any, desc->ndims, desc->dims, dnnl_f32, dnnl_format_tag_any);
    return any;
}

dnnl_memory_desc_t desc_flat(int64_t count)
{
    dnnl_memory_desc_t desc;
    dnnl_dims_t dims = { count };
    dnnl_memory_desc_init_by_tag(&desc, 1, dims, dnnl_f32, dnnl_a);
    return desc;
}

bool attr_new(dnnl_primitive_attr_t *attr, struct err *err)
{
    if (!dnnl_ok(dnnl_primitive_attr_create(attr), "attributes", err))
        return false;
    return dnnl_ok(dnnl_primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user),
                   "scratchpad", err);
}

const dnnl_memory_desc_t *pd_desc(const_dnnl_primitive_desc_t pd, dnnl_query_t what)
{
    return dnnl_primitive_desc_query_md(pd, what, 0);
}

const char *pd_name(const_dnnl_primitive_desc_t pd)
{
    const char *name = NULL;
    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
    return name ? name : "";
}

int pd_rank(const_dnnl_primitive_desc_t pd)
{
    const char *name = pd_name(pd);
    if (strstr(name, "ref") || strstr(name, "any"))
        return 0;
    return strstr(name, "gemm") && !strstr(name, "brgemm") ? 1 : 2;
}

int dnnl_alone(void)
{
    int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    return threads;
}

void dnnl_together(int threads)
{
    omp_set_num_threads(threads);
}

static bool dnnl_run(const struct step *step, struct err *err)
{
    const struct dnnl_state *state = step->state;
    int threads = state->alone ? dnnl_alone() : 0;
    dnnl_status_t status =
        dnnl_primitive_execute(state->primitive, state->stream, state->n_args, state->args);
    if (state->alone)
        dnnl_together(threads);
    return dnnl_ok(status, "its execution", err);
}

static void dnnl_bind(struct step *step)
{
    struct dnnl_state *state = step->state;
    for (int i = 0; i < state->n_args; i++)
        dnnl_memory_set_data_handle(state->args[i].memory, step->at[i]);
}

static void dnnl_destroy(void *at)
{
    struct dnnl_state *state = at;
    for (int i = 0; i < state->n_args; i++)
        dnnl_memory_destroy(state->args[i].memory);
    dnnl_primitive_destroy(state->primitive);
    free(state);
}

static bool dnnl_copy(const struct step *from, struct step *to, struct err *err)
{
    const struct dnnl_state *old = from->state;
    struct dnnl_state *state = calloc(1, sizeof *state);
    if (!state)
        return err_memory(err, from->kernel);
    to->state = state, to->borrowed = false, to->destroy = dnnl_destroy;
    state->stream = old->stream, state->alone = old->alone;
    memcpy(state->name, old->name, sizeof state->name);
    to->kernel = state->name;
    const_dnnl_primitive_desc_t pd;
    if (!dnnl_ok(dnnl_primitive_get_primitive_desc(old->primitive, &pd), old->name, err) ||
        !make_primitive(&state->primitive, pd, old->name, err))
        return false;
    for (int i = 0; i < old->n_args; i++) {
        const dnnl_memory_desc_t *desc;
        dnnl_engine_t engine;
        dnnl_memory_t memory;
        if (!dnnl_ok(dnnl_memory_get_memory_desc(old->args[i].memory, &desc), old->name, err) ||
            !dnnl_ok(dnnl_memory_get_engine(old->args[i].memory, &engine), old->name, err) ||
            !dnnl_ok(dnnl_memory_create(&memory, desc, engine, DNNL_MEMORY_NONE), old->name, err))
            return false;
        state->args[state->n_args++] = (dnnl_exec_arg_t){ old->args[i].arg, memory };
    }
    return true;
}

static bool add_arg(struct tape *tape, struct step *step, int arg, const dnnl_memory_desc_t *desc,
                    int slot, enum access access, struct err *err)
{
    struct dnnl_state *state = step->state;
    dnnl_memory_t memory;
    if (!step_use(step, slot, access, err) ||
        !dnnl_ok(dnnl_memory_create(&memory, desc, dnnl_of(tape)->engine, DNNL_MEMORY_NONE),
                 "memory", err))
        return false;
    state->args[state->n_args++] = (dnnl_exec_arg_t){ arg, memory };
    return true;
}

struct step *dnnl_step(struct tape *tape, const char *what, dnnl_primitive_desc_t pd,
                       const struct dnnl_arg *args, int n_args, double flops, struct err *err)
{
    struct dnnl_state state = { .stream = dnnl_of(tape)->stream,
                                .alone = omp_get_max_threads() < tape->options.threads };
    struct step_spec spec = { "oneDNN", dnnl_run, &state, sizeof state, flops };
    struct step *step = step_add(tape, &spec, err);
    if (!step)
        return NULL;
    struct dnnl_state *kept = step->state;
    step->destroy = dnnl_destroy;
    step->bind = dnnl_bind;
    step->copy = dnnl_copy;
    snprintf(kept->name, sizeof kept->name, "%s %s", what, pd_name(pd));
    step->kernel = kept->name;
    if (!make_primitive(&kept->primitive, pd, what, err))
        return NULL;
    for (int i = 0; i < n_args; i++)
        if (args[i].desc &&
            !add_arg(tape, step, args[i].arg, args[i].desc, args[i].slot, args[i].access, err))
            return NULL;
    const dnnl_memory_desc_t *scratch = pd_desc(pd, dnnl_query_scratchpad_md);
    size_t bytes = dnnl_memory_desc_get_size(scratch);
    if (bytes && !add_arg(tape, step, DNNL_ARG_SCRATCHPAD, scratch, slot_new(tape, bytes),
                          ACCESS_WRITE, err))
        return NULL;
    return step;
}

bool dnnl_step_reorder(struct tape *tape, const char *what, const dnnl_memory_desc_t *from, int src,
                       const dnnl_memory_desc_t *to, int dst, bool add, struct err *err)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t post = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_engine_t engine = dnnl_of(tape)->engine;
    bool ok = attr_new(&attr, err);
    if (ok && add)
        ok = dnnl_ok(dnnl_post_ops_create(&post), what, err) &&
             dnnl_ok(dnnl_post_ops_append_sum(post, 1), what, err) &&
             dnnl_ok(dnnl_primitive_attr_set_post_ops(attr, post), what, err);
    ok = ok && dnnl_ok(dnnl_reorder_primitive_desc_create(&pd, from, engine, to, engine, attr),
                       what, err);
    if (ok) {
        struct dnnl_arg args[] = {
            { DNNL_ARG_FROM, from, src, ACCESS_READ },
            { DNNL_ARG_TO, to, dst, add ? ACCESS_BOTH : ACCESS_WRITE },
        };
        ok = dnnl_step(tape, what, pd, args, 2, 0, err) != NULL;
    }
    dnnl_primitive_desc_destroy(pd);
    dnnl_post_ops_destroy(post);
    dnnl_primitive_attr_destroy(attr);
    return ok;
}

static uint64_t mix(uint64_t hash, int64_t value)
{
    return (hash ^ (uint64_t)value) * UINT64_C(1099511628211);
}

/* Tells layouts of one tensor apart; 0: of a kind that is not shared. */
static uint64_t layout_key(const dnnl_memory_desc_t *desc)
{
    const dnnl_blocking_desc_t *b = &desc->format_desc.blocking;
    uint64_t hash = UINT64_C(14695981039346656037);
    if (desc->format_kind != dnnl_blocked || desc->extra.flags != 0 || desc->offset0 != 0)
        return 0;
    for (int i = 0; i < desc->ndims; i++) {
        hash = mix(hash, desc->dims[i]);
        hash = mix(hash, desc->padded_dims[i]);
        hash = mix(hash, b->strides[i]);
    }
    for (int i = 0; i < b->inner_nblks; i++) {
        hash = mix(hash, b->inner_blks[i]);
        hash = mix(hash, b->inner_idxs[i]);
    }
    return hash;
}

int step_reorder(struct tape *tape, const struct shape *shape, int slot, enum layout from,
                 enum layout to, struct err *err)
{
    if (from == to || layout_is_same(tape, shape) || slot == NO_SLOT)
        return slot;
    int other = slot_new(tape, layout_bytes(tape, shape, to));
    dnnl_memory_desc_t a = desc_layout(tape, shape, from), b = desc_layout(tape, shape, to);
    return dnnl_step_reorder(tape, "layout", &a, slot, &b, other, false, err) ? other : NO_SLOT;
}

int dnnl_weight(struct plan_node *pn, int i, const dnnl_memory_desc_t *plain,
                const dnnl_memory_desc_t *to, struct err *err)
{
    struct tape *tape = pn->tape;
    value_id value = pn->node->inputs[i];
    int from = in_slot(pn, i, LAYOUT_PLAIN, err);
    if (dnnl_memory_desc_equal(plain, to))
        return from;
    bool once = prepares_once(tape, value);
    int slot = slot_new(tape, dnnl_memory_desc_get_size(to));
    if (slot == NO_SLOT || from == NO_SLOT)
        return NO_SLOT;
    enum step_phase phase = tape->phase;
    if (once) {
        tape->slots[slot].home = SLOT_WEIGHTS;
        tape->slots[slot].key = layout_key(to);
        if (tape->slots[slot].key)
            tape->slots[slot].source = tape->graph->values[value].data;
        tape->phase = PHASE_PREPARE;
    }
    bool ok = dnnl_step_reorder(tape, "weight", plain, from, to, slot, false, err);
    tape->phase = phase;
    return ok ? slot : NO_SLOT;
}

bool dnnl_weight_gradient(struct plan_node *pn, int i, const dnnl_memory_desc_t *from, int slot,
                          const dnnl_memory_desc_t *plain, struct err *err)
{
    int target = parameter_gradient_slot(pn, i);
    if (!plan_units_joined(pn, err))
        return false;
    if (target != NO_SLOT && !dnnl_memory_desc_equal(from, plain))
        return dnnl_step_reorder(pn->tape, "gradient", from, slot, plain, target, true, err);
    if (!dnnl_memory_desc_equal(from, plain)) {
        int reordered = gradient_slot(pn, i, LAYOUT_PLAIN);
        if (!dnnl_step_reorder(pn->tape, "gradient", from, slot, plain, reordered, false, err))
            return false;
        slot = reordered;
    }
    return gradient_add(pn, i, slot, LAYOUT_PLAIN, err);
}
