/* advice_cut.c: cuts of a network and what they cost. */
#include "parallel/advice_cut.h"
#include <stdlib.h>
#include "net/graph/transform.h"

bool cut_at(const struct advice_request *request, const int32_t *begin, int n, struct cut *out,
            struct err *err)
{
    *out = (struct cut){ .heads = 1 };
    if (!stages_new(request->graph, begin, n, &out->stages, err))
        return false;
    costs_of_stages(&out->stages, request->costs, out->costs);
    return true;
}

bool cut_balanced(const struct advice_request *request, int n, size_t memory, struct cut *out,
                  struct err *err)
{
    int32_t begin[STAGES_MOST + 1];
    return costs_balance(request->graph, request->costs, n, &request->wire, memory, begin, err) &&
           cut_at(request, begin, n, out, err);
}

/* The last rank has most tokens. */
static bool cut_tokens(int heads, struct graph **part, struct err *err)
{
    struct graph *whole = *part;
    bool *summed = NULL;
    if (!transform_tokens(whole, heads, heads - 1, part, &summed, err))
        return false;
    free(summed);
    graph_free(whole);
    return true;
}

bool cut_heads(const struct advice_request *request, int heads, struct cut *out, struct err *err)
{
    *out = (struct cut){ .heads = heads };
    if (!transform_heads(request->graph, heads, heads - 1, &out->part, NULL, err) ||
        (request->sequence && !cut_tokens(heads, &out->part, err)))
        return false;
    int32_t begin[] = { 0, out->part->n_nodes };
    struct node_cost *costs = calloc((size_t)out->part->n_nodes + 1, sizeof *costs);
    bool ok = (costs || err_memory(err, "advice")) &&
              costs_of_heads(request->graph, request->costs, out->part, heads, costs, &out->forward,
                             &out->backward, err) &&
              stages_new(out->part, begin, 1, &out->stages, err);
    if (ok)
        costs_of_stages(&out->stages, costs, out->costs);
    free(costs);
    return ok;
}

void cut_free(struct cut *cut)
{
    stages_free(&cut->stages);
    graph_free(cut->part);
    *cut = (struct cut){ 0 };
}

struct stage_edge *cut_scaled(const struct cut *cut, int64_t images, const struct wire *wire,
                              struct stage_cost *costs)
{
    struct stage_edge *edges = calloc((size_t)cut->stages.n_edges + 1, sizeof *edges);
    if (!edges)
        return NULL;
    for (int s = 0; s < cut->stages.n; s++) {
        costs[s] = cut->costs[s];
        costs[s].forward_s *= (double)images;
        costs[s].backward_s *= (double)images;
        costs[s].weights_s *= (double)images;
        costs[s].kept *= (size_t)images;
        costs[s].inputs *= (size_t)images;
    }
    costs[0].forward_s += heads_sums_s(&cut->forward, cut->heads, images, wire);
    costs[0].backward_s += heads_sums_s(&cut->backward, cut->heads, images, wire);
    for (int e = 0; e < cut->stages.n_edges; e++) {
        edges[e] = cut->stages.edges[e];
        edges[e].bytes *= (size_t)images;
    }
    return edges;
}

double cut_sums_share(const struct cut *cut, int64_t images, const struct wire *wire)
{
    double sums_s = heads_sums_s(&cut->forward, cut->heads, images, wire) +
                    heads_sums_s(&cut->backward, cut->heads, images, wire);
    double work_s = (double)images * (cut->costs[0].forward_s + cut->costs[0].backward_s);
    return sums_s > 0 ? sums_s / (sums_s + work_s) : 0;
}
