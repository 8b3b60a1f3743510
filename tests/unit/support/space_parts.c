/* space_parts.c: see space_parts.h. */
#include "support/space_parts.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "net/graph/transform.h"
#include "net/plan/plan.h"
#include "support/thread_peers.h"
#include "support/zoo_golden.h"

#define MOST 16 /* parts */

struct part;

/* Peers that lose what comes in a backward exchange, if so wished. */
struct leaky {
    const struct plan_peers *real;
    const struct part *part;
};

struct part {
    const struct space_job *job;
    struct space_spec spec;
    struct graph *whole, *graph;
    struct plan *plan;
    struct plan_peers peers[2];
    struct leaky leaky[2];
    bool backward, ok;
    struct err err;
};

static bool leaky_sum(void *arg, double *values, int64_t n, struct err *err)
{
    const struct plan_peers *real = ((struct leaky *)arg)->real;
    return real->sum(real->arg, values, n, err);
}

static bool leaky_sum_floats(void *arg, float *values, int64_t n, struct err *err)
{
    const struct plan_peers *real = ((struct leaky *)arg)->real;
    return real->sum_floats(real->arg, values, n, err);
}

static bool leaky_gather(void *arg, const void *own, size_t bytes, void *all, struct err *err)
{
    const struct plan_peers *real = ((struct leaky *)arg)->real;
    return real->gather(real->arg, own, bytes, all, err);
}

static bool leaky_exchange(void *arg, const struct peers_exchange *x, struct err *err)
{
    const struct leaky *leaky = arg;
    if (!leaky->real->exchange(leaky->real->arg, x, err))
        return false;
    if (x->from != PEER_NONE && leaky->part->backward && leaky->part->job->fault == FAULT_DETACHED)
        memset(x->in, 0, x->in_bytes);
    return true;
}

static bool leaky_start_send(void *arg, int to, const void *data, size_t bytes, int64_t *handle,
                             struct err *err)
{
    const struct plan_peers *real = ((struct leaky *)arg)->real;
    return real->start_send(real->arg, to, data, bytes, handle, err);
}

static bool leaky_start_receive(void *arg, int from, void *data, size_t bytes, int64_t *handle,
                                struct err *err)
{
    const struct plan_peers *real = ((struct leaky *)arg)->real;
    return real->start_receive(real->arg, from, data, bytes, handle, err);
}

static bool leaky_progress(void *arg, struct err *err)
{
    const struct plan_peers *real = ((struct leaky *)arg)->real;
    return real->progress(real->arg, err);
}

static bool leaky_finish(void *arg, int64_t handle, struct err *err)
{
    const struct plan_peers *real = ((struct leaky *)arg)->real;
    return real->finish(real->arg, handle, err);
}

static void leaky_abandon(void *arg)
{
    const struct plan_peers *real = ((struct leaky *)arg)->real;
    real->abandon(real->arg);
}

static struct plan_peers leaky_peers(struct leaky *leaky)
{
    return (struct plan_peers){ .arg = leaky,
                                .rank = leaky->real->rank,
                                .size = leaky->real->size,
                                .sum = leaky_sum,
                                .sum_floats = leaky_sum_floats,
                                .gather = leaky_gather,
                                .exchange = leaky_exchange,
                                .start_send = leaky_start_send,
                                .start_receive = leaky_start_receive,
                                .progress = leaky_progress,
                                .finish = leaky_finish,
                                .abandon = leaky_abandon };
}

/* The window that reads the first halo pads one cell more where the halo has one less. */
static bool shrink_first_halo(struct graph *graph)
{
    int32_t i = 0;
    int64_t pad[SIDES] = { 0 };
    while (i < graph->n_nodes && graph->nodes[i].op->kind != OP_HALO)
        i++;
    for (; i < graph->n_nodes && graph->nodes[i].op->kind == OP_HALO; i++) {
        struct halo_attr *h = &graph->nodes[i].attr.halo;
        pad[h->axis - 2] = h->before > 0, pad[h->axis] = h->after > 0;
        h->before -= h->before > 0, h->after -= h->after > 0;
        for (int side = 0; side < 2; side++)
            h->given[side] -= h->given[side] > 0;
    }
    for (int side = 0; side < SIDES && i < graph->n_nodes; side++)
        graph->nodes[i].attr.conv.pad[side] += pad[side];
    return i < graph->n_nodes && graph->nodes[i].op->kind == OP_CONV && graph_infer(graph, NULL);
}

/* Whether parts have parts of an output. */
static bool is_divided(const struct space_job *job, const struct shape *shape)
{
    return !job->whole_outputs && shape->rank == 4 && shape->dim[2] * shape->dim[3] > 1;
}

/* Where a tensor of the part begins in that of the whole network. A part's cells of an output are
 * where those of the image are, which these networks leave as it is. */
struct place {
    int64_t planes, height, width, whole_height, whole_width, top, left;
};

static struct place place_of(const struct part *part, const struct shape *own,
                             const struct shape *whole)
{
    struct space_part at = space_part(&part->spec, whole->dim[2], whole->dim[3]);
    return (struct place){ own->dim[0] * own->dim[1],
                           own->dim[2],
                           own->dim[3],
                           whole->dim[2],
                           whole->dim[3],
                           at.y0,
                           at.x0 };
}

static void fill(float *to, uint64_t stream, const struct place *p)
{
    for (int64_t i = 0; i < p->planes * p->height * p->width; i++) {
        int64_t row = p->top + i / p->width % p->height, column = p->left + i % p->width;
        int64_t plane = i / (p->width * p->height);
        to[i] =
            (float)zoo_number(stream, (plane * p->whole_height + row) * p->whole_width + column);
    }
}

static void put(const float *from, const struct place *p, float *to)
{
    for (int64_t r = 0; r < p->planes * p->height; r++)
        memcpy(to + (r / p->height * p->whole_height + p->top + r % p->height) * p->whole_width +
                   p->left,
               from + r * p->width, (size_t)p->width * sizeof *to);
}

static void fill_plain(float *to, uint64_t stream, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)zoo_number(stream, i);
}

static void fill_all(struct part *part)
{
    for (int i = 0; i < part->graph->n_inputs; i++) {
        uint64_t stream = zoo_stream("", part->graph->inputs[i].name);
        const struct shape *own = graph_shape(part->graph, part->graph->inputs[i].value);
        const struct shape *whole = graph_shape(part->whole, part->whole->inputs[i].value);
        struct place place = own->rank == 4 ? place_of(part, own, whole) : (struct place){ 0 };
        if (own->rank == 4)
            fill(plan_input(part->plan, i), stream, &place);
        else
            fill_plain(plan_input(part->plan, i), stream, shape_count(own));
    }
    for (int i = 0; i < part->graph->n_outputs && (!part->job->outputs || i < part->job->outputs);
         i++) {
        uint64_t stream = zoo_stream("loss:", part->graph->outputs[i].name);
        const struct shape *own = graph_shape(part->graph, part->graph->outputs[i].value);
        const struct shape *whole = graph_shape(part->whole, part->whole->outputs[i].value);
        float *to = plan_output_gradient(part->plan, i);
        bool divided = is_divided(part->job, whole);
        struct place place = divided ? place_of(part, own, whole) : (struct place){ 0 };
        if (divided)
            fill(to, stream, &place);
        else if (part->spec.row == 0 && part->spec.column == 0)
            fill_plain(to, stream, shape_count(own));
    }
}

static void work(void *parts, int rank)
{
    struct part *part = (struct part *)parts + rank;
    const struct space_job *job = part->job;
    struct plan_options options = { .mode = job->frozen ? PLAN_TUNE : PLAN_TRAIN,
                                    .threads = 1,
                                    .direct = !job->winograd,
                                    .saving = job->recompute ? SAVING_RECOMPUTE : SAVING_ALL,
                                    .input_gradients = true };
    if (job->rows * job->columns > 1) {
        options.peers[PEERS_BANDS] = &part->peers[0];
        options.peers[PEERS_SPACE] = &part->peers[1];
        options.norm_peers = 1u << PEERS_BANDS | 1u << PEERS_SPACE;
    }
    part->whole = job->build(job->arg);
    if (!part->whole || !transform_space(part->whole, &part->spec, &part->graph, &part->err) ||
        (job->fault == FAULT_SMALL && !shrink_first_halo(part->graph)) ||
        !plan_new(part->graph, &options, &part->plan, &part->err))
        return;
    fill_all(part);
    plan_zero_gradients(part->plan);
    if (!plan_forward(part->plan, &part->err))
        return;
    part->backward = true;
    part->ok = plan_backward(part->plan, &part->err);
}

static float *floats(int64_t n)
{
    float *out = calloc((size_t)n, sizeof *out);
    assert_non_null(out);
    return out;
}

static void collect_outputs(const struct part *parts, int n, struct space_result *out)
{
    const struct graph *whole = parts[0].whole;
    out->n_outputs = whole->n_outputs;
    out->outputs = calloc((size_t)whole->n_outputs, sizeof *out->outputs);
    assert_non_null(out->outputs);
    for (int i = 0; i < whole->n_outputs; i++) {
        const struct shape *shape = graph_shape(whole, whole->outputs[i].value);
        size_t bytes = (size_t)shape_count(shape) * sizeof(float);
        out->outputs[i] = floats(shape_count(shape));
        for (int p = 0; p < n; p++) {
            const struct graph *g = parts[p].graph;
            const float *own = plan_output(parts[p].plan, i);
            struct place place = { 0 };
            if (is_divided(parts[p].job, shape)) {
                place = place_of(&parts[p], graph_shape(g, g->outputs[i].value), shape);
                put(own, &place, out->outputs[i]);
            } else if (p == 0) {
                memcpy(out->outputs[i], own, bytes);
            } else {
                assert_memory_equal(out->outputs[i], own, bytes);
            }
        }
    }
}

static void collect_gradients(const struct part *parts, int n, struct space_result *out)
{
    const struct graph *whole = parts[0].whole;
    const struct shape *image = graph_shape(whole, whole->inputs[0].value);
    out->input_gradient = floats(shape_count(image));
    for (int p = 0; p < n; p++) {
        const struct graph *g = parts[p].graph;
        const float *own = plan_gradients(parts[p].plan, &out->count);
        const struct shape *shape = graph_shape(g, g->inputs[0].value);
        struct place place = place_of(&parts[p], shape, image);
        struct err err = { 0 };
        out->gradients = p ? out->gradients : floats(out->count);
        for (int64_t i = 0; i < out->count; i++)
            out->gradients[i] += own[i];
        float *part = floats(shape_count(shape));
        if (!plan_activation_gradient(parts[p].plan, g->inputs[0].value, part, &err))
            fail_msg("%s", err.text);
        put(part, &place, out->input_gradient);
        free(part);
    }
}

void space_parts_run(const struct space_job *job, struct space_result *out)
{
    struct part parts[MOST] = { 0 };
    struct thread_peers *bands[MOST] = { NULL }, *space[MOST] = { NULL };
    int n = job->rows * job->columns;
    struct thread_peers *all = thread_peers_new(n);
    assert_true(all && n <= MOST);
    for (int i = 0; i < job->columns; i++)
        bands[i] = thread_peers_new(job->rows);
    for (int i = 0; i < job->rows; i++)
        space[i] = thread_peers_new(job->columns);
    for (int p = 0; p < n; p++) {
        int row = p / job->columns, column = p % job->columns;
        parts[p].job = job;
        parts[p].spec =
            (struct space_spec){ job->rows, job->columns, row, column, job->whole_outputs };
        for (int i = 0; i < 2; i++) {
            parts[p].leaky[i] = (struct leaky){ i ? thread_peers_of(space[row], column)
                                                  : thread_peers_of(bands[column], row),
                                                &parts[p] };
            parts[p].peers[i] = leaky_peers(&parts[p].leaky[i]);
        }
    }
    thread_peers_run(all, work, parts);
    for (int p = 0; p < n; p++)
        if (!parts[p].ok)
            fail_msg("part %d of %d x %d: %s", p, job->rows, job->columns, parts[p].err.text);
    collect_outputs(parts, n, out);
    collect_gradients(parts, n, out);
    out->graph = parts[0].whole;
    for (int p = 0; p < n; p++) {
        plan_free(parts[p].plan), graph_free(parts[p].graph);
        if (p)
            graph_free(parts[p].whole);
    }
    for (int i = 0; i < MOST; i++)
        thread_peers_free(bands[i]), thread_peers_free(space[i]);
    thread_peers_free(all);
}

void space_result_free(struct space_result *result)
{
    for (int i = 0; i < result->n_outputs; i++)
        free(result->outputs[i]);
    free(result->outputs), free(result->gradients), free(result->input_gradient);
    graph_free(result->graph);
}
