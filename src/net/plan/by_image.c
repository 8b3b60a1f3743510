/* by_image.c: an execution for inference: the first layers run image by image, the last ones on the
 * whole batch. At first maps are large and weights few: the activations of one image stay in the
 * caches, every thread has its own images and waits for no other thread, and branches are joined in
 * place. The last layers have more weights than pixels. The network is cut into two graphs; the
 * plans of the first one read the images and write the rows of the second one's input in place.
 * Where it is cut depends only on its graph. */
#include <stdlib.h>
#include <string.h>
#include "net/graph/op.h"
#include "net/graph/transform.h"
#include "net/plan/execution.h"

#define FEW_PIXELS 700 /* of a map: a convolution that gives fewer takes the whole batch */

struct by_image {
    struct plan plan;
    struct graph *head, *tail; /* head: at batch 1 */
    struct plan_weights *own_weights;
    struct plan **alone;   /* [threads], one thread each; NULL: fewer images than threads */
    struct plan *together; /* for the images that are left over: all threads; NULL: none are */
    struct plan *rest;     /* of the network */
    int threads;
    int64_t batch, n_alone; /* images; those that the threads do alone */
    float *input;           /* [batch][image_floats] */
    size_t input_bytes;     /* with what follows up to the next piece */
    bool input_lent;
    int64_t image_floats;
    size_t row_bytes; /* of an image in the input of the tail */
};

static struct by_image *of(struct plan *plan)
{
    return (struct by_image *)plan;
}

static const struct by_image *of_const(const struct plan *plan)
{
    return (const struct by_image *)plan;
}

static void by_image_free(struct plan *plan)
{
    struct by_image *images = of(plan);
    for (int i = 0; images->alone && i < images->threads; i++)
        plan_free(images->alone[i]);
    plan_free(images->together);
    plan_free(images->rest);
    free(images->alone);
    plan_weights_free(images->own_weights);
    graph_free(images->head), graph_free(images->tail);
    if (!images->input_lent)
        free(images->input);
    free(images);
}

/* Ops that process every image separately, as an image. */
static bool is_by_image(const struct node *node)
{
    switch (node->op->kind) {
    case OP_CONV:
    case OP_BATCH_NORM:
    case OP_RELU:
    case OP_LEAKY_RELU:
    case OP_SILU:
    case OP_GELU:
    case OP_SIGMOID:
    case OP_TANH:
    case OP_FUNCTION:
    case OP_MAX_POOL:
    case OP_AVERAGE_POOL:
    case OP_LRN:
    case OP_ADD:
    case OP_SCALE:
    case OP_CONCAT:
    case OP_PAD:
        return true;
    default:
        return false;
    }
}

static bool belongs_to_head(const struct graph *graph, const struct node *node)
{
    const struct shape *shape = graph_shape(graph, node->output);
    int64_t batch = graph_shape(graph, graph->inputs[0].value)->dim[0];
    if (!is_by_image(node) || shape->rank != 4 || shape->dim[0] != batch)
        return false;
    return node->op->kind != OP_CONV || shape->dim[2] * shape->dim[3] >= FEW_PIXELS;
}

/* Whether of all that is known behind node `last`, the nodes that follow need its output alone. */
static bool one_value_crosses(const struct graph *graph, int32_t last)
{
    value_id only = graph->nodes[last].output;
    bool read = false;
    for (int32_t i = last + 1; i < graph->n_nodes; i++)
        for (int k = 0; k < graph->nodes[i].n_inputs; k++) {
            value_id value = graph->nodes[i].inputs[k];
            if (value == NO_VALUE || graph_is_parameter(graph, value))
                continue;
            bool later = false;
            for (int32_t n = last + 1; n < i; n++)
                later = later || graph->nodes[n].output == value;
            if (!later && value != only)
                return false;
            read = read || value == only;
        }
    return read;
}

/* The value behind the head; NO_VALUE if there is none. */
static value_id find_cut(const struct graph *graph)
{
    int32_t end = 0;
    while (end < graph->n_nodes && belongs_to_head(graph, &graph->nodes[end]))
        end++;
    for (int32_t last = end - 1; last > 0; last--)
        if (one_value_crosses(graph, last))
            return graph->nodes[last].output;
    return NO_VALUE;
}

static bool make_heads(struct by_image *images, struct plan_options *options, struct loan *loan,
                       struct err *err)
{
    int threads = options->threads;
    images->n_alone = images->batch / threads * threads;
    options->ends = PLAN_ENDS_NATIVE_OUTPUTS;
    if (images->n_alone > 0) {
        images->alone = calloc((size_t)threads, sizeof(struct plan *));
        if (!images->alone)
            return err_memory(err, "plan");
        options->threads = 1;
        for (int i = 0; i < threads; i++)
            if (!loan_plan(loan, images->head, options, &images->alone[i], err))
                return false;
        options->threads = threads;
    }
    return images->n_alone == images->batch ||
           loan_plan(loan, images->head, options, &images->together, err);
}

static bool make_input(struct by_image *images, struct loan *loan, struct err *err)
{
    images->image_floats = shape_count(graph_shape(images->head, images->head->inputs[0].value));
    size_t bytes = (size_t)(images->image_floats * images->batch) * sizeof(float);
    images->input_bytes = loan_bytes(bytes);
    images->input = loan_take(loan, images->input_bytes);
    images->input_lent = images->input != NULL;
    if (images->input_lent)
        return true;
    images->input = aligned_alloc(LOAN_ALIGNMENT, images->input_bytes);
    if (!images->input)
        return err_memory(err, "images");
    memset(images->input, 0, images->input_bytes);
    return true;
}

static const struct plan *any_head(const struct by_image *images)
{
    return images->alone ? images->alone[0] : images->together;
}

static bool make(struct by_image *images, struct plan_options options, struct err *err)
{
    struct loan loan = loan_of(&options);
    struct plan_end between;
    options.by_image = false;
    if (!options.weights)
        options.weights = images->own_weights = plan_weights_new();
    if (!options.weights)
        return err_memory(err, "plan");
    if (!make_input(images, &loan, err) || !make_heads(images, &options, &loan, err))
        return false;
    const struct plan *head = any_head(images);
    if (!plan_end(head, PLAN_PORT_OUTPUT, 0, &between, err))
        return false;
    images->row_bytes = between.bytes;
    options.ends = between.layout == LAYOUT_BLOCKED ? PLAN_ENDS_BLOCKED_INPUTS : PLAN_ENDS_PLAIN;
    size_t used = plan_memory(head).winograd;
    if (options.weights_budget) /* what the head has left; 0 would be no bound */
        options.weights_budget = options.weights_budget > used ? options.weights_budget - used : 1;
    return loan_plan(&loan, images->tail, &options, &images->rest, err);
}

/* Whether one value is all that joins the parts, and holds as many images as the input. It does not
 * where outputs are among the first layers, nor where a parameter is as large as the batch. */
static bool fit_together(const struct graph *graph, const struct by_image *images)
{
    const struct graph *head = images->head, *tail = images->tail;
    return head->n_outputs == 1 && tail->n_inputs == 1 && tail->n_outputs == graph->n_outputs &&
           graph_shape(head, head->outputs[0].value)->dim[0] == 1;
}

/* Not for one image, several inputs, outputs among the first layers, or where there is no single
 * value between the two kinds of layers. */
static bool by_image_make(const struct graph *graph, const struct plan_options *options,
                          struct plan **out, struct err *err)
{
    if (!options->by_image || options->mode != PLAN_INFER || options->n_keep > 0)
        return true;
    int64_t batch = graph->n_inputs == 1 ? graph_shape(graph, graph->inputs[0].value)->dim[0] : 0;
    value_id cut = batch > 1 ? find_cut(graph) : NO_VALUE;
    if (cut == NO_VALUE)
        return true;
    struct by_image *images = calloc(1, sizeof *images);
    struct graph *head = NULL;
    if (!images)
        return err_memory(err, graph->name);
    images->threads = options->threads, images->batch = batch;
    bool ok = transform_cut(graph, cut, &head, &images->tail, err) &&
              transform_resize(head, 1, 0, 0, &images->head, err);
    graph_free(head);
    bool fits = ok && fit_together(graph, images);
    ok = ok && (!fits || make(images, *options, err));
    if (ok && fits)
        *out = &images->plan;
    else
        by_image_free(&images->plan);
    return ok;
}

static bool run_image(const struct by_image *images, struct plan *plan, int64_t image,
                      struct err *err)
{
    char *rows = (char *)plan_input(images->rest, 0);
    return plan_move(plan, PLAN_PORT_INPUT, 0, images->input + image * images->image_floats, err) &&
           plan_move(plan, PLAN_PORT_OUTPUT, 0, rows + (size_t)image * images->row_bytes, err) &&
           plan_forward(plan, err);
}

static bool by_image_forward(struct plan *plan, struct err *err)
{
    const struct by_image *images = of(plan);
    bool all = true;
#pragma omp parallel for num_threads(images->threads) schedule(static, 1) if (images->threads > 1)
    for (int me = 0; me < (images->alone ? images->threads : 0); me++) {
        struct err problem = { 0 };
        bool ok = true;
        for (int64_t i = me; i < images->n_alone && ok; i += images->threads)
            ok = run_image(images, images->alone[me], i, &problem);
        if (!ok) {
#pragma omp critical(by_image_failed)
            {
                all = false;
                if (err)
                    *err = problem;
            }
        }
    }
    for (int64_t i = images->n_alone; i < images->batch && all; i++)
        all = run_image(images, images->together, i, err);
    return all && plan_forward(images->rest, err);
}

static float *by_image_input(struct plan *plan, int i)
{
    (void)i; /* there is one */
    return of(plan)->input;
}

static const float *by_image_output(const struct plan *plan, int i)
{
    return plan_output(of_const(plan)->rest, i);
}

/* Weights that the threads share are counted once. */
static struct plan_memory by_image_memory(const struct plan *plan)
{
    const struct by_image *images = of_const(plan);
    struct plan_memory sum = { .arena = images->input_bytes,
                               .lent = images->input_lent,
                               .unshared = images->input_bytes };
    if (images->together)
        plan_memory_add(&sum, images->together);
    for (int i = 0; images->alone && i < images->threads; i++) {
        struct plan_memory before = sum;
        plan_memory_add(&sum, images->alone[i]);
        if (i > 0 || images->together)
            sum.shared = before.shared, sum.winograd = before.winograd;
    }
    plan_memory_add(&sum, images->rest);
    if (images->own_weights) {
        sum.weights += sum.shared;
        sum.shared = 0;
    }
    return sum;
}

static int by_image_steps(const struct plan *plan)
{
    const struct by_image *images = of_const(plan);
    return plan_steps(any_head(images)) + plan_steps(images->rest);
}

static void by_image_print(const struct plan *plan, FILE *stream)
{
    const struct by_image *images = of_const(plan);
    fprintf(stream, "each of %lld images separately:\n", (long long)images->batch);
    plan_print(any_head(images), stream);
    fprintf(stream, "then all together:\n");
    plan_print(images->rest, stream);
}

const struct plan_ops plan_by_image = {
    .name = "by_image",
    .make = by_image_make,
    .free = by_image_free,
    .input = by_image_input,
    .output = by_image_output,
    .forward = by_image_forward,
    .memory = by_image_memory,
    .steps = by_image_steps,
    .print = by_image_print,
};
