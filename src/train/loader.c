/* loader.c: see loader.h. One mutex guards the counters below; pixels are processed outside it.
 * Workers take items strictly in order. An item may begin when its batch has a place in the ring
 * and its window is loaded; the reader loads a window when at most the one before it is in use. */
#include "train/loader.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/divide.h"
#include "train/loss.h"
#include "base/clock.h"

#define AHEAD 3 /* batches in the ring */

struct place {
    float *pixels;
    int32_t *labels;
    int64_t *samples;
    int64_t left;   /* items not yet done */
    int64_t failed; /* the lowest item that failed, or -1 */
    struct err err;
};

struct window {
    bool loaded;
    int64_t left; /* items of this rank not yet done */
    struct err err;
    int64_t first_group, n_groups; /* in loader->groups */
};

struct loaded_group {
    int64_t sample; /* one of its samples */
    uint8_t *px;
};

struct loader {
    struct loader_options options;
    int64_t n_batches, sample_floats;
    struct place ring[AHEAD];
    /* one epoch */
    struct order order;
    uint64_t epoch;
    int64_t first_batch, next_item, end_item; /* items of this rank, numbered batch * size + j */
    int64_t given, released;                  /* batches the caller was given, is done with */
    struct window *windows;
    int32_t low_window; /* lowest that still has items to do */
    struct loaded_group *groups;
    int64_t n_groups;
    int64_t *group_of; /* [order.n]: index in groups, or -1 */
    bool stop, running;
    pthread_t reader, *workers;
    int n_workers;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    double waited_s;
};

/* Where item i of this rank stands in the order of the epoch; beyond its end: filled up. */
static int64_t position_of(const struct loader *loader, int64_t item)
{
    const struct loader_options *o = &loader->options;
    return (item / o->batch * o->ranks + o->rank) * o->batch + item % o->batch;
}

static struct order_options order_options(const struct loader *loader, uint64_t epoch)
{
    const struct loader_options *o = &loader->options;
    return (struct order_options){ .side = o->side,
                                   .shuffle = o->train,
                                   .balanced = o->balanced,
                                   .seed = o->seed,
                                   .epoch = epoch,
                                   .window_bytes = o->window_bytes };
}

bool loader_new(const struct loader_options *options, struct loader **out, struct err *err)
{
    struct loader *loader = calloc(1, sizeof *loader);
    if (!loader)
        return err_memory(err, "the loader");
    loader->options = *options;
    loader->options.augment.crop_px = options->input_px;
    pthread_mutex_init(&loader->lock, NULL);
    pthread_cond_init(&loader->changed, NULL);
    struct order_options order = order_options(loader, 0);
    int64_t n = order_count(options->dataset, &order), global = options->batch * options->ranks;
    loader->n_batches = options->train ? n / global : ceil_div(n, global);
    loader->sample_floats = 3 * options->input_px * options->input_px;
    bool ok = true;
    for (int i = 0; i < AHEAD; i++) {
        struct place *place = &loader->ring[i];
        size_t batch = (size_t)options->batch;
        place->pixels = calloc(batch * (size_t)loader->sample_floats, sizeof *place->pixels);
        place->labels = calloc(batch, sizeof *place->labels);
        place->samples = calloc(batch, sizeof *place->samples);
        ok = ok && place->pixels && place->labels && place->samples;
    }
    loader->workers = calloc((size_t)options->workers, sizeof *loader->workers);
    if (!ok || !loader->workers) {
        loader_free(loader);
        return err_memory(err, "batches");
    }
    *out = loader;
    return true;
}

void loader_free(struct loader *loader)
{
    if (!loader)
        return;
    loader_end(loader);
    for (int i = 0; i < AHEAD; i++) {
        free(loader->ring[i].pixels);
        free(loader->ring[i].labels);
        free(loader->ring[i].samples);
    }
    free(loader->workers);
    pthread_mutex_destroy(&loader->lock);
    pthread_cond_destroy(&loader->changed);
    free(loader);
}

int64_t loader_n_batches(const struct loader *loader)
{
    return loader->n_batches;
}

double loader_waited_s(const struct loader *loader)
{
    return loader->waited_s;
}

/* --- workers --- */

/* Stains, sizes and, for training, all that is drawn. */
static bool prepare_patch(const struct loader_options *options, struct augment_key key,
                          struct image *patch, struct err *err)
{
    const struct model_config *config = options->prepare;
    int n_steps = config->n_steps;
    if (options->train && n_steps > 0 && config->steps[n_steps - 1].kind == MODEL_CENTER_CROP)
        n_steps--; /* the crop is drawn instead */
    if ((options->stain && !stain_need_patch(options->stain, patch, err)) ||
        !model_apply_steps(config, n_steps, patch, err) ||
        (options->train && !augment_train(&options->augment, key, patch, err)))
        return false;
    if (patch->width == options->input_px && patch->height == options->input_px)
        return true;
    return err_set(err, ERR_FORMAT, "the patch has %lld x %lld px, but the network expects %lld px",
                   (long long)patch->width, (long long)patch->height, (long long)options->input_px);
}

static bool make_sample(const struct loader *loader, int64_t position, float *out, struct err *err)
{
    const struct loader_options *options = &loader->options;
    const struct order_item *item = &loader->order.items[position];
    int64_t group = loader->group_of[position];
    struct image patch = { 0 };
    struct augment_key key = { .seed = options->seed,
                               .epoch = loader->epoch | (uint64_t)item->copy << 32,
                               .sample = (uint64_t)item->sample };
    bool ok = dataset_read(options->dataset, item->sample,
                           group >= 0 ? loader->groups[group].px : NULL, &patch, err) &&
              prepare_patch(options, key, &patch, err);
    if (ok)
        model_normalize(options->prepare, &patch, out);
    else {
        char *name = dataset_sample_name(options->dataset, item->sample);
        if (err && name && !strstr(err->text, name))
            err_prefix(err, name);
        free(name);
    }
    image_free(&patch);
    return ok;
}

static void free_window(struct loader *loader, const struct window *window)
{
    for (int64_t i = window->first_group; i < window->first_group + window->n_groups; i++) {
        free(loader->groups[i].px);
        loader->groups[i].px = NULL;
    }
}

/* With the lock held. */
static void finish_window_item(struct loader *loader, int32_t number)
{
    if (--loader->windows[number].left > 0)
        return;
    free_window(loader, &loader->windows[number]);
    while (loader->low_window < loader->order.n_windows &&
           loader->windows[loader->low_window].left == 0)
        loader->low_window++;
}

/* May the next item begin? With the lock held. */
static bool can_begin(const struct loader *loader)
{
    int64_t position = position_of(loader, loader->next_item);
    if (loader->next_item / loader->options.batch >= loader->first_batch + loader->released + AHEAD)
        return false;
    return position >= loader->order.n ||
           loader->windows[loader->order.items[position].window].loaded;
}

static void do_item(struct loader *loader, int64_t item)
{
    const struct loader_options *options = &loader->options;
    int64_t position = position_of(loader, item), slot = item % options->batch;
    struct place *place = &loader->ring[item / options->batch % AHEAD];
    float *out = place->pixels + slot * loader->sample_floats;
    struct err problem = { 0 };
    bool ok = true, real = position < loader->order.n;
    int32_t window = -1;
    if (real) {
        int64_t sample = loader->order.items[position].sample;
        window = loader->order.items[position].window;
        place->labels[slot] = options->dataset->samples[sample].label;
        place->samples[slot] = sample;
        problem = loader->windows[window].err;
        ok = problem.kind == ERR_NONE && make_sample(loader, position, out, &problem);
    } else {
        memset(out, 0, (size_t)loader->sample_floats * sizeof *out);
        place->labels[slot] = LOSS_IGNORE;
        place->samples[slot] = -1;
    }
    pthread_mutex_lock(&loader->lock);
    if (!ok && (place->failed < 0 || item < place->failed)) {
        place->failed = item;
        place->err = problem;
    }
    if (real)
        finish_window_item(loader, window);
    place->left--;
    pthread_cond_broadcast(&loader->changed);
    pthread_mutex_unlock(&loader->lock);
}

static void *work(void *arg)
{
    struct loader *loader = arg;
    for (;;) {
        pthread_mutex_lock(&loader->lock);
        while (!loader->stop && loader->next_item < loader->end_item && !can_begin(loader))
            pthread_cond_wait(&loader->changed, &loader->lock);
        bool done = loader->stop || loader->next_item >= loader->end_item;
        int64_t item = done ? 0 : loader->next_item++;
        pthread_mutex_unlock(&loader->lock);
        if (done)
            return NULL;
        do_item(loader, item);
    }
}

/* --- the reader: the only thread that touches HDF5 --- */

static bool load_window(struct loader *loader, const struct window *window, struct err *err)
{
    const struct dataset *dataset = loader->options.dataset;
    for (int64_t i = window->first_group; i < window->first_group + window->n_groups; i++) {
        struct loaded_group *group = &loader->groups[i];
        group->px = malloc((size_t)dataset_group_bytes(dataset, group->sample));
        if (!group->px)
            return err_memory(
                err, "a group of patches; data.window_mb limits how many are kept in memory");
        if (!dataset_read_group(dataset, group->sample, group->px, err))
            return false;
    }
    return true;
}

static void *read_windows(void *arg)
{
    struct loader *loader = arg;
    for (int32_t i = 0; i < loader->order.n_windows; i++) {
        struct window *window = &loader->windows[i];
        pthread_mutex_lock(&loader->lock);
        while (!loader->stop && window->left > 0 && i > loader->low_window + 1)
            pthread_cond_wait(&loader->changed, &loader->lock);
        bool stop = loader->stop;
        pthread_mutex_unlock(&loader->lock);
        if (stop)
            return NULL;
        struct err problem = { 0 };
        if (window->left > 0 && !load_window(loader, window, &problem))
            window->err = problem; /* every item of the window fails with it */
        pthread_mutex_lock(&loader->lock);
        window->loaded = true;
        pthread_cond_broadcast(&loader->changed);
        pthread_mutex_unlock(&loader->lock);
    }
    return NULL;
}

/* --- an epoch --- */

struct group_key {
    int32_t window, source, group;
    int64_t position;
};

static int by_group(const void *a, const void *b)
{
    const struct group_key *x = a, *y = b;
    if (x->window != y->window)
        return x->window < y->window ? -1 : 1;
    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return x->position < y->position ? -1 : x->position > y->position;
}

/* Which groups each window has, from the items that this rank will do. */
static void index_groups(struct loader *loader, struct group_key *keys)
{
    const struct dataset *dataset = loader->options.dataset;
    int64_t n = 0;
    for (int64_t item = loader->next_item; item < loader->end_item; item++) {
        int64_t position = position_of(loader, item);
        if (position >= loader->order.n)
            continue;
        const struct order_item *found = &loader->order.items[position];
        const struct sample *sample = &dataset->samples[found->sample];
        loader->windows[found->window].left++;
        loader->group_of[position] = -1;
        if (dataset_in_group(dataset, found->sample))
            keys[n++] =
                (struct group_key){ found->window, sample->source, sample->group, position };
    }
    qsort(keys, (size_t)n, sizeof *keys, by_group);
    for (int64_t i = 0; i < n; i++) {
        struct window *window = &loader->windows[keys[i].window];
        bool same = i > 0 && keys[i].window == keys[i - 1].window &&
                    keys[i].source == keys[i - 1].source && keys[i].group == keys[i - 1].group;
        if (!same) {
            if (window->n_groups++ == 0)
                window->first_group = loader->n_groups;
            loader->groups[loader->n_groups++].sample =
                loader->order.items[keys[i].position].sample;
        }
        loader->group_of[keys[i].position] = loader->n_groups - 1;
    }
}

static bool prepare(struct loader *loader, struct err *err)
{
    size_t n = (size_t)loader->order.n + 1;
    loader->windows = calloc((size_t)loader->order.n_windows + 1, sizeof *loader->windows);
    loader->groups = calloc(n, sizeof *loader->groups);
    loader->group_of = calloc(n, sizeof *loader->group_of);
    struct group_key *keys = calloc(n, sizeof *keys);
    bool ok = loader->windows && loader->groups && loader->group_of && keys;
    if (ok)
        index_groups(loader, keys);
    free(keys);
    while (ok && loader->low_window < loader->order.n_windows &&
           loader->windows[loader->low_window].left == 0)
        loader->low_window++;
    return ok ? true : err_memory(err, "the order of samples");
}

static bool start_threads(struct loader *loader, struct err *err)
{
    loader->stop = false;
    loader->running = pthread_create(&loader->reader, NULL, read_windows, loader) == 0;
    bool ok = loader->running;
    for (loader->n_workers = 0; ok && loader->n_workers < loader->options.workers;)
        if (pthread_create(&loader->workers[loader->n_workers], NULL, work, loader) == 0)
            loader->n_workers++;
        else
            ok = false;
    return ok ? true : err_memory(err, "the loader's threads");
}

bool loader_begin(struct loader *loader, uint64_t epoch, int64_t first, struct err *err)
{
    loader_end(loader);
    struct order_options options = order_options(loader, epoch);
    if (!order_new(loader->options.dataset, &options, &loader->order, err))
        return false;
    loader->epoch = epoch;
    loader->first_batch = first;
    loader->given = loader->released = 0;
    loader->low_window = 0;
    loader->n_groups = 0;
    loader->next_item = first * loader->options.batch;
    loader->end_item = loader->n_batches * loader->options.batch;
    for (int i = 0; i < AHEAD; i++) {
        loader->ring[i].left = loader->options.batch;
        loader->ring[i].failed = -1;
    }
    if (prepare(loader, err) && start_threads(loader, err))
        return true;
    loader_end(loader);
    return false;
}

/* The place of the batch that the caller had is free again. With the lock held. */
static void release(struct loader *loader)
{
    if (loader->given == loader->released)
        return;
    struct place *place = &loader->ring[(loader->first_batch + loader->released++) % AHEAD];
    place->left = loader->options.batch;
    place->failed = -1;
    pthread_cond_broadcast(&loader->changed);
}

bool loader_next(struct loader *loader, struct batch *out, struct err *err)
{
    double began_s = clock_monotonic_s();
    pthread_mutex_lock(&loader->lock);
    release(loader);
    struct place *place = &loader->ring[(loader->first_batch + loader->given) % AHEAD];
    while (place->left > 0)
        pthread_cond_wait(&loader->changed, &loader->lock);
    loader->given++;
    bool ok = place->failed < 0;
    if (!ok && err)
        *err = place->err;
    pthread_mutex_unlock(&loader->lock);
    loader->waited_s += clock_monotonic_s() - began_s;
    *out = (struct batch){ .pixels = place->pixels,
                           .labels = place->labels,
                           .samples = place->samples };
    for (int64_t i = 0; i < loader->options.batch; i++)
        out->n += place->samples[i] >= 0;
    return ok;
}

void loader_end(struct loader *loader)
{
    pthread_mutex_lock(&loader->lock);
    loader->stop = true;
    pthread_cond_broadcast(&loader->changed);
    pthread_mutex_unlock(&loader->lock);
    for (int i = 0; i < loader->n_workers; i++)
        pthread_join(loader->workers[i], NULL);
    if (loader->running)
        pthread_join(loader->reader, NULL);
    loader->n_workers = 0;
    loader->running = false;
    for (int64_t i = 0; i < loader->n_groups; i++)
        free(loader->groups[i].px);
    free(loader->windows);
    free(loader->groups);
    free(loader->group_of);
    loader->windows = NULL, loader->groups = NULL, loader->group_of = NULL;
    loader->n_groups = 0;
    order_free(&loader->order);
}
