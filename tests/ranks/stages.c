/* stages.c: a ResNet-18 cut into as many stages as there are ranks trains as the whole network
 * does, bitwise: activations go forward, gradients back, several small batches are in flight. A
 * second copy of the network runs over the same ranks the other way round, as in GEMS: rank r has
 * stage r of the one and the stage with which rank r ends the other; stages are summed in pairs of
 * ranks. */
#include <string.h>
#include "base/rng.h"
#include "check.h"
#include "net/graph/transform.h"
#include "net/plan/plan.h"
#include "net/zoo/zoo.h"

#define BATCHES 3 /* in flight */
#define BATCH 2
#define SIDE 32
#define CLASSES 5

static void fill_images(float *to, int64_t first)
{
    for (int64_t i = 0; i < BATCH * 3 * SIDE * SIDE; i++) {
        struct rng rng = rng_new(5, (uint64_t)first, (uint64_t)i);
        to[i] = (float)(rng_uniform(&rng) - 0.5);
    }
}

/* Half the squared difference from a class that changes with the image. */
static void loss_gradient(const float *logits, int64_t first, float *to)
{
    for (int64_t i = 0; i < BATCH * CLASSES; i++)
        to[i] = logits[i] - (float)((first + i / CLASSES) % CLASSES == i % CLASSES);
}

static struct graph *network(const struct ranks *all)
{
    struct zoo_options options = {
        .batch = BATCH, .height = SIDE, .width = SIDE, .classes = CLASSES
    };
    struct err err = { 0 };
    struct graph *graph = NULL;
    CHECK_OK(all, zoo_build("resnet18", &options, &graph, &err), &err);
    CHECK_OK(all, graph_initialize(graph, 3, &err), &err);
    return graph;
}

/* --- the whole network --- */

/* Adds the gradients of BATCHES batches from image `first` on. */
static void run_whole(const struct ranks *all, struct plan *plan, int64_t first)
{
    struct err err = { 0 };
    for (int64_t m = 0; m < BATCHES; m++, first += BATCH) {
        fill_images(plan_input(plan, 0), first);
        CHECK_OK(all, plan_forward(plan, &err), &err);
        loss_gradient(plan_output(plan, 0), first, plan_output_gradient(plan, 0));
        CHECK_OK(all, plan_backward(plan, &err), &err);
    }
}

/* --- a stage of it --- */

/* The stage of a pipeline whose rank in the group is the stage's number. Each small batch has a
 * plan; they add to the same gradients. Where several values crossed a cut, each would be a
 * message. */
struct stage {
    struct ranks group;
    struct graph *graph;
    struct plan *plans[BATCHES];
    float *gradients, *back[BATCHES]; /* back: to the stage before */
    int64_t count;
    size_t in_bytes, out_bytes;
};

/* The graph between two cuts. */
static struct graph *part_of(const struct ranks *all, int at, int count)
{
    static const char *const cuts[] = { "layer1", "layer2", "layer3" };
    struct err err = { 0 };
    struct graph *graph = network(all), *head = NULL, *tail = NULL;
    for (int s = 0; s <= at && s < count - 1; s++) {
        CHECK_OK(all, transform_cut(graph, graph_find(graph, cuts[s]), &head, &tail, &err), &err);
        graph_free(graph);
        graph = s == at ? head : tail;
        graph_free(s == at ? tail : head);
    }
    CHECK(all, graph->n_inputs == 1 && graph->n_outputs == 1);
    return graph;
}

static size_t bytes_of(const struct graph *graph, value_id value)
{
    return (size_t)shape_count(graph_shape(graph, value)) * sizeof(float);
}

/* key: the order of the stages. */
static void stage_new(struct ranks *all, int key, const char *name, struct stage *out)
{
    struct err err = { 0 };
    *out = (struct stage){ 0 };
    CHECK_OK(all, ranks_split(all, 0, key, name, &out->group, &err), &err);
    out->graph = part_of(all, out->group.rank, out->group.size);
    out->count = graph_parameter_count(out->graph);
    out->gradients = calloc((size_t)out->count, sizeof *out->gradients);
    out->in_bytes = bytes_of(out->graph, out->graph->inputs[0].value);
    out->out_bytes = bytes_of(out->graph, out->graph->outputs[0].value);
    for (int m = 0; m < BATCHES; m++) {
        struct plan_options options = { .mode = PLAN_TRAIN,
                                        .threads = 1,
                                        .gradients = out->gradients,
                                        .input_gradients = out->group.rank > 0 };
        CHECK_OK(all, plan_new(out->graph, &options, &out->plans[m], &err), &err);
        out->back[m] = malloc(out->in_bytes);
    }
}

static void stage_free(struct stage *stage)
{
    for (int m = 0; m < BATCHES; m++) {
        plan_free(stage->plans[m]);
        free(stage->back[m]);
    }
    graph_free(stage->graph);
    free(stage->gradients);
    ranks_free(&stage->group);
}

/* Messages go straight into the plans. What was received last time is used while the next arrives.
 */
static void stage_forward(struct stage *stage, int64_t first)
{
    struct ranks *group = &stage->group;
    int64_t received[BATCHES] = { 0 };
    struct err err = { 0 };
    for (int m = 0; m < BATCHES && group->rank > 0; m++)
        CHECK_OK(group,
                 ranks_start_receive(group, group->rank - 1, plan_input(stage->plans[m], 0),
                                     stage->in_bytes, &received[m], &err),
                 &err);
    for (int m = 0; m < BATCHES; m++) {
        if (group->rank == 0)
            fill_images(plan_input(stage->plans[m], 0), first + m * BATCH);
        else
            CHECK_OK(group, ranks_finish(group, received[m], &err), &err);
        CHECK_OK(group, plan_forward(stage->plans[m], &err), &err);
        if (group->rank < group->size - 1)
            CHECK_OK(group,
                     ranks_start_send(group, group->rank + 1, plan_output(stage->plans[m], 0),
                                      stage->out_bytes, NULL, &err),
                     &err);
        CHECK_OK(group, ranks_progress(group, &err), &err);
    }
}

static void stage_backward(struct stage *stage, int64_t first)
{
    struct ranks *group = &stage->group;
    value_id input = stage->graph->inputs[0].value;
    struct err err = { 0 };
    for (int m = 0; m < BATCHES; m++) {
        float *d = plan_output_gradient(stage->plans[m], 0);
        if (group->rank == group->size - 1)
            loss_gradient(plan_output(stage->plans[m], 0), first + m * BATCH, d);
        else
            CHECK_OK(group, ranks_receive(group, group->rank + 1, d, stage->out_bytes, &err), &err);
        CHECK_OK(group, plan_backward(stage->plans[m], &err), &err);
        if (group->rank == 0)
            continue;
        CHECK_OK(group, plan_activation_gradient(stage->plans[m], input, stage->back[m], &err),
                 &err);
        CHECK_OK(
            group,
            ranks_start_send(group, group->rank - 1, stage->back[m], stage->in_bytes, NULL, &err),
            &err);
    }
    CHECK_OK(group, ranks_finish(group, RANKS_ALL, &err), &err);
}

/* --- compared --- */

/* The stage's gradients, and the running statistics of its norms, are the whole network's. */
static void compare(const struct stage *stage, const struct graph *whole, struct plan *plan,
                    bool statistics)
{
    const struct graph *graph = stage->graph;
    for (value_id v = 0; v < graph->n_values; v++) {
        const struct value *value = &graph->values[v];
        value_id same = graph_is_parameter(graph, v) ? graph_find(whole, value->name) : NO_VALUE;
        if (value->kind == VALUE_PARAMETER)
            CHECK(&stage->group,
                  memcmp(plan_parameter_gradient(stage->plans[0], v),
                         plan_parameter_gradient(plan, same), bytes_of(graph, v)) == 0);
        else if (statistics && value->kind == VALUE_BUFFER)
            CHECK(&stage->group,
                  memcmp(graph_data(graph, v), graph_data(whole, same), bytes_of(graph, v)) == 0);
    }
}

/* Sums stage s of both pipelines between the ranks that have it: s and its mirror. A rank has two,
 * the one summed first by both is that of the lower rank. */
static void sum_pairs(struct ranks *all, struct stage *forth, struct stage *back)
{
    int mirror = all->size - 1 - all->rank, low = all->rank < mirror ? all->rank : mirror;
    struct ranks pair;
    struct err err = { 0 };
    CHECK_OK(all, ranks_split(all, low, all->rank, "pair", &pair, &err), &err);
    if (pair.size == 1) { /* the middle one has both copies of its stage */
        for (int64_t i = 0; i < forth->count; i++)
            forth->gradients[i] = back->gradients[i] = forth->gradients[i] + back->gradients[i];
    } else {
        struct stage *lower = all->rank == low ? forth : back;
        struct stage *upper = all->rank == low ? back : forth;
        CHECK_OK(all, ranks_start_sum(&pair, lower->gradients, lower->count, &err), &err);
        CHECK_OK(all, ranks_start_sum(&pair, upper->gradients, upper->count, &err), &err);
        CHECK_OK(all, ranks_finish(&pair, RANKS_ALL, &err), &err);
    }
    ranks_free(&pair);
}

int main(void)
{
    enum { OTHER = BATCHES * BATCH }; /* the first image of the second pipeline */
    struct plan_options options = { .mode = PLAN_TRAIN, .threads = 1 };
    struct stage forth, back;
    struct ranks all;
    struct err err = { 0 };
    if (!ranks_begin(&all, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 77;
    }
    int64_t n = 0;
    struct graph *graph = network(&all);
    struct plan *plan = NULL;
    CHECK_OK(&all, plan_new(graph, &options, &plan, &err), &err);
    stage_new(&all, all.rank, "forth", &forth);
    stage_new(&all, -all.rank, "back", &back);
    stage_forward(&forth, 0);
    stage_backward(&forth, 0);
    stage_forward(&back, OTHER);
    stage_backward(&back, OTHER);
    plan_zero_gradients(plan);
    run_whole(&all, plan, 0);
    compare(&forth, graph, plan, true);
    float *gradients = plan_gradients(plan, &n), *first = malloc((size_t)n * sizeof *first);
    memcpy(first, gradients, (size_t)n * sizeof *first);
    plan_zero_gradients(plan);
    run_whole(&all, plan, OTHER);
    compare(&back, graph, plan, false);
    for (int64_t i = 0; i < n; i++)
        gradients[i] += first[i];
    sum_pairs(&all, &forth, &back);
    compare(&forth, graph, plan, false);
    compare(&back, graph, plan, false);
    free(first);
    stage_free(&forth);
    stage_free(&back);
    plan_free(plan);
    graph_free(graph);
    ranks_end(&all, true);
    return 0;
}
