/* plan_images.c: see plan_images.h. The network is cut into two graphs; the plans of the first one
 * read the images and write the rows of the second one's input in place. */
#include "net/plan/by_image.h"
#include <stdlib.h>
#include <string.h>
#include "net/plan/step.h"
#include "net/graph/op.h"
#include "net/graph/transform.h"

#define FEW_PIXELS 700 /* of a map: a convolution that gives fewer takes the whole batch */
#define ALIGNMENT ((size_t)64)

struct plan_images {
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

void plan_images_free(struct plan_images *images)
{
    if (!images)
        return;
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

/* Memory that was lent, taken piece by piece. */
struct loan {
    char *at;
    size_t room;
};

/* bytes: of whole lines, as all pieces. */
static void *take(struct loan *loan, size_t bytes)
{
    if (!loan->at || loan->room < bytes)
        return NULL;
    void *taken = loan->at;
    loan->at += bytes, loan->room -= bytes;
    return taken;
}

static bool make_plan(const struct graph *graph, struct plan_options *options, struct loan *loan,
                      struct plan **out, struct err *err)
{
    options->arena = loan->at, options->arena_room = loan->room;
    if (!plan_new(graph, options, out, err))
        return false;
    if (plan_memory(*out).lent)
        take(loan, plan_memory(*out).arena);
    return true;
}

static bool make_heads(struct plan_images *images, struct plan_options *options, struct loan *loan,
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
            if (!make_plan(images->head, options, loan, &images->alone[i], err))
                return false;
        options->threads = threads;
    }
    return images->n_alone == images->batch ||
           make_plan(images->head, options, loan, &images->together, err);
}

static bool make_input(struct plan_images *images, struct loan *loan, struct err *err)
{
    images->image_floats = shape_count(graph_shape(images->head, images->head->inputs[0].value));
    size_t bytes = (size_t)(images->image_floats * images->batch) * sizeof(float);
    images->input_bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    images->input = take(loan, images->input_bytes);
    images->input_lent = images->input != NULL;
    if (images->input_lent) /* as it is: another plan's output may lie there */
        return true;
    images->input = aligned_alloc(ALIGNMENT, images->input_bytes);
    if (!images->input)
        return err_memory(err, "images");
    memset(images->input, 0, images->input_bytes);
    return true;
}

static const struct plan *any_head(const struct plan_images *images)
{
    return images->alone ? images->alone[0] : images->together;
}

static enum layout native_output(const struct plan *plan)
{
    return plan->values[plan->graph->outputs[0].value].native;
}

static bool make(struct plan_images *images, struct plan_options options, struct err *err)
{
    struct loan loan = { options.arena, options.arena_room };
    options.by_image = false;
    if (!options.weights)
        options.weights = images->own_weights = plan_weights_new();
    if (!options.weights)
        return err_memory(err, "plan");
    if (!make_input(images, &loan, err) || !make_heads(images, &options, &loan, err))
        return false;
    const struct plan *head = any_head(images);
    enum layout layout = native_output(head);
    images->row_bytes =
        layout_bytes(head, graph_shape(images->head, images->head->outputs[0].value), layout);
    options.ends = layout == LAYOUT_BLOCKED ? PLAN_ENDS_BLOCKED_INPUTS : PLAN_ENDS_PLAIN;
    if (options.weights_budget) /* what the head has left; 0 would be no bound */
        options.weights_budget = options.weights_budget > head->winograd_bytes
                                     ? options.weights_budget - head->winograd_bytes
                                     : 1;
    return make_plan(images->tail, &options, &loan, &images->rest, err);
}

/* Whether one value is all that joins the parts, and holds as many images as the input. It does not
 * where outputs are among the first layers, nor where a parameter is as large as the batch. */
static bool fit_together(const struct graph *graph, const struct plan_images *images)
{
    const struct graph *head = images->head, *tail = images->tail;
    return head->n_outputs == 1 && tail->n_inputs == 1 && tail->n_outputs == graph->n_outputs &&
           graph_shape(head, head->outputs[0].value)->dim[0] == 1;
}

bool plan_images_new(const struct graph *graph, const struct plan_options *options,
                     struct plan_images **out, struct err *err)
{
    *out = NULL;
    int64_t batch = graph->n_inputs == 1 ? graph_shape(graph, graph->inputs[0].value)->dim[0] : 0;
    value_id cut = batch > 1 ? find_cut(graph) : NO_VALUE;
    if (cut == NO_VALUE)
        return true;
    struct plan_images *images = calloc(1, sizeof *images);
    struct graph *head = NULL;
    if (!images)
        return err_memory(err, graph->name);
    images->threads = options->threads, images->batch = batch;
    bool ok = transform_cut(graph, cut, &head, &images->tail, err) &&
              transform_resize(head, 1, 0, 0, &images->head, err);
    graph_free(head);
    bool parted = ok && fit_together(graph, images);
    ok = ok && (!parted || make(images, *options, err));
    if (ok && parted)
        *out = images;
    else
        plan_images_free(images);
    return ok;
}

static bool run_image(const struct plan_images *images, struct plan *plan, int64_t image,
                      struct err *err)
{
    char *rows = (char *)plan_input(images->rest, 0);
    plan_move_input(plan, images->input + image * images->image_floats);
    plan_move_output(plan, rows + (size_t)image * images->row_bytes);
    return plan_forward(plan, err);
}

bool plan_images_forward(struct plan_images *images, struct err *err)
{
    bool all = true;
#pragma omp parallel for num_threads(images->threads) schedule(static, 1) if (images->threads > 1)
    for (int me = 0; me < (images->alone ? images->threads : 0); me++) {
        struct err problem = { 0 };
        bool ok = true;
        for (int64_t i = me; i < images->n_alone && ok; i += images->threads)
            ok = run_image(images, images->alone[me], i, &problem);
        if (!ok) {
#pragma omp critical(plan_images_failed)
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

float *plan_images_input(const struct plan_images *images)
{
    return images->input;
}

const float *plan_images_output(const struct plan_images *images, int i)
{
    return plan_output(images->rest, i);
}

static void add_memory(struct plan_memory *sum, const struct plan *plan)
{
    if (!plan)
        return;
    struct plan_memory m = plan_memory(plan);
    sum->lent = sum->lent && m.lent;
    sum->arena += m.arena, sum->unshared += m.unshared, sum->weights += m.weights;
    sum->shared += m.shared;
}

/* Weights that the threads share are counted once. */
struct plan_memory plan_images_memory(const struct plan_images *images)
{
    struct plan_memory sum = { .arena = images->input_bytes,
                               .lent = images->input_lent,
                               .unshared = images->input_bytes };
    add_memory(&sum, images->together);
    for (int i = 0; images->alone && i < images->threads; i++) {
        size_t shared = sum.shared;
        add_memory(&sum, images->alone[i]);
        sum.shared = i > 0 || images->together ? shared : sum.shared;
    }
    add_memory(&sum, images->rest);
    if (images->own_weights) {
        sum.weights += sum.shared;
        sum.shared = 0;
    }
    return sum;
}

int plan_images_steps(const struct plan_images *images)
{
    return plan_steps(any_head(images)) + plan_steps(images->rest);
}

void plan_images_print(const struct plan_images *images, FILE *stream)
{
    fprintf(stream, "each of %lld images separately:\n", (long long)images->batch);
    plan_print(any_head(images), stream);
    fprintf(stream, "then all together:\n");
    plan_print(images->rest, stream);
}
