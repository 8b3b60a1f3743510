/* ensemble.c: see ensemble.h. */
#include "heatmap/ensemble.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/divide.h"
#include "heatmap/model_window.h"
#include "heatmap/scorer.h"

#define HALO_SHARE 0.9 /* of what a network can see: the outer tenth adds less than 1e-3 to p */
#define MAX_HALO_PX 256
#define MAX_INPUT_PX 2560 /* of a dense block: larger ones gain little */
#define MAX_WINDOW_BLOCK 20
#define WINDOW_REGION_PX 768
#define WINDOW_BATCH 8
#define OTHER_TILES                                                                                \
    2 /* blocks of other sizes may have other Winograd tiles: at most so much more */

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

/* The largest stride that the network can be given and of which the wanted one is a multiple. */
static bool find_dense_stride(struct ensemble_model *m, int64_t stride)
{
    struct err err = { 0 };
    for (int64_t o = common_divisor(stride, m->field.stride_px); o >= 1; o--) {
        struct dense_spec spec = { m->side, o, m->side, m->side };
        struct graph *dense = NULL;
        if (stride % o || m->field.stride_px % o)
            continue;
        if (transform_dense(m->graph, &spec, &dense, &err)) {
            graph_free(dense);
            m->dense_stride = o;
            m->pick = stride / o;
            return true;
        }
    }
    snprintf(m->reason, sizeof m->reason, "%.250s", err.text);
    return false;
}

static bool look_at_field(struct ensemble_model *m, int64_t stride, struct err *err)
{
    const struct graph *graph = m->model->graph;
    if (m->side != m->window) {
        snprintf(m->reason, sizeof m->reason, "its config.json resizes every patch");
        return true;
    }
    if (!transform_field(graph, graph->outputs[0].value, m->side, &m->field, err))
        return false;
    m->shares = find_dense_stride(m, stride);
    if (m->shares && !m->field.exact) {
        int64_t halo = (int64_t)ceil(HALO_SHARE * (double)(m->field.receptive_px - m->window) / 2);
        halo = halo < 0 ? 0 : halo < MAX_HALO_PX ? halo : MAX_HALO_PX;
        m->halo = ceil_div(halo, m->dense_stride) * m->dense_stride;
    }
    return true;
}

/* At the size of the window, too, the network must give one score for each class. */
static bool check_window(const struct ensemble_model *m, struct err *err)
{
    struct graph *sized = NULL;
    bool ok = transform_resize(m->model->graph, 1, m->side, m->side, &sized, err) &&
              model_check_classifies(m->model, sized, err);
    graph_free(sized);
    return ok;
}

static bool init_model(struct ensemble_model *m, struct model *model, int64_t stride,
                       struct err *err)
{
    struct model_window window;
    *m = (struct ensemble_model){ .model = model };
    if (!model_window_of(model, &window, err))
        return false;
    m->window = window.window;
    m->side = window.side;
    memcpy(m->normal, window.normal, sizeof m->normal);
    if (!check_window(m, err))
        return false;
    struct graph *plain = NULL;
    bool ok = transform_remove_dropout(model->graph, &plain, err) &&
              transform_fold_batch_norm(plain, NULL, 0, &m->graph, err) &&
              look_at_field(m, stride, err);
    graph_free(plain);
    return ok;
}

static bool check_classes(const struct ensemble *e, struct err *err)
{
    const struct model_config *first = &e->models[0].model->config;
    for (int i = 1; i < e->n; i++) {
        const struct model *model = e->models[i].model;
        bool same = model->config.num_classes == first->num_classes &&
                    model_predicts_number(model) == model_predicts_number(e->models[0].model);
        for (int64_t c = 0; same && c < first->num_classes; c++)
            same = strcmp(model->config.class_names[c], first->class_names[c]) == 0;
        if (!same)
            return err_set(err, ERR_USAGE,
                           "%s and %s have different classes (%lld: %s.. and %lld: %s..); averaged "
                           "models must have the same classes in the same order",
                           e->models[0].model->name, model->name, (long long)first->num_classes,
                           first->class_names[0], (long long)model->config.num_classes,
                           model->config.class_names[0]);
    }
    return true;
}

bool ensemble_init(struct ensemble *ensemble, struct model **models, int n, int64_t stride,
                   struct err *err)
{
    *ensemble = (struct ensemble){ .stride = stride };
    bool ok = true;
    for (int i = 0; i < n; i++) {
        struct ensemble_model *m = &ensemble->models[ensemble->n++];
        m->model = models[i];
        models[i] = NULL;
        ok = ok && init_model(m, m->model, stride, err);
    }
    ok = ok && check_classes(ensemble, err);
    if (!ok) {
        ensemble_free(ensemble);
        return false;
    }
    ensemble->n_classes = ensemble->models[0].model->config.num_classes;
    ensemble->weights = plan_weights_new();
    return ensemble->weights || err_memory(err, "weights");
}

void ensemble_free(struct ensemble *ensemble)
{
    for (int i = 0; i < ensemble->n; i++) {
        graph_free(ensemble->models[i].graph);
        model_close(ensemble->models[i].model);
        free(ensemble->models[i].gain);
        free(ensemble->models[i].offset);
    }
    plan_weights_free(ensemble->weights);
    *ensemble = (struct ensemble){ 0 };
}

bool ensemble_shares(const struct ensemble *ensemble, const char **reason)
{
    for (int i = 0; i < ensemble->n; i++)
        if (!ensemble->models[i].shares) {
            *reason = ensemble->models[i].reason;
            return false;
        }
    *reason = "";
    return true;
}

bool ensemble_exact(const struct ensemble *ensemble, const char **reason)
{
    if (!ensemble_shares(ensemble, reason))
        return false;
    for (int i = 0; i < ensemble->n; i++)
        if (!ensemble->models[i].field.exact) {
            *reason = ensemble->models[i].field.reason;
            return false;
        }
    return true;
}

int64_t ensemble_size(const struct ensemble *ensemble, int64_t n)
{
    for (int i = 0; i < ensemble->n_sizes; i++)
        if (ensemble->sizes[i] >= n)
            return ensemble->sizes[i];
    return n;
}

int64_t ensemble_region(const struct ensemble *ensemble, int64_t n)
{
    return (n - 1) * ensemble->stride + ensemble->before + ensemble->after;
}

int64_t ensemble_input(const struct ensemble *ensemble, const struct ensemble_model *model,
                       int64_t n)
{
    return (n - 1) * ensemble->stride + model->window + 2 * model->halo;
}

static bool holds(const struct graph *graph, const struct buffer *data)
{
    for (int32_t i = 0; i < graph->n_values; i++)
        if (graph->values[i].data == data)
            return true;
    return false;
}

/* Of what is not in `without` too, if there is one. */
static int64_t parameter_bytes(const struct graph *graph, const struct graph *without)
{
    int64_t floats = 0;
    for (int32_t i = 0; i < graph->n_values; i++) {
        const struct value *value = &graph->values[i];
        if (value->data && !(without && holds(without, value->data)))
            floats += shape_count(&value->shape);
    }
    return floats * (int64_t)sizeof(float);
}

int64_t ensemble_parameter_bytes(const struct ensemble *ensemble)
{
    int64_t bytes = 0;
    for (int i = 0; i < ensemble->n; i++) {
        const struct ensemble_model *m = &ensemble->models[i];
        bytes += parameter_bytes(m->graph, NULL) + parameter_bytes(m->model->graph, m->graph);
    }
    return bytes;
}

int64_t ensemble_cost(const struct ensemble *ensemble, int64_t width, int64_t height,
                      int64_t windows)
{
    int64_t cost = 0;
    for (int i = 0; i < ensemble->n; i++) {
        const struct ensemble_model *m = &ensemble->models[i];
        if (ensemble->dense)
            cost += ensemble_input(ensemble, m, ensemble_size(ensemble, width)) *
                    ensemble_input(ensemble, m, ensemble_size(ensemble, height));
        else
            cost += windows * m->side * m->side;
    }
    return ensemble->tta ? 8 * cost : cost;
}

/* Memory of a worker on blocks of n cells a side: the largest of its plans, two regions of bytes,
 * logits and scores. Also sets what the workers share. */
static bool measure(struct ensemble *e, int64_t n, int64_t *bytes, struct err *err)
{
    int64_t region = ensemble_region(e, n), weights = 0;
    e->shared_bytes = e->arena_bytes = 0;
    for (int i = 0; i < e->n; i++) {
        int64_t input = e->dense ? ensemble_input(e, &e->models[i], n) : 0;
        struct plan_memory memory;
        if (!scorer_measure(e, i, input, &memory, err))
            return false;
        int64_t arena = (int64_t)memory.arena, its = (int64_t)memory.weights;
        e->arena_bytes = arena > e->arena_bytes ? arena : e->arena_bytes;
        weights = its > weights ? its : weights;
        e->shared_bytes += OTHER_TILES * (int64_t)memory.shared;
    }
    *bytes = e->arena_bytes + weights + 2 * 3 * region * region +
             2 * n * n * e->n_classes * (int64_t)sizeof(float);
    return true;
}

static void set_reach(struct ensemble *e)
{
    e->before = e->after = 0;
    for (int i = 0; i < e->n; i++) {
        const struct ensemble_model *m = &e->models[i];
        int64_t halo = e->dense ? m->halo : 0;
        int64_t before = m->window / 2 + halo, after = m->window - m->window / 2 + halo;
        e->before = before > e->before ? before : e->before;
        e->after = after > e->after ? after : e->after;
    }
}

static bool too_large(struct ensemble *e, int64_t need, struct err *err)
{
    e->least_bytes = e->shared_bytes + 2 * need;
    return err_set(err, ERR_USAGE, "even the smallest block needs %lld MB",
                   (long long)(e->least_bytes >> 20) + 1);
}

/* A try: a region of `side` px needs so many bytes. */
struct tried {
    double side, need;
};

/* The side of the region to try after `now`, of which `most` bytes are too few: what grows with the
 * area is told from what does not (weights) once there were two tries. */
static double next_side(const struct tried *before, const struct tried *now, double most)
{
    double gain = before->need - now->need;
    double area = now->side * now->side, more = before->side * before->side - area;
    if (before->need > 0 && gain > 0 && more > 0 && most > 0) {
        double wanted = area - (now->need - most) * more / gain;
        if (wanted > 0)
            return fmin(0.98, sqrt(wanted / area)) * now->side;
    }
    return fmax(0.85, sqrt(fmax(0, most / now->need))) * now->side;
}

static bool choose_dense(struct ensemble *e, int64_t bytes, struct err *err)
{
    struct tried before = { 0 };
    int64_t cells = (MAX_INPUT_PX - e->before - e->after) / e->stride + 1, need = 0;
    e->block = cells > 1 ? cells : 1;
    e->batch = WINDOW_BATCH;
    while (measure(e, e->block, &need, err)) {
        int64_t most = (bytes - e->shared_bytes) / 2;
        if (need <= most) {
            e->worker_bytes = need + need / 2 < most ? need + need / 2 : most;
            for (int i = 1; i <= ENSEMBLE_SIZES; i++) {
                int64_t size = ceil_div(e->block * i, ENSEMBLE_SIZES);
                if (e->n_sizes == 0 || size > e->sizes[e->n_sizes - 1])
                    e->sizes[e->n_sizes++] = size;
            }
            return true;
        }
        if (e->block == 1)
            return too_large(e, need, err);
        struct tried now = { (double)ensemble_region(e, e->block), (double)need };
        int64_t side = (int64_t)next_side(&before, &now, (double)most);
        int64_t less = (side - e->before - e->after) / e->stride + 1;
        e->block = less < 1 ? 1 : less < e->block ? less : e->block - 1;
        before = now;
    }
    return false;
}

static bool choose_windows(struct ensemble *e, int64_t bytes, struct err *err)
{
    int64_t cells = (WINDOW_REGION_PX - e->before - e->after) / e->stride + 1, need = 0;
    e->block = cells < 1 ? 1 : cells < MAX_WINDOW_BLOCK ? cells : MAX_WINDOW_BLOCK;
    for (e->batch = WINDOW_BATCH; e->batch >= 1; e->batch /= 2) {
        if (!measure(e, e->block, &need, err))
            return false;
        if (need <= (bytes - e->shared_bytes) / 2) {
            e->worker_bytes = need;
            return true;
        }
    }
    return too_large(e, need, err);
}

bool ensemble_choose(struct ensemble *ensemble, bool dense, bool tta, int64_t bytes,
                     struct err *err)
{
    ensemble->dense = dense;
    ensemble->tta = tta;
    ensemble->n_sizes = 0;
    ensemble->least_bytes = 0;
    ensemble->weights_budget = bytes / 2 / OTHER_TILES / ensemble->n;
    set_reach(ensemble);
    if (dense ? choose_dense(ensemble, bytes, err) : choose_windows(ensemble, bytes, err))
        return true;
    if (ensemble->direct)
        return false;
    ensemble->direct = true;
    ensemble->least_bytes = 0;
    *err = (struct err){ 0 };
    return dense ? choose_dense(ensemble, bytes, err) : choose_windows(ensemble, bytes, err);
}
