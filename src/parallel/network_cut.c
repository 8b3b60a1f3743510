/* network_cut.c: see network_cut.h. */
#include "parallel/network_cut.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MEASURE_MOST ((size_t)2 << 30)    /* bytes that measuring may take */
#define MEASURE_LEAST ((size_t)256 << 20) /* the same, if stages may keep less */
#define MEASURE_PX 64                     /* images are not made smaller to measure */
#define MEASURE_TIMES 3                   /* the fastest counts */

/* --- making it --- */

static bool find_costs(struct network_cut *cut, struct node_cost *costs, struct err *err)
{
    size_t room = MEASURE_MOST, memory = cut->options.memory;
    if (memory > 0 && memory < room)
        room = memory > MEASURE_LEAST ? memory : MEASURE_LEAST;
    struct costs_options options = { .threads = cut->options.threads,
                                     .room = room,
                                     .least_px = MEASURE_PX,
                                     .repeats = MEASURE_TIMES };
    return cut->options.count ? costs_count(cut->graph, costs, err)
                              : costs_measure(cut->graph, &options, costs, &cut->measured_px, err);
}

/* Whether the numbers of stages and of layers that the user gave go together. */
static bool check_number(const struct network_cut_options *given, struct err *err)
{
    if (!given->at || given->stages == 0 || given->stages == given->n_at + 1)
        return true;
    return err_set(err, ERR_USAGE, "--at: %d layer%s make%s %d stages, but --stages is %d",
                   given->n_at, given->n_at == 1 ? "" : "s", given->n_at == 1 ? "s" : "",
                   given->n_at + 1, given->stages);
}

/* Layers that the user chose may keep more than is allowed; balanced stages do not. */
static bool check_memory(const struct network_cut *cut, struct err *err)
{
    for (int s = 0; s < cut->stages.n && cut->options.memory > 0; s++)
        if (cut->costs[s].kept > cut->options.memory)
            return err_set(err, ERR_MEMORY,
                           "%s: cut there, stage %d keeps %.0f MB, but only %.0f MB are allowed; "
                           "cut elsewhere, use more stages, a smaller batch or smaller images",
                           cut->graph->name, s + 1, ceil((double)cut->costs[s].kept / 1e6),
                           (double)cut->options.memory / 1e6);
    return true;
}

bool network_cut_new(const struct graph *graph, const struct network_cut_options *options,
                     struct network_cut *out, struct err *err)
{
    int32_t begin[STAGES_MOST + 1];
    *out = (struct network_cut){ .graph = graph, .options = *options };
    if (!check_number(options, err) ||
        (options->at && !stages_at(graph, options->at, options->n_at, begin, err)))
        return false;
    int n = out->options.stages = options->at ? options->n_at + 1 : options->stages;
    struct node_cost *costs = calloc((size_t)graph->n_nodes + 1, sizeof *costs);
    /* what cannot be cut is refused before anything is measured */
    bool ok = (costs || err_memory(err, graph->name)) &&
              (!options->at || stages_new(graph, begin, n, &out->stages, err)) &&
              (options->at || options->count ||
               (costs_count(graph, costs, err) &&
                costs_balance(graph, costs, n, &WIRE_ASSUMED, 0, begin, err))) &&
              find_costs(out, costs, err);
    if (ok && !options->at)
        ok = costs_balance(graph, costs, n, &WIRE_ASSUMED, options->memory, begin, err) &&
             stages_new(graph, begin, n, &out->stages, err);
    if (ok)
        costs_of_stages(&out->stages, costs, out->costs);
    ok = ok && check_memory(out, err);
    free(costs);
    if (!ok)
        network_cut_free(out);
    return ok;
}

void network_cut_free(struct network_cut *cut)
{
    stages_free(&cut->stages);
    *cut = (struct network_cut){ 0 };
}

/* --- what is said of it --- */

static double seconds_of(const struct stage_cost *cost)
{
    return cost->forward_s + cost->backward_s;
}

double network_cut_balance(const struct network_cut *cut, int *slowest)
{
    double sum = 0;
    *slowest = 0;
    for (int s = 0; s < cut->stages.n; s++) {
        sum += seconds_of(&cut->costs[s]);
        if (seconds_of(&cut->costs[s]) > seconds_of(&cut->costs[*slowest]))
            *slowest = s;
    }
    return sum > 0 ? seconds_of(&cut->costs[*slowest]) * cut->stages.n / sum : 1;
}

/* What a user calls the layer that a node makes: the shortest of its names, or that of the node. */
static const char *layer_name(const struct graph *graph, int32_t node)
{
    const char *name = NULL;
    for (int i = 0; i < graph->n_aliases; i++)
        if (graph->aliases[i].value == graph->nodes[node].output &&
            (!name || strlen(graph->aliases[i].name) < strlen(name)))
            name = graph->aliases[i].name;
    return name ? name : graph->nodes[node].name;
}

static const char *first_layer(const struct network_cut *cut, int s)
{
    return layer_name(cut->graph, cut->stages.begin[s]);
}

static const char *last_layer(const struct network_cut *cut, int s)
{
    return layer_name(cut->graph, cut->stages.begin[s + 1] - 1);
}

/* To later stages; a tensor counts once for each that reads it, as it is sent. */
static size_t sent_bytes(const struct network_cut *cut, int s, int *tensors)
{
    size_t bytes = 0;
    *tensors = 0;
    for (int e = 0; e < cut->stages.n_edges; e++)
        if (cut->stages.edges[e].from == s)
            bytes += cut->stages.edges[e].bytes, (*tensors)++;
    return bytes;
}

/* As it is where YAML reads it as text, else in single quotes. */
static void print_yaml(const char *name, FILE *stream)
{
    bool plain = isalpha((unsigned char)name[0]) && strcmp(name, "true") != 0 &&
                 strcmp(name, "false") != 0 && strcmp(name, "null") != 0;
    for (const char *at = name; *at; at++)
        plain = plain && (isalnum((unsigned char)*at) || strchr("._/-", *at));
    fputs(plain ? "" : "'", stream);
    for (const char *at = name; *at; at++)
        fputs((char[]){ *at, *at == '\'' ? '\'' : 0, 0 }, stream);
    fputs(plain ? "" : "'", stream);
}

static void print_stage(const struct network_cut *cut, int s, FILE *stream)
{
    const struct stage_cost *cost = &cut->costs[s];
    int tensors = 0;
    size_t sent = sent_bytes(cut, s, &tensors);
    fprintf(stream, "%5d %7d %10.3f M %9.1f MB %8.1f MB %7d %8.1f ms %8.1f ms  %s .. %s\n", s + 1,
            (int)(cut->stages.begin[s + 1] - cut->stages.begin[s]),
            (double)cost->parameters / sizeof(float) / 1e6, (double)cost->kept / 1e6,
            (double)sent / 1e6, tensors, 1e3 * cost->forward_s, 1e3 * cost->backward_s,
            first_layer(cut, s), last_layer(cut, s));
}

void network_cut_print(const struct network_cut *cut, FILE *stream)
{
    const struct shape *input = graph_shape(cut->graph, cut->graph->inputs[0].value);
    char shape[SHAPE_TEXT];
    int slowest = 0;
    double balance = network_cut_balance(cut, &slowest);
    fprintf(stream, "%s of %s, %.2f M parameters; times are ", cut->graph->name,
            shape_text(input, shape), (double)graph_parameter_count(cut->graph) / 1e6);
    if (cut->options.count)
        fputs("counted, not measured\n", stream);
    else if (input->rank == 4 && cut->measured_px != input->dim[2])
        fprintf(stream, "scaled from %lld px\n", (long long)cut->measured_px);
    else
        fputs("measured\n", stream);
    fprintf(stream, "%5s %7s %12s %12s %11s %7s %11s %11s  %s\n", "stage", "nodes", "parameters",
            "activations", "sent", "tensors", "forward", "backward", "layers");
    for (int s = 0; s < cut->stages.n; s++)
        print_stage(cut, s, stream);
    fprintf(stream, "slowest / mean: %.3f (stage %d)\n", balance, slowest + 1);
    fprintf(stream, "config:\n  parallel: {stages: %d, cut: [", cut->stages.n);
    for (int s = 0; s + 1 < cut->stages.n; s++) {
        fputs(s ? ", " : "", stream);
        print_yaml(last_layer(cut, s), stream);
    }
    fputs("]}\n", stream);
}

static void put_stage(const struct network_cut *cut, int s, struct json_out *json)
{
    const struct stage_cost *cost = &cut->costs[s];
    int tensors = 0;
    size_t sent = sent_bytes(cut, s, &tensors);
    json_out_object(json, NULL);
    json_out_int(json, "stage", s + 1);
    json_out_text(json, "first", first_layer(cut, s));
    json_out_text(json, "last", last_layer(cut, s));
    json_out_int(json, "nodes", cut->stages.begin[s + 1] - cut->stages.begin[s]);
    json_out_int(json, "parameters", (int64_t)(cost->parameters / sizeof(float)));
    json_out_int(json, "activation_bytes", (int64_t)cost->kept);
    json_out_int(json, "input_bytes", (int64_t)cost->inputs);
    json_out_int(json, "sent_bytes", (int64_t)sent);
    json_out_array_line(json, "sent");
    for (int e = 0; e < cut->stages.n_edges; e++) {
        const struct stage_edge *edge = &cut->stages.edges[e];
        const struct graph *from = cut->stages.graphs[edge->from];
        if (edge->from != s)
            continue;
        json_out_object_line(json, NULL);
        json_out_text(json, "tensor", from->values[from->outputs[edge->output].value].name);
        json_out_int(json, "to", edge->to + 1);
        json_out_int(json, "bytes", (int64_t)edge->bytes);
        json_out_close_object(json);
    }
    json_out_close_array(json);
    json_out_real(json, "forward_s", cost->forward_s);
    json_out_real(json, "backward_s", cost->backward_s);
    json_out_real(json, "weights_s", cost->weights_s);
    json_out_close_object(json);
}

void network_cut_json(const struct network_cut *cut, struct json_out *json)
{
    const struct shape *input = graph_shape(cut->graph, cut->graph->inputs[0].value);
    int slowest = 0;
    double balance = network_cut_balance(cut, &slowest);
    json_out_text(json, "network", cut->graph->name);
    json_out_array_line(json, "input");
    for (int k = 0; k < input->rank; k++)
        json_out_int(json, NULL, input->dim[k]);
    json_out_close_array(json);
    json_out_int(json, "parameters", graph_parameter_count(cut->graph));
    json_out_text(json, "times", cut->options.count ? "counted" : "measured");
    if (!cut->options.count) {
        json_out_int(json, "measured_px", cut->measured_px);
        json_out_int(json, "threads", cut->options.threads);
    }
    json_out_array(json, "stages");
    for (int s = 0; s < cut->stages.n; s++)
        put_stage(cut, s, json);
    json_out_close_array(json);
    json_out_real(json, "slowest_to_mean", balance);
    json_out_int(json, "slowest", slowest + 1);
    json_out_array_line(json, "cut");
    for (int s = 0; s + 1 < cut->stages.n; s++)
        json_out_text(json, NULL, last_layer(cut, s));
    json_out_close_array(json);
}
