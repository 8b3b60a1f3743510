/* heads_parts.c: see heads_parts.h. */
#include "support/heads_parts.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net/graph/transform.h"
#include "support/thread_peers.h"
#include "support/zoo_golden.h"

#define MOST 32 /* processes */

struct process {
    struct graph *part;
    struct plan *plan;
    int64_t *outer; /* see transform_heads; NULL: not divided */
    bool *summed;   /* see transform_tokens; NULL: not divided */
};

struct run {
    const struct heads_job *job;
    const struct graph *whole; /* with the batch of all replicas */
    struct graph *replica;     /* with that of one */
    float *inputs[2];          /* of the whole batch */
    struct thread_peers *peers[MOST];
    struct process processes[MOST];
};

static void end_if(bool failed, const char *what, const struct err *err)
{
    if (!failed)
        return;
    fprintf(stderr, "%s: %s\n", what, err->text);
    exit(1);
}

/* Leaves out the sums of one pass. */
static void break_sums(struct graph *graph, enum heads_fault fault)
{
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        union attr *a = &graph->nodes[i].attr;
        switch (graph->nodes[i].op->kind) {
        case OP_ALL_REDUCE:
            a->all_reduce.sum_forward &= fault != HEADS_APART;
            a->all_reduce.sum_backward &= fault != HEADS_DETACHED;
            break;
        case OP_REDUCE_SCATTER:
            a->reduce_scatter.sum_forward &= fault != HEADS_APART;
            break;
        case OP_ALL_GATHER:
            a->all_gather.sum_backward &= fault != HEADS_DETACHED;
            break;
        default:
            break;
        }
    }
}

/* --- numbers --- */

static int64_t count_of(const struct graph *graph, value_id value)
{
    return shape_count(graph_shape(graph, value));
}

struct graph *heads_network(const char *network, const struct zoo_options *options)
{
    struct graph *graph = NULL;
    struct err err = { 0 };
    end_if(!zoo_build(network, options, &graph, &err) || !graph_allocate(graph, &err), network,
           &err);
    zoo_fill_parameters(graph, 1.0, false);
    return graph;
}

/* As make_texts of make_zoo_golden.py. */
static void make_texts(const struct heads_job *job, float *ids, float *mask)
{
    int64_t batch = job->options.batch, tokens = job->options.height;
    for (int64_t i = 0; i < batch * tokens; i++) {
        ids[i] = floorf((ids[i] + 1) / 2 * (float)(job->options.channels - 2)) + 2;
        mask[i] = i % tokens < tokens - i / tokens * tokens / (2 * batch);
    }
}

static void make_inputs(struct run *run)
{
    const struct graph *graph = run->whole;
    for (int i = 0; i < graph->n_inputs; i++) {
        int64_t n = count_of(graph, graph->inputs[i].value);
        uint64_t stream = zoo_stream("", graph->inputs[i].name);
        run->inputs[i] = calloc((size_t)n, sizeof(float));
        for (int64_t k = 0; k < n; k++)
            run->inputs[i][k] = (float)zoo_number(stream, k);
    }
    if (graph->n_inputs == 2)
        make_texts(run->job, run->inputs[0], run->inputs[1]);
}

/* --- one process --- */

static void divide_tokens(const struct heads_job *job, int part, struct process *p)
{
    struct graph *heads = p->part;
    struct err err = { 0 };
    end_if(!transform_tokens(heads, job->parts, part, &p->part, &p->summed, &err), "tokens", &err);
    graph_free(heads);
}

static void make_plan(struct run *run, struct process *p, int replica, int part)
{
    const struct heads_job *job = run->job;
    struct plan_options options = {
        .mode = job->mode, .threads = 1, .saving = job->saving, .wait_for_sums = job->wait
    };
    struct err err = { 0 };
    if (job->parts > 1) {
        p->outer = calloc((size_t)run->replica->n_values, sizeof *p->outer);
        end_if(!transform_heads(run->replica, job->parts, part, &p->part, p->outer, &err), "heads",
               &err);
        if (job->tokens)
            divide_tokens(job, part, p);
        break_sums(p->part, job->fault);
        options.peers[PEERS_HEADS] = thread_peers_of(run->peers[replica], part);
    } else {
        end_if(!graph_copy(run->replica, &p->part, &err), "copy", &err);
    }
    end_if(!plan_new(p->part, &options, &p->plan, &err), "plan", &err);
    plan_zero_gradients(p->plan);
}

static void work(void *arg, int number)
{
    struct run *run = arg;
    const struct heads_job *job = run->job;
    int replica = number / job->parts, part = number % job->parts;
    struct process *p = &run->processes[number];
    struct err err = { 0 };
    make_plan(run, p, replica, part);
    plan_set_random(p->plan, 7, (uint64_t)(replica * job->options.batch / job->replicas));
    for (int i = 0; i < p->part->n_inputs; i++) {
        int64_t n = count_of(p->part, p->part->inputs[i].value);
        memcpy(plan_input(p->plan, i), run->inputs[i] + replica * n, (size_t)n * sizeof(float));
    }
    end_if(!plan_forward(p->plan, &err), "forward", &err);
    int64_t n = count_of(p->part, p->part->outputs[0].value);
    uint64_t loss = zoo_stream("loss:", p->part->outputs[0].name);
    for (int64_t k = 0; k < n; k++)
        plan_output_gradient(p->plan, 0)[k] = (float)zoo_number(loss, replica * n + k);
    end_if(!plan_backward(p->plan, &err), "backward", &err);
}

/* --- all together --- */

static value_id next_parameter(const struct graph *graph, value_id v)
{
    while (v < graph->n_values && graph->values[v].kind != VALUE_PARAMETER)
        v++;
    return v;
}

/* Gradients of a process, added to those of the whole network: what all parts have, from the first.
 */
static void add(const struct run *run, const struct process *p, int part, float *sum)
{
    const struct graph *whole = run->replica;
    int64_t n = 0;
    float *own = plan_gradients(p->plan, &n);
    value_id of_part = next_parameter(p->part, 0);
    for (value_id v = next_parameter(whole, 0); v < whole->n_values;
         v = next_parameter(whole, v + 1), of_part = next_parameter(p->part, of_part + 1)) {
        int64_t count = count_of(whole, v), outer = p->outer ? p->outer[v] : 0;
        int64_t have = outer > 0 ? count / run->job->parts : count;
        bool summed = p->summed && p->summed[of_part] && run->job->fault != HEADS_ALONE;
        float *place = calloc((size_t)count, sizeof *place);
        if (outer > 0)
            heads_move(place, count, outer, run->job->parts, part, own, true);
        else if (part == 0 || summed)
            memcpy(place, own, (size_t)count * sizeof *place);
        for (int64_t i = 0; i < count; i++)
            sum[i] += place[i];
        sum += count, own += have;
        free(place);
    }
}

static void put_together(struct run *run, struct heads_result *out)
{
    const struct heads_job *job = run->job;
    int64_t n = out->n_outputs / job->replicas;
    struct err err = { .text = "parts that have other outputs" };
    for (int i = 0; i < job->replicas * job->parts; i++) {
        struct process *p = &run->processes[i];
        const float *outputs = plan_output(p->plan, 0);
        float *place = out->outputs + i / job->parts * n;
        add(run, p, i % job->parts, out->gradients);
        if (i % job->parts == 0)
            memcpy(place, outputs, (size_t)n * sizeof *place);
        end_if(job->fault == HEADS_RIGHT && memcmp(place, outputs, (size_t)n * sizeof *place) != 0,
               job->network, &err);
        out->part_count = graph_parameter_count(p->part);
        out->arena = plan_memory(p->plan).arena;
        plan_free(p->plan);
        graph_free(p->part);
        free(p->outer), free(p->summed);
    }
}

void heads_parts_run(const struct heads_job *job, struct heads_result *out)
{
    struct run run = { .job = job };
    struct zoo_options one = job->options;
    int n = job->parts * job->replicas;
    one.batch /= job->replicas;
    *out = (struct heads_result){ .graph = heads_network(job->network, &job->options) };
    run.whole = out->graph;
    run.replica = heads_network(job->network, &one);
    out->count = graph_parameter_count(run.whole);
    out->n_outputs = count_of(run.whole, run.whole->outputs[0].value);
    out->gradients = calloc((size_t)out->count, sizeof *out->gradients);
    out->outputs = calloc((size_t)out->n_outputs, sizeof *out->outputs);
    make_inputs(&run);
    for (int r = 0; r < job->replicas; r++)
        run.peers[r] = thread_peers_new(job->parts);
    struct thread_peers *everybody = thread_peers_new(n);
    thread_peers_run(everybody, work, &run);
    put_together(&run, out);
    thread_peers_free(everybody);
    for (int r = 0; r < job->replicas; r++)
        thread_peers_free(run.peers[r]);
    graph_free(run.replica);
    free(run.inputs[0]), free(run.inputs[1]);
}

void heads_result_free(struct heads_result *result)
{
    graph_free(result->graph);
    free(result->gradients), free(result->outputs);
    *result = (struct heads_result){ 0 };
}
