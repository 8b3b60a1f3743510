/* gradients.c: how far the gradient of a network that is divided among ranks is from one in double
 * precision, beside that of the whole network on one process. For exact_ranks.py:
 *
 *   gradients NETWORK BATCH HEIGHT WIDTH CLASSES FOLDER
 *
 * FOLDER/weights.safetensors has the weights; FOLDER/index.txt "name count" of each parameter; and
 * FOLDER/NORM_T.f64 the gradients of the first T micro-batches together, in that order;
 * FOLDER/NORM.txt which numbers each micro-batch is drawn from. Each line
 * of the standard input is a case, and gets a line with errors (see judge) of the divided and of
 * the whole network, and whether their bits are the same:
 *
 *   pipeline NORM SCHEDULE STAGES REPLICAS MICROS RECOMPUTE FAULT
 *   space NORM ROWS COLUMNS FAULT
 *
 * NORM: frozen, or batch: statistics of each micro-batch, or of the whole divided image. Ranks are
 * threads here. FAULT: none, or a mistake that must be seen: dropped and twice (a micro-batch),
 * lost (a gradient that is sent back), detached (the gradients of halos). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/text.h"
#include "net/model/weights.h"
#include "net/stages/costs.h"
#include "net/stages/pipeline.h"
#include "support/space_parts.h"
#include "support/thread_peers.h"
#include "support/zoo_golden.h"

#define MOST 4 /* stages */
#define REPLICAS 2
#define MICROS_MOST 64
#define NEGLIGIBLE 1e-9 /* of the largest gradient: what is zero but for rounding */

struct entry {
    char name[128];
    int64_t begin, count;
};

struct study {
    struct graph *graph; /* with its weights */
    const char *folder;
    struct entry *index;
    int n_index;
    int64_t count;
    double *reference;
    int draws[MICROS_MOST]; /* of the micro-batches */
    char plain_of[64];      /* the case for which reference and plain are */
    float *plain;
};

static void end_if(bool failed, const char *what, const struct err *err)
{
    if (!failed)
        return;
    fprintf(stderr, "%s: %s\n", what, err->text);
    exit(1);
}

/* --- numbers --- */

/* Draw 0 is that of space_parts.h. */
static uint64_t stream_of(const char *prefix, const char *name, int drawn)
{
    char text[160];
    snprintf(text, sizeof text, drawn ? "%s:%d" : "%s", name, drawn);
    return zoo_stream(prefix, text);
}

static void draw(float *to, int64_t n, uint64_t stream, double factor)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)(factor * zoo_number(stream, i));
}

static int64_t count_of(const struct graph *graph, value_id value)
{
    return shape_count(graph_shape(graph, value));
}

static void feed_network(const struct graph *graph, int port, int drawn, float *to)
{
    draw(to, count_of(graph, graph->inputs[port].value),
         stream_of("", graph->inputs[port].name, drawn), 1);
}

static void ask(const struct graph *graph, struct plan *plan, int drawn, double factor)
{
    draw(plan_output_gradient(plan, 0), count_of(graph, graph->outputs[0].value),
         stream_of("loss:", graph->outputs[0].name, drawn), factor);
}

/* --- the networks --- */

/* Weights are shared, running statistics are not. */
static struct graph *copy(void *graph)
{
    struct graph *out = NULL;
    struct err err = { 0 };
    end_if(!graph_copy(graph, &out, &err), "copy", &err);
    for (value_id v = 0; v < out->n_values; v++)
        if (out->values[v].kind == VALUE_BUFFER)
            end_if(!graph_own(out, v, &err), "copy", &err);
    return out;
}

static struct graph *network(char **args)
{
    struct zoo_options options = { .batch = strtoll(args[1], NULL, 10),
                                   .height = strtoll(args[2], NULL, 10),
                                   .width = strtoll(args[3], NULL, 10),
                                   .classes = strtoll(args[4], NULL, 10) };
    struct graph *graph = NULL;
    struct err err = { 0 };
    char *path = text_format("%s/weights.safetensors", args[5]);
    end_if(!zoo_build(args[0], &options, &graph, &err) || !graph_allocate(graph, &err) ||
               !weights_read(graph, path, NULL, NULL, &err),
           args[0], &err);
    for (int32_t i = 0; i < graph->n_nodes; i++) /* its numbers are not PyTorch's */
        if (graph->nodes[i].op->kind == OP_DROPOUT)
            graph->nodes[i].attr.dropout.rate = 0;
    free(path);
    return graph;
}

static enum plan_mode mode_of(const char *norm)
{
    return strcmp(norm, "frozen") == 0 ? PLAN_TUNE : PLAN_TRAIN;
}

/* --- what is compared --- */

static void read_index(struct study *s)
{
    char *path = text_format("%s/index.txt", s->folder);
    FILE *stream = fopen(path, "r");
    struct err err = { 0 };
    long long count = 0;
    struct entry entry;
    end_if(!stream && !err_errno(&err, path, "read"), "index", &err);
    while (fscanf(stream, "%127s %lld", entry.name, &count) == 2) {
        s->index = reallocarray(s->index, (size_t)s->n_index + 1, sizeof *s->index);
        entry.begin = s->count, entry.count = count;
        s->index[s->n_index++] = entry;
        s->count += count;
    }
    fclose(stream);
    free(path);
}

static void read_reference(struct study *s, const char *norm, int micros)
{
    char *path = text_format("%s/%s_%d.f64", s->folder, norm, micros), *data = NULL;
    size_t size = 0;
    struct err err = { 0 };
    end_if(!file_read(path, (size_t)1 << 32, &data, &size, &err), "reference", &err);
    end_if(size != (size_t)s->count * sizeof *s->reference, path, &err);
    free(s->reference);
    s->reference = (double *)(void *)data;
    free(path);
}

static void read_draws(struct study *s, const char *norm)
{
    char *path = text_format("%s/%s.txt", s->folder, norm);
    FILE *stream = fopen(path, "r");
    struct err err = { 0 };
    end_if(!stream && !err_errno(&err, path, "read"), "draws", &err);
    for (int m = 0; m < MICROS_MOST && fscanf(stream, "%d", &s->draws[m]) == 1; m++)
        ;
    fclose(stream);
    free(path);
}

static const struct entry *entry_of(const struct study *s, const char *name)
{
    for (int i = 0; i < s->n_index; i++)
        if (strcmp(s->index[i].name, name) == 0)
            return &s->index[i];
    fprintf(stderr, "%s: PyTorch has no such parameter\n", name);
    exit(1);
}

/* |ours - double| / |double|: over all parameters together; and of each by itself, their quadratic
 * mean, so that large gradients do not hide small ones. */
struct errors {
    double total, alike;
};

static struct errors judge(const struct study *s, const float *ours)
{
    double errors = 0, norms = 0, relative = 0;
    int n = 0;
    for (int64_t i = 0; i < s->count; i++)
        norms += s->reference[i] * s->reference[i];
    for (value_id v = 0; v < s->graph->n_values; v++) {
        if (s->graph->values[v].kind != VALUE_PARAMETER)
            continue;
        const struct entry *entry = entry_of(s, s->graph->values[v].name);
        const double *reference = s->reference + entry->begin;
        double error = 0, norm = 0;
        for (int64_t i = 0; i < entry->count; i++) {
            error += ((double)ours[i] - reference[i]) * ((double)ours[i] - reference[i]);
            norm += reference[i] * reference[i];
        }
        ours += entry->count;
        errors += error;
        if (norm > NEGLIGIBLE * NEGLIGIBLE * norms)
            relative += error / norm, n++;
    }
    return (struct errors){ sqrt(errors / norms), sqrt(relative / n) };
}

static void report(const struct study *s, const float *ours)
{
    struct errors divided = judge(s, ours), plain = judge(s, s->plain);
    bool same = memcmp(ours, s->plain, (size_t)s->count * sizeof *ours) == 0;
    printf("%.6e %.6e %.6e %.6e %d\n", divided.total, divided.alike, plain.total, plain.alike,
           same);
    fflush(stdout);
}

/* --- one process --- */

/* The first so many micro-batches, one after another. */
static void run_plain(struct study *s, const char *norm, int micros)
{
    struct plan_options options = { .mode = mode_of(norm), .threads = 1 };
    struct plan *plan = NULL;
    struct err err = { 0 };
    char key[64];
    snprintf(key, sizeof key, "%s %d", norm, micros);
    if (strcmp(key, s->plain_of) == 0)
        return;
    snprintf(s->plain_of, sizeof s->plain_of, "%s", key);
    read_reference(s, norm, micros);
    struct graph *graph = copy(s->graph);
    end_if(!plan_new(graph, &options, &plan, &err), "plan", &err);
    plan_zero_gradients(plan);
    for (int m = 0; m < micros; m++) {
        feed_network(graph, 0, s->draws[m], plan_input(plan, 0));
        end_if(!plan_forward(plan, &err), "forward", &err);
        ask(graph, plan, s->draws[m], 1);
        end_if(!plan_backward(plan, &err), "backward", &err);
    }
    int64_t count = 0;
    const float *gradients = plan_gradients(plan, &count);
    end_if(count != s->count, "other parameters", &err);
    memcpy(s->plain, gradients, (size_t)count * sizeof *gradients);
    plan_free(plan);
    graph_free(graph);
}

/* --- pipelines --- */

struct pipe_case {
    char norm[16], schedule[16], fault[16];
    int stages, replicas, micros, recompute;
};

struct pipes;

/* Peers for gradients that lose the second tensor which is sent back to them. */
struct lossy {
    const struct plan_peers *real;
    struct plan_peers peers;
    int received;
    int64_t handle;
    void *data;
    size_t bytes;
};

struct pipe_rank {
    struct pipes *all;
    int replica;
    struct graph *graph;
    struct stages stages;
    struct lossy lossy[2];
    float *gradients[2];
    int held[2], n_held;
};

struct pipes {
    const struct study *study;
    const struct pipe_case *c;
    struct program program;
    int32_t begin[MOST + 1];
    struct thread_peers *peers[REPLICAS][2][CHANNELS];
    struct pipe_rank ranks[REPLICAS * MOST];
};

static bool lossy_send(void *arg, int to, const void *data, size_t bytes, int64_t *handle,
                       struct err *err)
{
    const struct plan_peers *real = ((struct lossy *)arg)->real;
    return real->start_send(real->arg, to, data, bytes, handle, err);
}

static bool lossy_receive(void *arg, int from, void *data, size_t bytes, int64_t *handle,
                          struct err *err)
{
    struct lossy *l = arg;
    if (!l->real->start_receive(l->real->arg, from, data, bytes, handle, err))
        return false;
    if (l->received++ == 1)
        l->handle = *handle, l->data = data, l->bytes = bytes;
    return true;
}

static bool lossy_finish(void *arg, int64_t handle, struct err *err)
{
    struct lossy *l = arg;
    if (!l->real->finish(l->real->arg, handle, err))
        return false;
    if (l->data && handle == l->handle) {
        memset(l->data, 0, l->bytes);
        l->data = NULL;
    }
    return true;
}

static bool lossy_progress(void *arg, struct err *err)
{
    const struct plan_peers *real = ((struct lossy *)arg)->real;
    return real->progress(real->arg, err);
}

static void lossy_abandon(void *arg)
{
    const struct plan_peers *real = ((struct lossy *)arg)->real;
    real->abandon(real->arg);
}

static const struct plan_peers *lossy_peers(struct lossy *l, const struct plan_peers *real)
{
    *l = (struct lossy){ .real = real, .peers = *real };
    l->peers.arg = l;
    l->peers.start_send = lossy_send, l->peers.start_receive = lossy_receive;
    l->peers.finish = lossy_finish, l->peers.progress = lossy_progress;
    l->peers.abandon = lossy_abandon;
    return &l->peers;
}

static int micro_of(const struct pipe_rank *rank, int micro)
{
    return rank->replica * rank->all->c->micros + micro;
}

static int drawn(const struct pipe_rank *rank, int micro)
{
    return rank->all->study->draws[micro_of(rank, micro)];
}

static bool feed(void *arg, int stage, int micro, int port, float *to, struct err *err)
{
    const struct pipe_rank *rank = arg;
    (void)err;
    feed_network(rank->stages.graphs[stage], port, drawn(rank, micro), to);
    return true;
}

static bool loss(void *arg, int micro, struct plan *plan, struct err *err)
{
    const struct pipe_rank *rank = arg;
    const char *fault = rank->all->c->fault;
    bool here = micro_of(rank, micro) == 1;
    double factor = here && strcmp(fault, "dropped") == 0 ? 0
                    : here && strcmp(fault, "twice") == 0 ? 2
                                                          : 1;
    (void)err;
    ask(rank->stages.graphs[rank->stages.n - 1], plan, drawn(rank, micro), factor);
    return true;
}

/* One rank of all replicas. */
static void work(void *arg, int number)
{
    struct pipes *all = arg;
    const struct pipe_case *c = all->c;
    struct pipe_rank *rank = &all->ranks[number];
    int r = number % c->stages;
    struct err err = { 0 };
    struct pipeline *pipeline = NULL;
    *rank = (struct pipe_rank){ .all = all, .replica = number / c->stages };
    rank->graph = copy(all->study->graph);
    end_if(!stages_new(rank->graph, all->begin, c->stages, &rank->stages, &err), "stages", &err);
    rank->n_held = program_held(&all->program, r, rank->held);
    struct pipeline_options o = { .stages = &rank->stages,
                                  .program = &all->program,
                                  .rank = r,
                                  .recompute = c->recompute,
                                  .plan = { .mode = mode_of(c->norm), .threads = 1 },
                                  .feed = feed,
                                  .loss = loss,
                                  .arg = rank };
    for (int copy = 0; copy < 2; copy++)
        for (int ch = 0; ch < CHANNELS; ch++)
            o.peers[copy][ch] = thread_peers_of(all->peers[rank->replica][copy][ch], r);
    if (strcmp(c->fault, "lost") == 0 && number == 0)
        for (int copy = 0; copy < 2; copy++)
            o.peers[copy][CHANNEL_BACKWARD] =
                lossy_peers(&rank->lossy[copy], o.peers[copy][CHANNEL_BACKWARD]);
    for (int h = 0; h < rank->n_held; h++) {
        size_t n = (size_t)graph_parameter_count(rank->stages.graphs[rank->held[h]]);
        o.gradients[h] = rank->gradients[h] = calloc(n + 1, sizeof(float));
    }
    uint64_t first_sample[MICROS_MOST] = { 0 }; /* nothing is random */
    end_if(!pipeline_new(&o, &pipeline, &err) || !pipeline_step(pipeline, 1, first_sample, &err),
           "pipeline", &err);
    pipeline_free(pipeline);
}

/* The gradients of what a rank holds, added to those of the whole network. */
static void add(const struct pipe_rank *rank, const struct graph *whole, float *to)
{
    for (int h = 0; h < rank->n_held; h++) {
        const struct graph *graph = rank->stages.graphs[rank->held[h]];
        const float *own = rank->gradients[h];
        for (value_id v = 0; v < graph->n_values; v++) {
            if (graph->values[v].kind != VALUE_PARAMETER)
                continue;
            float *at = to;
            for (value_id w = 0; strcmp(whole->values[w].name, graph->values[v].name) != 0 ||
                                 whole->values[w].kind != VALUE_PARAMETER;
                 w++)
                at += whole->values[w].kind == VALUE_PARAMETER ? count_of(whole, w) : 0;
            for (int64_t i = 0; i < count_of(graph, v); i++)
                at[i] += own[i];
            own += count_of(graph, v);
        }
    }
}

/* Where stages cost the same, by counting. */
static void balance(struct pipes *all)
{
    const struct graph *graph = all->study->graph;
    struct node_cost *costs = calloc((size_t)graph->n_nodes, sizeof *costs);
    struct err err = { 0 };
    end_if(!costs_count(graph, costs, &err) ||
               !costs_balance(graph, costs, all->c->stages, &WIRE_ASSUMED, 0, all->begin, &err),
           "cut", &err);
    free(costs);
}

static void run_pipeline(struct study *s, const struct pipe_case *c, float *sum)
{
    struct pipes all = { .study = s, .c = c };
    int kind = 0, ranks = c->stages * c->replicas;
    struct err err = { 0 };
    while (program_names[kind] && strcmp(program_names[kind], c->schedule) != 0)
        kind++;
    end_if(kind == PROGRAMS || ranks > REPLICAS * MOST, c->schedule, &err);
    end_if(!program_new((enum program_kind)kind, c->stages, c->micros, &all.program, &err),
           c->schedule, &err);
    balance(&all);
    for (int i = 0; i < c->replicas * 2 * CHANNELS; i++)
        all.peers[i / (2 * CHANNELS)][i / CHANNELS % 2][i % CHANNELS] = thread_peers_new(c->stages);
    struct thread_peers *everybody = thread_peers_new(ranks);
    thread_peers_run(everybody, work, &all);
    memset(sum, 0, (size_t)s->count * sizeof *sum);
    for (int r = 0; r < ranks; r++) {
        add(&all.ranks[r], s->graph, sum);
        stages_free(&all.ranks[r].stages);
        graph_free(all.ranks[r].graph);
        free(all.ranks[r].gradients[0]), free(all.ranks[r].gradients[1]);
    }
    for (int i = 0; i < c->replicas * 2 * CHANNELS; i++)
        thread_peers_free(all.peers[i / (2 * CHANNELS)][i / CHANNELS % 2][i % CHANNELS]);
    thread_peers_free(everybody);
    program_free(&all.program);
    run_plain(s, c->norm, c->micros * c->replicas);
}

/* --- divided images --- */

static void run_space(struct study *s, const char *norm, int rows, int columns, const char *fault,
                      float *sum)
{
    struct space_job job = { .build = copy,
                             .arg = s->graph,
                             .rows = rows,
                             .columns = columns,
                             .frozen = mode_of(norm) == PLAN_TUNE,
                             .fault =
                                 strcmp(fault, "detached") == 0 ? FAULT_DETACHED : FAULT_NONE };
    struct space_result result = { 0 };
    struct err err = { 0 };
    space_parts_run(&job, &result);
    end_if(result.count != s->count, "other parameters", &err);
    memcpy(sum, result.gradients, (size_t)s->count * sizeof *sum);
    space_result_free(&result);
}

/* --- cases --- */

static void run_line(struct study *s, const char *line)
{
    struct pipe_case c;
    char norm[16], fault[16];
    int rows, columns;
    float *sum = calloc((size_t)s->count, sizeof *sum);
    if (sscanf(line, "pipeline %15s %15s %d %d %d %d %15s", c.norm, c.schedule, &c.stages,
               &c.replicas, &c.micros, &c.recompute, c.fault) == 7) {
        read_draws(s, c.norm);
        run_pipeline(s, &c, sum);
    } else if (sscanf(line, "space %15s %d %d %15s", norm, &rows, &columns, fault) == 4) {
        char key[64];
        snprintf(key, sizeof key, "space %s", norm);
        if (strcmp(key, s->plain_of) != 0) {
            read_reference(s, norm, 1);
            run_space(s, norm, 1, 1, "none", s->plain);
            snprintf(s->plain_of, sizeof s->plain_of, "%s", key);
        }
        run_space(s, norm, rows, columns, fault, sum);
    } else {
        fprintf(stderr, "not a case: %s\n", line);
        exit(1);
    }
    report(s, sum);
    free(sum);
}

int main(int argc, char **argv)
{
    char line[256];
    if (argc != 7)
        return 2;
    struct study s = { .graph = network(argv + 1), .folder = argv[6] };
    read_index(&s);
    s.plain = calloc((size_t)s.count, sizeof *s.plain);
    while (fgets(line, sizeof line, stdin))
        run_line(&s, line);
    graph_free(s.graph);
    free(s.index), free(s.reference), free(s.plain);
    return 0;
}
