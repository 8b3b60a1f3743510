/* probe.c: see probe.h. The network is cut at the first layer that is asked for: the head runs as
 * in inference, the tail, frozen, forward and backward. Both exist for a group of images and for a
 * single one, with plans of one thread each that share their weights. */
#include "explain/probe.h"
#include <stdlib.h>
#include <string.h>
#include "base/pool.h"
#include "explain/probe_layers.h"
#include "explain/probe_shared.h"
#include "net/graph/transform.h"
#include "net/model/classifier.h"
#include "net/plan/plan.h"

enum { GROUP_FORWARD = 8, GROUP_BACKWARD = 4 }; /* images; backward needs more memory for each */
enum { ALONE, TOGETHER, SIZES };

/* Plans of one thread. */
struct lane {
    struct plan *head, *tail;
    float *scratch; /* [images][largest stored of a watch] */
    int64_t holds;  /* the first image of the group that it ran last */
    uint64_t pass;  /* in this forward pass; 0: none yet */
};

/* The network for so many images. */
struct size {
    int64_t images; /* 0: not used */
    struct graph *head, *tail;
    int n_crossing;   /* inputs of the tail that are outputs of the head; the others are images */
    value_id *values; /* [n_watches], in the tail */
    struct lane *lanes;
};

/* Where the numbers of a watch are handed over: [batch][floats] each. */
struct view_of_watch {
    struct probe_watch watch;
    float *activation, *gradient; /* NULL: not asked for */
};

struct probe {
    const struct model *model;
    struct probe_options options;
    struct graph *graph; /* at batch 1, before the cut */
    struct size sizes[SIZES];
    struct probe_shared *own;      /* NULL: the caller's, options.shared */
    struct view_of_watch *watches; /* layers, then the input if its gradient is wanted, then
                                      attention */
    int n_watches, n_layers, n_attention;
    char *fallback; /* the last spatial layer, for messages; NULL: none */
    char **names;   /* [n_layers] */
    int64_t classes, image_floats, most_stored;
    float *logits;
    const float *input;     /* of the last pass; the caller's */
    int64_t n;              /* images of the last pass; 0: none yet */
    uint64_t pass;          /* counts the forward passes */
    bool alone, one_by_one; /* the last one; the next one: see probe_alone */
    bool differentiated;
    struct pool *pool;
};

static void size_free(struct size *size, int threads)
{
    for (int i = 0; size->lanes && i < threads; i++) {
        plan_free(size->lanes[i].head), plan_free(size->lanes[i].tail);
        free(size->lanes[i].scratch);
    }
    graph_free(size->head), graph_free(size->tail);
    free(size->lanes), free(size->values);
}

void probe_free(struct probe *probe)
{
    if (!probe)
        return;
    for (int i = 0; i < SIZES; i++)
        size_free(&probe->sizes[i], probe->options.threads);
    probe_shared_free(probe->own);
    if (probe->pool)
        pool_free(probe->pool);
    for (int i = 0; i < probe->n_watches; i++)
        free(probe->watches[i].activation), free(probe->watches[i].gradient);
    for (int i = 0; probe->names && i < probe->n_layers; i++)
        free(probe->names[i]);
    graph_free(probe->graph);
    free(probe->watches), free(probe->names), free(probe->fallback), free(probe->logits);
    free(probe);
}

/* --- what is looked at --- */

/* Values keep their kind and name in the transforms. */
static value_id same_value(const struct graph *from, value_id value, const struct graph *to)
{
    const char *name = from->values[value].name;
    for (int32_t i = 0; i < to->n_values; i++)
        if (!graph_is_parameter(to, i) && strcmp(to->values[i].name, name) == 0)
            return i;
    return NO_VALUE;
}

static bool watch_layers(struct probe *probe, const struct graph *graph, struct err *err)
{
    static const char *const last[] = { "" };
    const struct probe_options *o = &probe->options;
    const char *const *names = o->n_layers ? o->layers : last;
    int n = o->n_layers ? o->n_layers : !o->forward_only;
    value_id fallback = probe_last_spatial(graph);
    if (n > PROBE_MOST_LAYERS)
        return err_set(err, ERR_USAGE, "%d layers at once; at most %d", n, PROBE_MOST_LAYERS);
    probe->names = calloc((size_t)n + 1, sizeof *probe->names);
    if (fallback != NO_VALUE)
        probe->fallback = strdup(probe_name_of(graph, fallback));
    if (!probe->names || (fallback != NO_VALUE && !probe->fallback))
        return err_memory(err, probe->model->name);
    for (int i = 0; i < n; i++) {
        struct probe_watch *watch = &probe->watches[i].watch;
        if (!probe_watch_layer(graph, probe->model->name, names[i], watch, err))
            return false;
        probe->names[i] = strdup(watch->layer.name);
        probe->n_layers++, probe->n_watches++;
        if (!probe->names[i])
            return err_memory(err, probe->model->name);
        watch->layer.name = probe->names[i];
    }
    return true;
}

static bool watch_all(struct probe *probe, const struct graph *graph, struct err *err)
{
    struct probe_watch *found = calloc((size_t)graph->n_nodes + 1, sizeof *found);
    probe->watches =
        calloc((size_t)(PROBE_MOST_LAYERS + 1 + graph->n_nodes), sizeof *probe->watches);
    if (!found || !probe->watches || !watch_layers(probe, graph, err)) {
        free(found);
        return probe->watches && found ? false : err_memory(err, probe->model->name);
    }
    if (probe->options.input_gradient)
        probe->watches[probe->n_watches++].watch = (struct probe_watch){
            .value = graph->inputs[0].value,
            .stored = probe->image_floats,
            .floats = probe->image_floats,
        };
    if (probe->options.attention)
        probe->n_attention = probe_watch_attention(graph, found);
    for (int i = 0; i < probe->n_attention; i++)
        probe->watches[probe->n_watches++].watch = found[i];
    free(found);
    return true;
}

static bool is_layer(const struct probe *probe, int watch)
{
    return watch < probe->n_layers;
}

static bool is_attention(const struct probe *probe, int watch)
{
    return watch >= probe->n_watches - probe->n_attention;
}

static float *floats_new(int64_t n, int64_t each)
{
    return malloc((size_t)n * (size_t)each * sizeof(float));
}

static bool make_room(struct probe *probe, struct err *err)
{
    int64_t batch = probe->options.batch;
    bool ok = (probe->logits = floats_new(batch, probe->classes));
    for (int i = 0; ok && i < probe->n_watches; i++) {
        struct view_of_watch *view = &probe->watches[i];
        bool activation = is_layer(probe, i) || is_attention(probe, i);
        bool gradient = !probe->options.forward_only && !is_attention(probe, i);
        if (view->watch.stored > probe->most_stored)
            probe->most_stored = view->watch.stored;
        ok = (!activation || (view->activation = floats_new(batch, view->watch.floats))) &&
             (!gradient || (view->gradient = floats_new(batch, view->watch.floats)));
    }
    return ok || err_memory(err, "activations of layers; use a smaller batch");
}

/* --- the network in two parts --- */

/* The graph before the cut, with all watched values in it. */
static bool make_graph(struct probe *probe, const struct graph *resized, struct err *err)
{
    const char **keep = calloc((size_t)probe->n_watches + 1, sizeof *keep);
    int n = 0;
    if (!keep)
        return err_memory(err, probe->model->name);
    for (int i = 0; i < probe->n_watches; i++)
        keep[n++] = resized->values[probe->watches[i].watch.value].name;
    bool ok = probe_shared_graph(probe->options.shared, resized, probe->options.forward_only, keep,
                                 n, &probe->graph, err);
    free(keep);
    for (int i = 0; ok && i < probe->n_watches; i++) {
        struct probe_watch *watch = &probe->watches[i].watch;
        const char *name = resized->values[watch->value].name;
        watch->value = same_value(resized, watch->value, probe->graph);
        ok = watch->value != NO_VALUE ||
             err_set(err, ERR_FORMAT, "%s: layer '%s' is lost in inference; choose another one",
                     probe->model->name, name);
    }
    return ok;
}

/* Where the network is cut: the watched value that is made first. NO_VALUE: it is not. */
static value_id place_of_cut(const struct probe *probe)
{
    const struct graph *graph = probe->graph;
    value_id first = NO_VALUE;
    if (probe->options.forward_only || probe->options.input_gradient)
        return NO_VALUE;
    for (int i = 0; i < probe->n_watches; i++) {
        value_id value = probe->watches[i].watch.value;
        if (graph->values[value].kind != VALUE_NODE)
            return NO_VALUE;
        if (first == NO_VALUE || graph->values[value].node < graph->values[first].node)
            first = value;
    }
    return first == graph->outputs[0].value ? NO_VALUE : first;
}

static bool cut(const struct probe *probe, const struct graph *graph, struct size *size,
                struct err *err)
{
    value_id at = place_of_cut(probe); /* ids are those of probe->graph, of which graph is a copy */
    struct graph *head = NULL, *tail = NULL;
    if (probe->options.forward_only)
        return graph_copy(graph, &size->tail, err);
    if (at == NO_VALUE)
        return transform_freeze(graph, &size->tail, err);
    bool ok = transform_cut(graph, at, &head, &tail, err) &&
              transform_for_inference(head, NULL, 0, &size->head, err) &&
              transform_freeze(tail, &size->tail, err);
    if (ok)
        size->n_crossing = size->head->n_outputs;
    graph_free(head), graph_free(tail);
    return ok;
}

static bool size_begin(struct probe *probe, struct size *size, int64_t images, struct err *err)
{
    struct graph *graph = NULL;
    size->values = calloc((size_t)probe->n_watches + 1, sizeof *size->values);
    size->lanes = calloc((size_t)probe->options.threads, sizeof *size->lanes);
    if (!size->values || !size->lanes)
        return err_memory(err, probe->model->name);
    bool ok =
        transform_resize(probe->graph, images, 0, 0, &graph, err) && cut(probe, graph, size, err);
    graph_free(graph);
    for (int i = 0; ok && i < probe->n_watches; i++)
        size->values[i] = same_value(probe->graph, probe->watches[i].watch.value, size->tail);
    if (ok)
        size->images = images;
    return ok;
}

static bool begin(struct probe *probe, struct err *err)
{
    const struct probe_options *o = &probe->options;
    struct graph *resized = NULL, *whole = NULL;
    probe->image_floats = 3 * o->height * o->width;
    probe->classes = probe->model->config.num_classes;
    bool ok = transform_resize(probe->model->graph, 1, o->height, o->width, &whole, err) &&
              transform_expand_attention(whole, &resized, err) &&
              model_check_classifies(probe->model, resized, err) &&
              watch_all(probe, resized, err) && make_graph(probe, resized, err);
    graph_free(resized), graph_free(whole);
    ok = ok && make_room(probe, err) && size_begin(probe, &probe->sizes[ALONE], 1, err);
    int64_t group = o->forward_only ? GROUP_FORWARD : GROUP_BACKWARD;
    struct err ignored = { 0 }; /* a network of a file may be for single images only */
    if (ok && o->batch >= group && !size_begin(probe, &probe->sizes[TOGETHER], group, &ignored)) {
        size_free(&probe->sizes[TOGETHER], o->threads);
        probe->sizes[TOGETHER] = (struct size){ 0 };
    }
    return ok;
}

bool probe_new(const struct model *model, const struct probe_options *options, struct probe **out,
               struct err *err)
{
    struct probe *probe = calloc(1, sizeof *probe);
    *out = NULL;
    if (!probe)
        return err_memory(err, model->name);
    probe->model = model, probe->options = *options;
    probe->own = options->shared ? NULL : probe_shared_new();
    probe->options.shared = options->shared ? options->shared : probe->own;
    probe->pool = pool_new(options->threads);
    bool ok =
        probe->options.shared && probe->pool ? begin(probe, err) : err_memory(err, model->name);
    if (!ok) {
        probe_free(probe);
        return false;
    }
    probe->options.layers = NULL; /* was the caller's */
    *out = probe;
    return true;
}

/* --- running --- */

static bool lane_open(const struct probe *probe, const struct size *size, struct lane *lane,
                      struct err *err)
{
    struct plan_weights *weights = probe_shared_weights(probe->options.shared);
    struct plan_options head = { .mode = PLAN_INFER, .threads = 1, .weights = weights };
    struct plan_options tail = { .mode = probe->options.forward_only ? PLAN_INFER : PLAN_TUNE,
                                 .threads = 1,
                                 .keep = size->values,
                                 .n_keep = probe->n_watches,
                                 .weights = weights,
                                 .by_image = probe->n_watches == 0 };
    if (lane->tail)
        return true;
    head.by_image = size->head && size->head->n_outputs == 1;
    if (!lane->scratch)
        lane->scratch = floats_new(size->images, probe->most_stored + 1);
    return (lane->scratch || err_memory(err, probe->model->name)) &&
           (!size->head || lane->head || plan_new(size->head, &head, &lane->head, err)) &&
           plan_new(size->tail, &tail, &lane->tail, err);
}

static bool read_watch(const struct probe *probe, const struct size *size, struct lane *lane,
                       int watch, int64_t first, bool gradient, struct err *err)
{
    const struct view_of_watch *view = &probe->watches[watch];
    float *to = gradient ? view->gradient : view->activation;
    if (!to)
        return true;
    to += first * view->watch.floats;
    float *at = view->watch.layer.tokens ? lane->scratch : to;
    value_id value = size->values[watch];
    bool ok = gradient ? plan_activation_gradient(lane->tail, value, at, err)
                       : plan_activation(lane->tail, value, at, err);
    if (ok && at != to)
        probe_hand_over(&view->watch, size->images, at, to);
    return ok;
}

static bool lane_forward(const struct probe *probe, const struct size *size, struct lane *lane,
                         int64_t first, struct err *err)
{
    const float *images = probe->input + first * probe->image_floats;
    size_t bytes = (size_t)(size->images * probe->image_floats) * sizeof *images;
    if (lane->head) {
        memcpy(plan_input(lane->head, 0), images, bytes);
        if (!plan_forward(lane->head, err))
            return false;
    }
    for (int i = 0; i < size->tail->n_inputs; i++) {
        const struct shape *shape = graph_shape(size->tail, size->tail->inputs[i].value);
        bool crossing = i < size->n_crossing;
        memcpy(plan_input(lane->tail, i), crossing ? plan_output(lane->head, i) : images,
               crossing ? (size_t)shape_count(shape) * sizeof *images : bytes);
    }
    if (!plan_forward(lane->tail, err))
        return false;
    lane->holds = first, lane->pass = probe->pass;
    memcpy(probe->logits + first * probe->classes, plan_output(lane->tail, 0),
           (size_t)(size->images * probe->classes) * sizeof *probe->logits);
    bool ok = true;
    for (int i = 0; ok && i < probe->n_watches; i++)
        ok = read_watch(probe, size, lane, i, first, false, err);
    return ok;
}

static bool lane_backward(const struct probe *probe, const struct size *size, struct lane *lane,
                          int64_t first, const int64_t *classes, struct err *err)
{
    float *gradient = plan_output_gradient(lane->tail, 0);
    memset(gradient, 0, (size_t)(size->images * probe->classes) * sizeof *gradient);
    for (int64_t i = 0; i < size->images; i++)
        gradient[i * probe->classes + classes[first + i]] = 1;
    bool ok = plan_backward(lane->tail, err);
    for (int i = 0; ok && i < probe->n_watches; i++)
        ok = read_watch(probe, size, lane, i, first, true, err);
    return ok;
}

static int64_t groups_of(const struct probe *probe)
{
    const struct size *together = &probe->sizes[TOGETHER];
    return together->images && !probe->alone ? probe->n / together->images : 0;
}

struct pass {
    struct probe *probe;
    const int64_t *classes; /* NULL: no backward pass */
};

/* Work for one thread: a group, or an image that is left over. Forward only if the lane does not
 * hold the result already. */
static bool run_unit(void *arg, int64_t unit, int worker, struct err *err)
{
    const struct pass *pass = arg;
    struct probe *probe = pass->probe;
    const struct size *together = &probe->sizes[TOGETHER];
    int64_t groups = groups_of(probe), grouped = groups * together->images;
    const struct size *size = unit < groups ? together : &probe->sizes[ALONE];
    int64_t first = unit < groups ? unit * together->images : grouped + (unit - groups);
    struct lane *lane = &size->lanes[worker];
    bool ok = lane_open(probe, size, lane, err);
    if (ok && (lane->pass != probe->pass || lane->holds != first))
        ok = lane_forward(probe, size, lane, first, err);
    if (ok && pass->classes)
        ok = lane_backward(probe, size, lane, first, pass->classes, err);
    return ok;
}

static bool run(struct probe *probe, const int64_t *classes, struct err *err)
{
    struct pass pass = { probe, classes };
    int64_t groups = groups_of(probe);
    int64_t left_over = probe->n - groups * probe->sizes[TOGETHER].images;
    if (!pool_for(probe->pool, groups + left_over, run_unit, &pass, NULL, err)) {
        probe->n = 0;
        return err_prefix(err, probe->model->name);
    }
    probe->differentiated = classes != NULL;
    return true;
}

static bool start(struct probe *probe, const float *input, int64_t n, struct err *err)
{
    probe->n = 0;
    if (n < 1 || n > probe->options.batch)
        return err_set(err, ERR_USAGE, "%s: a pass of %lld images in a probe for 1 to %lld",
                       probe->model->name, (long long)n, (long long)probe->options.batch);
    probe->input = input, probe->n = n, probe->pass++, probe->alone = probe->one_by_one;
    return true;
}

static bool check_classes(const struct probe *probe, const int64_t *classes, struct err *err)
{
    if (probe->options.forward_only || !probe->n)
        return err_set(err, ERR_USAGE, "%s: this probe has no %s pass", probe->model->name,
                       probe->n ? "backward" : "forward");
    for (int64_t i = 0; i < probe->n; i++)
        if (classes[i] < 0 || classes[i] >= probe->classes)
            return err_set(err, ERR_USAGE, "%s: no class %lld; it has %lld", probe->model->name,
                           (long long)classes[i], (long long)probe->classes);
    return true;
}

void probe_alone(struct probe *probe, bool alone)
{
    probe->one_by_one = alone;
}

bool probe_forward(struct probe *probe, const float *input, int64_t n, struct err *err)
{
    return start(probe, input, n, err) && run(probe, NULL, err);
}

bool probe_backward(struct probe *probe, const int64_t *classes, struct err *err)
{
    return check_classes(probe, classes, err) && run(probe, classes, err);
}

bool probe_differentiate(struct probe *probe, const float *input, int64_t n, const int64_t *classes,
                         struct err *err)
{
    return start(probe, input, n, err) && check_classes(probe, classes, err) &&
           run(probe, classes, err);
}

/* --- reading --- */

int64_t probe_classes(const struct probe *probe)
{
    return probe->classes;
}

int probe_n_layers(const struct probe *probe)
{
    return probe->n_layers;
}

const struct probe_layer *probe_layer(const struct probe *probe, int layer)
{
    return &probe->watches[layer].watch.layer;
}

bool probe_need_spatial(const struct probe *probe, int layer, struct err *err)
{
    const struct probe_layer *at = probe_layer(probe, layer);
    if (at->spatial)
        return true;
    if (!probe->fallback)
        return err_set(err, ERR_USAGE,
                       "%s: layer '%s' has no extent (1 x 1), nor has any other at this input size",
                       probe->model->name, at->name);
    return err_set(err, ERR_USAGE,
                   "%s: layer '%s' has no extent (1 x 1), so there is nothing to map; choose one "
                   "that has, e.g. --layer %s",
                   probe->model->name, at->name, probe->fallback);
}

const float *probe_logits(const struct probe *probe)
{
    return probe->logits;
}

static bool has_passed(const struct probe *probe, bool backward, struct err *err)
{
    return (probe->n && (!backward || probe->differentiated)) ||
           err_set(err, ERR_USAGE, "%s: no %s pass has been run", probe->model->name,
                   backward ? "backward" : "forward");
}

const float *probe_activation(struct probe *probe, int layer, struct err *err)
{
    return has_passed(probe, false, err) ? probe->watches[layer].activation : NULL;
}

const float *probe_gradient(struct probe *probe, int layer, struct err *err)
{
    return has_passed(probe, true, err) ? probe->watches[layer].gradient : NULL;
}

const float *probe_input_gradient(struct probe *probe, struct err *err)
{
    if (!probe->options.input_gradient) {
        err_set(err, ERR_USAGE, "%s: this probe has no gradient of the input", probe->model->name);
        return NULL;
    }
    return has_passed(probe, true, err) ? probe->watches[probe->n_layers].gradient : NULL;
}

int probe_n_attention(const struct probe *probe)
{
    return probe->n_attention;
}

struct probe_attention probe_attention(const struct probe *probe, int i)
{
    const struct view_of_watch *view = &probe->watches[probe->n_watches - probe->n_attention + i];
    const struct probe_layer *layer = &view->watch.layer;
    return (struct probe_attention){ .heads = layer->channels,
                                     .tokens = layer->height * layer->width + layer->class_token,
                                     .height = layer->height,
                                     .width = layer->width,
                                     .class_token = layer->class_token,
                                     .values = view->activation };
}
