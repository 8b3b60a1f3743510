/* probe_shared.c: see probe_shared.h. */
#include "explain/probe_shared.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "net/graph/transform.h"

struct prepared {
    bool inference;
    char **keep;
    int n_keep;
    struct graph *graph;
};

struct probe_shared {
    pthread_mutex_t mutex;
    struct plan_weights *weights;
    struct prepared *prepared;
    int64_t n, room;
};

struct probe_shared *probe_shared_new(void)
{
    struct probe_shared *shared = calloc(1, sizeof *shared);
    if (!shared)
        return NULL;
    shared->weights = plan_weights_new();
    if (!shared->weights || pthread_mutex_init(&shared->mutex, NULL) != 0) {
        plan_weights_free(shared->weights);
        free(shared);
        return NULL;
    }
    return shared;
}

static void prepared_free(struct prepared *prepared)
{
    for (int i = 0; prepared->keep && i < prepared->n_keep; i++)
        free(prepared->keep[i]);
    free(prepared->keep);
    graph_free(prepared->graph);
}

void probe_shared_free(struct probe_shared *shared)
{
    if (!shared)
        return;
    for (int64_t i = 0; i < shared->n; i++)
        prepared_free(&shared->prepared[i]);
    free(shared->prepared);
    plan_weights_free(shared->weights);
    pthread_mutex_destroy(&shared->mutex);
    free(shared);
}

struct plan_weights *probe_shared_weights(struct probe_shared *shared)
{
    return shared->weights;
}

static const struct graph *find(const struct probe_shared *shared, bool inference,
                                const char *const *keep, int n_keep)
{
    for (int64_t i = 0; i < shared->n; i++) {
        const struct prepared *p = &shared->prepared[i];
        bool same = p->inference == inference && p->n_keep == n_keep;
        for (int k = 0; same && k < n_keep; k++)
            same = strcmp(p->keep[k], keep[k]) == 0;
        if (same)
            return p->graph;
    }
    return NULL;
}

static bool prepare(struct probe_shared *shared, const struct graph *resized, bool inference,
                    const char *const *keep, int n_keep, struct err *err)
{
    struct prepared made = { .inference = inference, .n_keep = n_keep };
    made.keep = calloc((size_t)n_keep + 1, sizeof *made.keep);
    bool ok = made.keep || err_memory(err, resized->name);
    for (int i = 0; ok && i < n_keep; i++)
        ok = (made.keep[i] = strdup(keep[i])) || err_memory(err, resized->name);
    ok = ok &&
         (inference ? transform_for_inference(resized, keep, n_keep, &made.graph, err)
                    : transform_fold_batch_norm(resized, keep, n_keep, &made.graph, err)) &&
         array_grow(&shared->prepared, &shared->room, shared->n + 1, sizeof made, "networks", err);
    if (ok)
        shared->prepared[shared->n++] = made;
    else
        prepared_free(&made);
    return ok;
}

bool probe_shared_graph(struct probe_shared *shared, const struct graph *resized, bool inference,
                        const char *const *keep, int n_keep, struct graph **out, struct err *err)
{
    const struct shape *input = graph_shape(resized, resized->inputs[0].value);
    pthread_mutex_lock(&shared->mutex);
    bool ok = find(shared, inference, keep, n_keep) ||
              prepare(shared, resized, inference, keep, n_keep, err);
    ok = ok && transform_resize(find(shared, inference, keep, n_keep), input->dim[0], input->dim[2],
                                input->dim[3], out, err);
    pthread_mutex_unlock(&shared->mutex);
    return ok;
}
