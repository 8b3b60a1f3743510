/* loader.c: see loader.h. One mutex guards the counters below; pixels are processed outside it.
 * Workers take items strictly in order. An item may begin when its batch has a place in the ring
 * and its window is loaded; the reader loads a window when at most one other is in use. */
#include "train/loader.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/divide.h"
#include "train/loss.h"
#include "base/clock.h"
#include "train/dataset_recordings.h"
#include "train/pixel_classes.h"

#define AHEAD 3   /* batches in the ring */
#define WINDOWS 2 /* in memory */

struct place {
    float *pixels; /* or tokens, or frames */
    float *mask;   /* NULL: samples are images */
    int32_t *labels;
    float *targets;         /* NULL: the data set has none */
    int32_t *pixel_classes; /* NULL: the data set has no label images */
    int64_t *samples;
    int32_t *copies;
    int64_t left;   /* items not yet done */
    int64_t failed; /* the lowest item that failed, or -1 */
    struct err err;
};

struct loaded_group {
    int64_t sample; /* one of its samples */
    uint8_t *px;
};

/* A part of the order of the epoch whose groups are in memory. */
struct window {
    int64_t first, end;       /* positions */
    int64_t left;             /* items of this rank not yet done; 0: not in use */
    struct order_item *items; /* [end - first] */
    int32_t *group_of;        /* [end - first]: index in groups, or -1 */
    struct loaded_group *groups;
    int32_t n_groups;
    struct err err; /* every item of the window fails with it */
};

struct loader {
    struct loader_options options;
    int64_t n_batches, sample_floats, sample_places;
    int64_t mask_floats; /* of a sample; 0: samples are images */
    struct place ring[AHEAD];
    /* one epoch */
    struct order order;
    uint64_t epoch;
    int64_t first_batch, next_item, end_item; /* items of this rank, numbered batch * size + j */
    int64_t given, released;                  /* batches the caller was given, is done with */
    struct window windows[WINDOWS];
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

/* How many items of this rank come before a position. */
static int64_t items_before(const struct loader *loader, int64_t position)
{
    const struct loader_options *o = &loader->options;
    int64_t global = o->batch * o->ranks, rest = position % global - o->rank * o->batch;
    rest = rest < 0 ? 0 : rest > o->batch ? o->batch : rest;
    return position / global * o->batch + rest;
}

static struct order_options order_options(const struct loader *loader, uint64_t epoch)
{
    const struct loader_options *o = &loader->options;
    return (struct order_options){ .side = o->side,
                                   .shuffle = o->train,
                                   .balanced = o->balanced,
                                   .synthetic_share = o->synthetic_share,
                                   .seed = o->seed,
                                   .epoch = epoch,
                                   .window_bytes = o->window_bytes };
}

/* What a sample takes in a batch. */
static void set_sizes(struct loader *loader)
{
    const struct dataset *dataset = loader->options.dataset;
    loader->sample_floats = 3 * loader->sample_places;
    if (dataset->texts)
        loader->sample_floats = loader->mask_floats = dataset->texts->sequence.tokens;
    if (dataset->recordings) {
        const struct frames_rule *rule = &dataset->recordings->rule;
        loader->sample_floats = rule->frames * mel_options_of(rule->mel)->bands;
        loader->mask_floats = rule->frames / FRAMES_PER_TOKEN;
    }
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
    loader->sample_places = options->input_px * options->input_px;
    set_sizes(loader);
    bool ok = true;
    for (int i = 0; i < AHEAD; i++) {
        struct place *place = &loader->ring[i];
        size_t batch = (size_t)options->batch;
        place->pixels = calloc(batch * (size_t)loader->sample_floats, sizeof *place->pixels);
        place->labels = calloc(batch, sizeof *place->labels);
        place->samples = calloc(batch, sizeof *place->samples);
        place->copies = calloc(batch, sizeof *place->copies);
        if (loader->mask_floats > 0)
            place->mask = calloc(batch * (size_t)loader->mask_floats, sizeof *place->mask);
        if (options->dataset->targets)
            place->targets = calloc(batch, sizeof *place->targets);
        if (options->dataset->label_images)
            place->pixel_classes =
                calloc(batch * (size_t)loader->sample_places, sizeof *place->pixel_classes);
        ok = ok && place->pixels && place->labels && place->samples && place->copies &&
             (place->mask || loader->mask_floats == 0) &&
             (place->targets || !options->dataset->targets) &&
             (place->pixel_classes || !options->dataset->label_images);
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
        free(loader->ring[i].mask);
        free(loader->ring[i].labels);
        free(loader->ring[i].samples);
        free(loader->ring[i].copies);
        free(loader->ring[i].targets);
        free(loader->ring[i].pixel_classes);
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

/* Stains, sizes and, for training, all that is drawn. classes: of the patch's pixels, or without
 * any (px NULL); they follow the patch. */
static bool prepare_patch(const struct loader_options *options, struct augment_key key,
                          struct image *patch, struct image *classes, struct err *err)
{
    const struct model_config *config = options->prepare;
    int n_steps = config->n_sizings;
    if (options->train && n_steps > 0 && config->sizings[n_steps - 1].kind == MODEL_CENTER_CROP)
        n_steps--; /* the crop is drawn instead */
    if ((options->stain && !stain_need_patch(options->stain, patch, err)) ||
        !model_resize(config, n_steps, patch, err) ||
        (classes->px && !model_resize(config, n_steps, classes, err)) ||
        (options->train &&
         !augment_train_pair(&options->augment, key, patch, classes->px ? classes : NULL, err)))
        return false;
    if (patch->width == options->input_px && patch->height == options->input_px)
        return true;
    return err_set(err, ERR_FORMAT, "the patch has %lld x %lld px, but the network expects %lld px",
                   (long long)patch->width, (long long)patch->height, (long long)options->input_px);
}

/* The classes of a sample's pixels, in the first channel. */
static bool read_classes(const struct loader_options *options, int64_t sample,
                         const struct image *patch, struct image *out, struct err *err)
{
    struct label_image labels = { 0 };
    if (!options->dataset->label_images)
        return true;
    bool ok = dataset_read_labels(options->dataset, sample, &labels, err) &&
              pixel_classes(&labels, patch, options->prepare->spacing_um_px, out, err);
    label_image_free(&labels);
    return ok;
}

/* An error of a sample names it. Returns false. */
static bool name_sample(const struct loader_options *options, int64_t sample, struct err *err)
{
    char *name = dataset_sample_name(options->dataset, sample);
    if (err && name && !strstr(err->text, name))
        err_prefix(err, name);
    free(name);
    return false;
}

/* Names all that is drawn for a sample. */
static struct augment_key key_of(const struct loader *loader, const struct order_item *item)
{
    return (struct augment_key){ .seed = loader->options.seed,
                                 .epoch = loader->epoch | (uint64_t)item->copy << 32,
                                 .sample = (uint64_t)item->sample };
}

/* classes [input_px, input_px]: NULL without label images */
static bool make_image(const struct loader *loader, const struct window *window, int64_t position,
                       float *out, int32_t *classes, struct err *err)
{
    const struct loader_options *options = &loader->options;
    const struct order_item *item = &window->items[position - window->first];
    int32_t group = window->group_of[position - window->first];
    struct image patch = { 0 }, known = { 0 };
    bool ok = dataset_read(options->dataset, item->sample,
                           group >= 0 ? window->groups[group].px : NULL, &patch, err) &&
              read_classes(options, item->sample, &patch, &known, err) &&
              prepare_patch(options, key_of(loader, item), &patch, &known, err);
    for (int64_t i = 0; ok && classes && i < loader->sample_places; i++)
        classes[i] = known.px[3 * i];
    if (ok)
        model_normalize(options->prepare, &patch, out);
    image_free(&patch);
    image_free(&known);
    return ok;
}

/* Of a long text in windows, training sees one that is drawn, anything else the first. */
static bool make_text(const struct loader *loader, const struct order_item *item, float *out,
                      float *mask, struct err *err)
{
    const struct loader_options *options = &loader->options;
    if (!options->train)
        return dataset_read_text(options->dataset, item->sample, out, mask, err);
    return dataset_draw_text(options->dataset, item->sample, key_of(loader, item), out, mask, err);
}

static bool make_frames(const struct loader *loader, const struct order_item *item, float *out,
                        float *mask, struct err *err)
{
    const struct loader_options *options = &loader->options;
    struct augment_key drawn = key_of(loader, item);
    struct vary_key key = { .seed = drawn.seed, .epoch = drawn.epoch, .sample = drawn.sample };
    return dataset_read_frames(options->dataset, item->sample, options->train ? &key : NULL, out,
                               mask, err);
}

/* The sample at a position, for this slot of a batch. */
static bool make_sample(const struct loader *loader, const struct window *window, int64_t position,
                        struct place *place, int64_t slot, struct err *err)
{
    const struct order_item *item = &window->items[position - window->first];
    int64_t sample = item->sample;
    float *out = place->pixels + slot * loader->sample_floats;
    int32_t *classes =
        place->pixel_classes ? place->pixel_classes + slot * loader->sample_places : NULL;
    const struct dataset *dataset = loader->options.dataset;
    float *mask = place->mask ? place->mask + slot * loader->mask_floats : NULL;
    bool ok = dataset->texts        ? make_text(loader, item, out, mask, err)
              : dataset->recordings ? make_frames(loader, item, out, mask, err)
                                    : make_image(loader, window, position, out, classes, err);
    return ok || name_sample(&loader->options, sample, err);
}

/* A slot of a batch without a sample. */
static void fill_up(const struct loader *loader, struct place *place, int64_t slot)
{
    size_t bytes = (size_t)loader->sample_floats * sizeof(float);
    memset(place->pixels + slot * loader->sample_floats, 0, bytes);
    for (int64_t i = 0; i < loader->mask_floats; i++)
        place->mask[slot * loader->mask_floats + i] = 1; /* a mean over no token is none */
    for (int64_t i = 0; place->pixel_classes && i < loader->sample_places; i++)
        place->pixel_classes[slot * loader->sample_places + i] = LOSS_IGNORE;
}

static void free_window(struct window *window)
{
    for (int32_t i = 0; i < window->n_groups; i++)
        free(window->groups[i].px);
    free(window->groups);
    free(window->group_of);
    free(window->items);
    *window = (struct window){ 0 };
}

/* The window in memory that has the position, or NULL. With the lock held. */
static struct window *window_of(struct loader *loader, int64_t position)
{
    for (int i = 0; i < WINDOWS; i++) {
        struct window *window = &loader->windows[i];
        if (window->left > 0 && position >= window->first && position < window->end)
            return window;
    }
    return NULL;
}

/* May the next item begin? With the lock held. */
static bool can_begin(struct loader *loader)
{
    int64_t position = position_of(loader, loader->next_item);
    if (loader->next_item / loader->options.batch >= loader->first_batch + loader->released + AHEAD)
        return false;
    return position >= loader->order.n || window_of(loader, position);
}

/* window: of the item; NULL beyond the end of the epoch. */
static void do_item(struct loader *loader, struct window *window, int64_t item)
{
    const struct loader_options *options = &loader->options;
    int64_t position = position_of(loader, item), slot = item % options->batch;
    struct place *place = &loader->ring[item / options->batch % AHEAD];
    struct err problem = window ? window->err : (struct err){ 0 };
    bool ok = problem.kind == ERR_NONE;
    place->labels[slot] = LOSS_IGNORE;
    place->samples[slot] = -1;
    place->copies[slot] = 0;
    if (place->targets)
        place->targets[slot] = NAN;
    if (window && ok) {
        int64_t sample = window->items[position - window->first].sample;
        place->labels[slot] = dataset_label(options->dataset, sample);
        place->samples[slot] = sample;
        place->copies[slot] = window->items[position - window->first].copy;
        if (place->targets)
            place->targets[slot] = options->dataset->targets[sample];
        ok = make_sample(loader, window, position, place, slot, &problem);
    } else {
        fill_up(loader, place, slot);
    }
    pthread_mutex_lock(&loader->lock);
    if (!ok && (place->failed < 0 || item < place->failed)) {
        place->failed = item;
        place->err = problem;
    }
    if (window && --window->left == 0)
        free_window(window);
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
        struct window *window = done ? NULL : window_of(loader, position_of(loader, item));
        pthread_mutex_unlock(&loader->lock);
        if (done)
            return NULL;
        do_item(loader, window, item);
    }
}

/* --- the reader: the only thread that touches HDF5 --- */

struct group_key {
    int32_t origin, group;
    int64_t index; /* of the item in the window */
};

static int by_group(const void *a, const void *b)
{
    const struct group_key *x = a, *y = b;
    if (x->origin != y->origin)
        return x->origin < y->origin ? -1 : 1;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Which groups the items of this rank need, from item `begin` on; keys and groups have room for
 * all. */
static void index_groups(const struct loader *loader, struct window *window, int64_t begin,
                         struct group_key *keys)
{
    const struct dataset *dataset = loader->options.dataset;
    int64_t n = 0;
    for (int64_t item = begin; item < begin + window->left; item++) {
        int64_t index = position_of(loader, item) - window->first;
        int64_t sample = window->items[index].sample;
        window->group_of[index] = -1;
        if (dataset_in_group(dataset, sample))
            keys[n++] = (struct group_key){ dataset_origin(dataset, sample),
                                            dataset_group(dataset, sample), index };
    }
    qsort(keys, (size_t)n, sizeof *keys, by_group);
    for (int64_t i = 0; i < n; i++) {
        bool same =
            i > 0 && keys[i].origin == keys[i - 1].origin && keys[i].group == keys[i - 1].group;
        if (!same)
            window->groups[window->n_groups++].sample = window->items[keys[i].index].sample;
        window->group_of[keys[i].index] = window->n_groups - 1;
    }
}

/* The items of window `number` and what they need. */
static bool list_window(const struct loader *loader, int32_t number, int64_t begin,
                        struct window *window, struct err *err)
{
    size_t room = (size_t)(window->end - window->first);
    struct group_key *keys = malloc(room * sizeof *keys);
    window->items = malloc(room * sizeof *window->items);
    window->group_of = malloc(room * sizeof *window->group_of);
    window->groups = calloc((size_t)window->left, sizeof *window->groups);
    bool ok = (keys && window->items && window->group_of && window->groups) ||
              err_memory(err, "the order of samples");
    ok = ok && order_window(&loader->order, number, window->items, err);
    if (ok)
        index_groups(loader, window, begin, keys);
    free(keys);
    return ok;
}

static bool load_groups(const struct loader *loader, struct window *window, struct err *err)
{
    const struct dataset *dataset = loader->options.dataset;
    for (int32_t i = 0; i < window->n_groups; i++) {
        struct loaded_group *group = &window->groups[i];
        group->px = malloc((size_t)dataset_group_bytes(dataset, group->sample));
        if (!group->px)
            return err_memory(
                err, "a group of patches; data.window_mb limits how many are kept in memory");
        if (!dataset_read_group(dataset, group->sample, group->px, err))
            return false;
    }
    return true;
}

/* A window that is not in use, or NULL. With the lock held. */
static struct window *free_slot(struct loader *loader)
{
    for (int i = 0; i < WINDOWS; i++)
        if (loader->windows[i].left == 0)
            return &loader->windows[i];
    return NULL;
}

static void *read_windows(void *arg)
{
    struct loader *loader = arg;
    for (int32_t i = 0; i < loader->order.n_windows; i++) {
        const struct order_window *place = &loader->order.windows[i];
        struct window window = { .first = place[0].first, .end = place[1].first };
        int64_t begin = items_before(loader, window.first), end = items_before(loader, window.end);
        int64_t first_item = loader->first_batch * loader->options.batch;
        begin = begin < first_item ? first_item : begin;
        end = end > loader->end_item ? loader->end_item : end;
        if (begin >= end)
            continue;
        struct window *slot = NULL;
        pthread_mutex_lock(&loader->lock);
        while (!loader->stop && !(slot = free_slot(loader)))
            pthread_cond_wait(&loader->changed, &loader->lock);
        bool stop = loader->stop;
        pthread_mutex_unlock(&loader->lock);
        if (stop)
            return NULL;
        struct err problem = { 0 };
        window.left = end - begin;
        if (!list_window(loader, i, begin, &window, &problem) ||
            !load_groups(loader, &window, &problem))
            window.err = problem;
        pthread_mutex_lock(&loader->lock);
        *slot = window;
        pthread_cond_broadcast(&loader->changed);
        pthread_mutex_unlock(&loader->lock);
    }
    return NULL;
}

/* --- an epoch --- */

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

/* The order is there. */
static bool begin(struct loader *loader, uint64_t epoch, int64_t first, int64_t n_batches,
                  struct err *err)
{
    loader->epoch = epoch;
    loader->first_batch = first;
    loader->given = loader->released = 0;
    loader->next_item = first * loader->options.batch;
    loader->end_item = n_batches * loader->options.batch;
    for (int i = 0; i < AHEAD; i++) {
        loader->ring[i].left = loader->options.batch;
        loader->ring[i].failed = -1;
    }
    if (start_threads(loader, err))
        return true;
    loader_end(loader);
    return false;
}

bool loader_begin(struct loader *loader, uint64_t epoch, int64_t first, struct err *err)
{
    loader_end(loader);
    struct order_options options = order_options(loader, epoch);
    return order_new(loader->options.dataset, &options, &loader->order, err) &&
           begin(loader, epoch, first, loader->n_batches, err);
}

bool loader_begin_items(struct loader *loader, uint64_t epoch, const struct order_item *items,
                        int64_t n, struct err *err)
{
    loader_end(loader);
    return order_listed(loader->options.dataset, items, n, loader->options.window_bytes,
                        &loader->order, err) &&
           begin(loader, epoch, 0, ceil_div(n, loader->options.batch), err);
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

static void describe(const struct loader *loader, const struct place *place, struct batch *out)
{
    int64_t n = loader->options.batch, side = loader->options.input_px;
    *out = (struct batch){ 0 };
    const struct dataset_recordings *recordings = loader->options.dataset->recordings;
    struct shape tokens = SHAPE(n, loader->mask_floats);
    if (recordings) {
        int64_t frames = recordings->rule.frames;
        batch_put(out, (struct batch_item){ "frames", BATCH_FLOAT,
                                            SHAPE(n, frames, loader->sample_floats / frames),
                                            place->pixels });
        batch_put(out, (struct batch_item){ "mask", BATCH_FLOAT, tokens, place->mask });
    } else if (place->mask) {
        batch_put(out, (struct batch_item){ "tokens", BATCH_FLOAT, tokens, place->pixels });
        batch_put(out, (struct batch_item){ "mask", BATCH_FLOAT, tokens, place->mask });
    } else {
        batch_put(out, (struct batch_item){ "image", BATCH_FLOAT, SHAPE(n, 3, side, side),
                                            place->pixels });
    }
    batch_put(out, (struct batch_item){ "label", BATCH_INT32, SHAPE(n), place->labels });
    batch_put(out, (struct batch_item){ "sample", BATCH_INT64, SHAPE(n), place->samples });
    batch_put(out, (struct batch_item){ "copy", BATCH_INT32, SHAPE(n), place->copies });
    if (place->targets)
        batch_put(out, (struct batch_item){ "target", BATCH_FLOAT, SHAPE(n), place->targets });
    if (place->pixel_classes)
        batch_put(out, (struct batch_item){ "labels", BATCH_INT32, SHAPE(n, side, side),
                                            place->pixel_classes });
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
    describe(loader, place, out);
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
    for (int i = 0; i < WINDOWS; i++)
        free_window(&loader->windows[i]);
    order_free(&loader->order);
}
