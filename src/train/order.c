/* order.c: see order.h. A chunk is what is read together: the side's samples of one group, or one
 * image. Nothing is kept for each sample: draws are made again wherever they are needed. */
#include "train/order.h"

#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "train/order_balance.h"

struct drawn_chunk {
    uint64_t draw;
    int64_t first; /* sample */
};

struct shuffled {
    struct order_item item;
    uint64_t draw;
};

static int by_chunk_draw(const void *a, const void *b)
{
    const struct drawn_chunk *x = a, *y = b;
    if (x->draw != y->draw)
        return x->draw < y->draw ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

static int by_item_draw(const void *a, const void *b)
{
    const struct shuffled *x = a, *y = b;
    if (x->draw != y->draw)
        return x->draw < y->draw ? -1 : 1;
    if (x->item.sample != y->item.sample)
        return x->item.sample < y->item.sample ? -1 : 1;
    return x->item.copy - y->item.copy;
}

uint64_t order_draw(const struct order_options *options, uint64_t what, int64_t index)
{
    struct rng rng = rng_new(options->seed, what ^ options->epoch, (uint64_t)index);
    return rng_u64(&rng);
}

/* --- chunks --- */

bool order_next_range(const struct order *order, int64_t from, struct sample_range *out)
{
    while (from < order->dataset->n_samples) {
        *out = dataset_range(order->dataset, from);
        if (out->side == order->options.side)
            return true;
        from = out->end;
    }
    return false;
}

/* The range after `range`, if it is of the same chunk. */
static bool continues(const struct order *order, struct sample_range *range)
{
    struct sample_range next;
    if (!order_next_range(order, range->end, &next) || next.origin != range->origin ||
        next.group != range->group)
        return false;
    *range = next;
    return true;
}

/* The chunks of the side, in the order of the data set; returns how many. chunks: NULL to count. */
static int64_t list_chunks(const struct order *order, struct drawn_chunk *chunks)
{
    uint64_t what = rng_hash("groups");
    int64_t n = 0;
    struct sample_range range;
    for (int64_t at = 0; order_next_range(order, at, &range); at = range.end) {
        if (chunks)
            chunks[n] =
                (struct drawn_chunk){ order_draw(&order->options, what, range.first), range.first };
        n++;
        while (continues(order, &range))
            continue;
    }
    return n;
}

static bool find_chunks(struct order *order, struct err *err)
{
    order->n_chunks = list_chunks(order, NULL);
    size_t room = (size_t)order->n_chunks + 1;
    struct drawn_chunk *drawn = calloc(room, sizeof *drawn);
    if (drawn) {
        list_chunks(order, drawn);
        if (order->options.shuffle)
            qsort(drawn, (size_t)order->n_chunks, sizeof *drawn, by_chunk_draw);
        order->chunks = calloc(room, sizeof *order->chunks);
    }
    for (int64_t i = 0; order->chunks && i < order->n_chunks; i++)
        order->chunks[i] = drawn[i].first;
    free(drawn);
    return order->chunks || err_memory(err, "the order of samples");
}

/* --- windows --- */

static int64_t copies_of(const struct order *order, int64_t sample)
{
    return order->repeats ? order_copies(order, sample) : 1;
}

static int64_t count_items(const struct order *order, int64_t chunk)
{
    struct sample_range range = dataset_range(order->dataset, order->chunks[chunk]);
    int64_t n = 0;
    do {
        for (int64_t i = range.first; order->repeats && i < range.end; i++)
            n += copies_of(order, i);
        n += order->repeats ? 0 : range.end - range.first;
    } while (continues(order, &range));
    return n;
}

/* Counts windows; with `windows`, notes where each begins. */
static int32_t cut_windows(const struct order *order, struct order_window *windows)
{
    int64_t held = 0, n = 0;
    int32_t window = 0;
    for (int64_t i = 0; i < order->n_chunks; i++) {
        int64_t first = order->chunks[i], bytes = 0;
        if (dataset_in_group(order->dataset, first))
            bytes = dataset_group_bytes(order->dataset, first);
        bool full = held > 0 && held + bytes > order->options.window_bytes;
        if (full) {
            window++;
            held = 0;
        }
        held += bytes;
        if (!windows)
            continue;
        if (full || i == 0)
            windows[window] = (struct order_window){ .first = n, .first_chunk = i };
        n += count_items(order, i);
    }
    int32_t n_windows = order->n_chunks > 0 ? window + 1 : 0;
    if (windows)
        windows[n_windows] = (struct order_window){ .first = n, .first_chunk = order->n_chunks };
    return n_windows;
}

static bool make_windows(struct order *order, struct err *err)
{
    order->n_windows = cut_windows(order, NULL);
    order->windows = calloc((size_t)order->n_windows + 1, sizeof *order->windows);
    if (!order->windows)
        return err_memory(err, "the order of samples");
    cut_windows(order, order->windows);
    order->n = order->windows[order->n_windows].first;
    return true;
}

bool order_new(const struct dataset *dataset, const struct order_options *options,
               struct order *out, struct err *err)
{
    *out = (struct order){ .dataset = dataset, .options = *options };
    bool ok = find_chunks(out, err) &&
              (!order_repeats(options) || order_balance(out, &out->repeats, err)) &&
              make_windows(out, err);
    if (!ok)
        order_free(out);
    return ok;
}

static struct shuffled *draw_sample(const struct order *order, int64_t sample, struct shuffled *out)
{
    const uint64_t samples = rng_hash("samples"), copies = rng_hash("copies");
    int64_t n = copies_of(order, sample), stride = order->dataset->n_samples;
    if (n == 0)
        return out;
    *out++ = (struct shuffled){
        .item.sample = sample,
        .draw = order->options.shuffle ? order_draw(&order->options, samples, sample) : 0,
    };
    for (int64_t copy = 1; copy < n; copy++)
        *out++ = (struct shuffled){
            .item = { sample, (int32_t)copy },
            .draw = order_draw(&order->options, copies, sample + copy * stride),
        };
    return out;
}

/* --- a list --- */

/* Bytes that an item adds to those before it: groups that follow each other are read once. */
static int64_t added_bytes(const struct dataset *dataset, const struct order_item *items, int64_t i)
{
    if (!dataset_in_group(dataset, items[i].sample))
        return 0;
    bool same =
        i > 0 && dataset_in_group(dataset, items[i - 1].sample) &&
        dataset_origin(dataset, items[i].sample) == dataset_origin(dataset, items[i - 1].sample) &&
        dataset_group(dataset, items[i].sample) == dataset_group(dataset, items[i - 1].sample);
    return same ? 0 : dataset_group_bytes(dataset, items[i].sample);
}

bool order_listed(const struct dataset *dataset, const struct order_item *items, int64_t n,
                  int64_t window_bytes, struct order *out, struct err *err)
{
    int64_t held = 0;
    *out = (struct order){ .dataset = dataset, .n = n, .listed = items };
    out->options.window_bytes = window_bytes;
    out->windows = calloc((size_t)n + 1, sizeof *out->windows);
    if (!out->windows)
        return err_memory(err, "the order of samples");
    for (int64_t i = 0; i < n; i++) {
        int64_t bytes = added_bytes(dataset, items, i);
        if (i == 0 || (held > 0 && bytes > 0 && held + bytes > window_bytes)) {
            out->windows[out->n_windows++].first = i;
            held = 0;
        }
        held += bytes;
    }
    out->windows[out->n_windows].first = n;
    return true;
}

bool order_window(const struct order *order, int32_t window, struct order_item *items,
                  struct err *err)
{
    const struct order_window *w = &order->windows[window];
    int64_t n = w[1].first - w[0].first;
    if (order->listed) {
        memcpy(items, order->listed + w[0].first, (size_t)n * sizeof *items);
        return true;
    }
    struct shuffled *all = malloc((size_t)(n + 1) * sizeof *all), *end = all;
    if (!all)
        return err_memory(err, "the order of samples");
    for (int64_t chunk = w[0].first_chunk; chunk < w[1].first_chunk; chunk++) {
        struct sample_range range = dataset_range(order->dataset, order->chunks[chunk]);
        do {
            for (int64_t i = range.first; i < range.end; i++)
                end = draw_sample(order, i, end);
        } while (continues(order, &range));
    }
    qsort(all, (size_t)n, sizeof *all, by_item_draw);
    for (int64_t i = 0; i < n; i++)
        items[i] = all[i].item;
    free(all);
    return true;
}

void order_free(struct order *order)
{
    free(order->windows);
    free(order->chunks);
    free(order->repeats);
    *order = (struct order){ 0 };
}
