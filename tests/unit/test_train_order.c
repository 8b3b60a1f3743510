/* test_train_order.c: the index of samples and the order of an epoch, on data sets made up without
 * files: the order by its definition, sample by sample; and the memory and time of 43 million
 * patches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "base/text.h"
#include "train/dataset_origin.h"
#include "train/order.h"

#ifdef __SANITIZE_ADDRESS__ /* whose own memory and time are not what is measured */
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

struct cohort {
    int32_t stores, patients;
    int64_t patches, group; /* of each store, about */
    int labels;             /* classes */
    int unlabelled;         /* one of so many patches has no label; 0: none */
    int val, test;          /* one of so many patients; 0: none */
};

static int8_t label_of(const struct cohort *cohort, int32_t store, int64_t patch)
{
    uint64_t mixed = (uint64_t)(patch + 1000003 * (int64_t)store) * UINT64_C(0x9E3779B97F4A7C15);
    if (cohort->unlabelled && (mixed >> 40) % (uint64_t)cohort->unlabelled == 0)
        return PATCH_UNLABELED;
    uint64_t drawn = (mixed >> 20) % 7; /* class 0 is the most frequent */
    return (int8_t)(drawn < (uint64_t)cohort->labels ? drawn : 0);
}

static enum data_side side_of(const struct cohort *cohort, int32_t patient)
{
    if (cohort->val && patient % cohort->val == 1)
        return DATA_VAL;
    return cohort->test && patient % cohort->test == 2 ? DATA_TEST : DATA_TRAIN;
}

static void add_store(struct listing *listing, const struct cohort *cohort, int32_t store,
                      struct patch_list *patches)
{
    char *path = text_format("/data/camelyon16/patches/training/slide_%06d.h5", store);
    char *patient = text_format("patient_%06d", store % cohort->patients);
    int64_t n = cohort->patches - cohort->patches * (store % 5) / 20;
    struct origin *origin = origin_new(listing->dataset, ORIGIN_STORE, path, NULL);
    assert_non_null(origin);
    origin->patient = dataset_add_patient(listing->dataset, patient);
    origin->patch_px = 16;
    origin->n_groups = (n + cohort->group - 1) / cohort->group;
    origin->group_first = calloc((size_t)origin->n_groups + 1, sizeof *origin->group_first);
    assert_non_null(origin->group_first);
    for (int64_t g = 1; g <= origin->n_groups; g++)
        origin->group_first[g] = g * cohort->group < n ? g * cohort->group : n;
    for (int64_t i = 0; i < n; i++)
        patches->items[i].label = label_of(cohort, store, i);
    assert_true(
        origin_add_patches(listing, store, patches, side_of(cohort, origin->patient), NULL));
    free(path);
    free(patient);
}

/* The data set of a cohort; free with dataset_free. */
static struct dataset make_up(const struct cohort *cohort)
{
    struct dataset dataset = { .n_classes = cohort->labels };
    struct listing listing = { .dataset = &dataset, .labels = LABELS_NEEDED };
    struct patch_list patches = { .n = cohort->patches };
    patches.items = calloc((size_t)cohort->patches, sizeof *patches.items);
    assert_non_null(patches.items);
    for (int32_t i = 0; i < cohort->stores; i++)
        add_store(&listing, cohort, i, &patches);
    free(patches.items);
    return dataset;
}

/* A few samples of stores that were added before, as hard negatives are. */
static void add_again(struct dataset *dataset, int32_t store, int64_t step)
{
    struct new_sample new = { .origin = store,
                              .patient = dataset->origins[store].patient,
                              .side = DATA_TRAIN };
    int64_t n = dataset->origins[store].group_first[dataset->origins[store].n_groups];
    for (new.item = step; new.item < n; new.item += step)
        assert_true(dataset_add_sample(dataset, &new, NULL));
}

/* --- what is known of each sample --- */

static void index_gives_back(void **state)
{
    (void)state;
    for (int labels = 1; labels < 300; labels = labels * 3 + 1) {
        struct cohort cohort = { .stores = 7,
                                 .patients = 5,
                                 .patches = 900,
                                 .group = 40,
                                 .labels = labels < 100 ? labels : 100,
                                 .unlabelled = labels % 2 * 3,
                                 .val = 3 };
        struct dataset dataset = make_up(&cohort);
        dataset.n_classes = labels < 100 ? labels : 100;
        int64_t id = 0, counted[100] = { 0 }, count[100];
        for (int32_t s = 0; s < cohort.stores; s++) {
            const struct origin *origin = &dataset.origins[s];
            for (int64_t i = 0; i < origin->group_first[origin->n_groups]; i++) {
                int8_t label = label_of(&cohort, s, i);
                if (label == PATCH_UNLABELED)
                    continue;
                assert_int_equal(dataset_label(&dataset, id), label);
                assert_int_equal(dataset_origin(&dataset, id), s);
                assert_int_equal(dataset_item(&dataset, id), i);
                assert_int_equal(dataset_group(&dataset, id), i / cohort.group);
                assert_ptr_equal(dataset_patient(&dataset, id), dataset.patients[s % 5]);
                assert_int_equal(dataset_side(&dataset, id), side_of(&cohort, s % 5));
                counted[label] += side_of(&cohort, s % 5) == DATA_TRAIN;
                id++;
            }
        }
        assert_int_equal(id, dataset.n_samples);
        dataset_count(&dataset, DATA_TRAIN, count);
        assert_memory_equal(count, counted, (size_t)dataset.n_classes * sizeof *count);
        dataset_free(&dataset);
    }
}

static void ranges_cover_all(void **state)
{
    (void)state;
    struct cohort cohort = { .stores = 6,
                             .patients = 6,
                             .patches = 700,
                             .group = 37,
                             .labels = 2,
                             .unlabelled = 3,
                             .test = 4 };
    struct dataset dataset = make_up(&cohort);
    add_again(&dataset, 3, 11);
    add_again(&dataset, 4, 600);
    for (int64_t at = 0, end; at < dataset.n_samples; at = end) {
        struct sample_range range = dataset_range(&dataset, at);
        assert_true(range.first == at && range.end > at && range.end <= dataset.n_samples);
        for (int64_t i = at; i < range.end; i++) {
            assert_int_equal(dataset_origin(&dataset, i), range.origin);
            assert_int_equal(dataset_group(&dataset, i), range.group);
            assert_int_equal(dataset_side(&dataset, i), range.side);
        }
        end = range.end;
        bool last = end == dataset.n_samples;
        assert_true(last || dataset_group(&dataset, end) != range.group ||
                    dataset_origin(&dataset, end) != range.origin ||
                    dataset_item(&dataset, end) <= dataset_item(&dataset, end - 1));
    }
    dataset_free(&dataset);
}

/* --- the order, by its definition: a list of all samples, sorted --- */

struct listed {
    struct order_item item;
    int32_t window;
    uint64_t draw;
};

struct chunk {
    int64_t first, n, bytes; /* in the list of samples */
    uint64_t draw;
};

struct ranked {
    uint64_t draw;
    int64_t at;
};

static uint64_t draw(const struct order_options *options, const char *what, int64_t index)
{
    struct rng rng = rng_new(options->seed, rng_hash(what) ^ options->epoch, (uint64_t)index);
    return rng_u64(&rng);
}

static int by_chunk(const void *a, const void *b)
{
    const struct chunk *x = a, *y = b;
    return x->draw < y->draw ? -1 : x->draw > y->draw;
}

static int by_rank(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->draw < y->draw ? -1 : x->draw > y->draw;
}

static int by_listed(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;
    if (x->window != y->window)
        return x->window < y->window ? -1 : 1;
    if (x->draw != y->draw)
        return x->draw < y->draw ? -1 : 1;
    return x->item.sample < y->item.sample ? -1 : x->item.sample > y->item.sample;
}

/* Chunks of the side's samples, which are listed in `samples`; returns how many. */
static int64_t list_chunks(const struct dataset *dataset, const struct order_options *options,
                           int64_t *samples, struct chunk *chunks)
{
    int64_t n = 0, n_chunks = 0, before = -1;
    for (int64_t i = 0; i < dataset->n_samples; i++) {
        if (dataset_side(dataset, i) != options->side)
            continue;
        if (before < 0 || dataset_origin(dataset, before) != dataset_origin(dataset, i) ||
            dataset_group(dataset, before) != dataset_group(dataset, i))
            chunks[n_chunks++] = (struct chunk){ .first = n,
                                                 .bytes = dataset_group_bytes(dataset, i),
                                                 .draw = draw(options, "groups", i) };
        chunks[n_chunks - 1].n++;
        samples[n++] = i;
        before = i;
    }
    if (options->shuffle)
        qsort(chunks, (size_t)n_chunks, sizeof *chunks, by_chunk);
    return n_chunks;
}

static int64_t list_copies(const struct dataset *dataset, const struct order_options *options,
                           struct listed *items, int64_t n)
{
    int64_t counts[8], most = 0, all = n;
    struct ranked *ranked = calloc((size_t)n, sizeof *ranked);
    dataset_count(dataset, options->side, counts);
    for (int64_t c = 0; c < dataset->n_classes; c++)
        most = counts[c] > most ? counts[c] : most;
    for (int64_t c = 0; c < dataset->n_classes; c++) {
        int64_t found = 0;
        for (int64_t i = 0; i < n; i++)
            if (dataset_label(dataset, items[i].item.sample) == c)
                ranked[found++] =
                    (struct ranked){ draw(options, "balance", items[i].item.sample), i };
        qsort(ranked, (size_t)found, sizeof *ranked, by_rank);
        for (int64_t i = found; found > 0 && i < most; i++) {
            struct listed copy = items[ranked[i % found].at];
            copy.item.copy = (int32_t)(i / found);
            copy.draw = draw(options, "copies", copy.item.sample + i / found * dataset->n_samples);
            items[all++] = copy;
        }
    }
    free(ranked);
    return all;
}

static struct listed *list_order(const struct dataset *dataset, const struct order_options *options,
                                 int64_t *n)
{
    size_t room = (size_t)dataset->n_samples * 16;
    int64_t *samples = calloc(room, sizeof *samples), held = 0;
    struct chunk *chunks = calloc(room, sizeof *chunks);
    struct listed *items = calloc(room, sizeof *items);
    int64_t n_chunks = list_chunks(dataset, options, samples, chunks);
    int32_t window = 0;
    *n = 0;
    for (int64_t i = 0; i < n_chunks; i++) {
        if (held > 0 && held + chunks[i].bytes > options->window_bytes)
            window++, held = 0;
        held += chunks[i].bytes;
        for (int64_t j = chunks[i].first; j < chunks[i].first + chunks[i].n; j++)
            items[(*n)++] =
                (struct listed){ { samples[j], 0 },
                                 window,
                                 options->shuffle ? draw(options, "samples", samples[j]) : 0 };
    }
    if (options->balanced)
        *n = list_copies(dataset, options, items, *n);
    qsort(items, (size_t)*n, sizeof *items, by_listed);
    free(samples);
    free(chunks);
    return items;
}

static void check_order(const struct dataset *dataset, const struct order_options *options)
{
    struct order order;
    int64_t n = 0;
    struct listed *want = list_order(dataset, options, &n);
    assert_true(order_new(dataset, options, &order, NULL));
    assert_int_equal(order.n, n);
    assert_int_equal(order_count(dataset, options), n);
    assert_int_equal(order.windows[order.n_windows].first, n);
    struct order_item *items = calloc((size_t)n + 1, sizeof *items);
    for (int32_t w = 0; w < order.n_windows; w++) {
        assert_true(order_window(&order, w, items, NULL));
        for (int64_t i = order.windows[w].first; i < order.windows[w + 1].first; i++) {
            const struct order_item *item = &items[i - order.windows[w].first];
            assert_int_equal(want[i].window, w);
            assert_int_equal(want[i].item.sample, item->sample);
            assert_int_equal(want[i].item.copy, item->copy);
        }
    }
    free(items);
    free(want);
    order_free(&order);
}

static void order_is_as_defined(void **state)
{
    (void)state;
    for (int kind = 0; kind < 24; kind++) {
        struct cohort cohort = { .stores = 9,
                                 .patients = 7,
                                 .patches = 200,
                                 .group = 30,
                                 .labels = 2 + kind % 3,
                                 .unlabelled = kind % 2 ? 5 : 0,
                                 .val = 3,
                                 .test = 5 };
        struct dataset dataset = make_up(&cohort);
        if (kind % 5 == 4) { /* the last group continues in the first of these */
            add_again(&dataset, 8, 199);
            add_again(&dataset, 0, 17);
        }
        struct order_options options = { .side = kind % 7 == 3 ? DATA_VAL : DATA_TRAIN,
                                         .shuffle = kind % 4 < 3,
                                         .balanced = kind % 3 < 2,
                                         .seed = (uint64_t)kind,
                                         .epoch = (uint64_t)kind / 2,
                                         .window_bytes = kind % 6 * 50 * 16 * 16 * 3 };
        check_order(&dataset, &options);
        dataset_free(&dataset);
    }
}

/* --- synthetic samples --- */

struct mixture {
    int64_t real[4], synthetic[4]; /* items of every class */
    int64_t most_copies, left_out; /* of synthetic samples */
    uint64_t hash;                 /* of the items in their order */
};

static struct mixture mix(const struct dataset *dataset, const struct order_options *options)
{
    struct mixture out = { .hash = 1 };
    struct order order;
    int64_t *times = calloc((size_t)dataset->n_samples, sizeof *times);
    assert_true(order_new(dataset, options, &order, NULL));
    assert_int_equal(order.n, order_count(dataset, options));
    struct order_item *items = calloc((size_t)order.n + 1, sizeof *items);
    for (int32_t w = 0; w < order.n_windows; w++) {
        assert_true(order_window(&order, w, items, NULL));
        for (int64_t i = 0; i < order.windows[w + 1].first - order.windows[w].first; i++) {
            int64_t sample = items[i].sample;
            bool made = dataset_synthetic(dataset, sample);
            assert_int_equal(dataset_side(dataset, sample), DATA_TRAIN);
            assert_int_equal(items[i].copy < 0 || items[i].copy > 1000, 0);
            (made ? out.synthetic : out.real)[dataset_label(dataset, sample)]++;
            times[sample]++;
            out.hash = (out.hash ^ (uint64_t)(sample * 64 + items[i].copy)) * 0x100000001B3u;
        }
    }
    for (int64_t i = 0; i < dataset->n_samples; i++)
        if (dataset_synthetic(dataset, i)) {
            out.most_copies = times[i] > out.most_copies ? times[i] : out.most_copies;
            out.left_out += times[i] == 0;
        } else if (!options->balanced) {
            assert_int_equal(times[i], dataset_side(dataset, i) == DATA_TRAIN);
        }
    free(items);
    free(times);
    order_free(&order);
    return out;
}

static int64_t sum_of(const int64_t counts[4])
{
    return counts[0] + counts[1] + counts[2] + counts[3];
}

/* The last store is synthetic: its part of an epoch is exact, drawn anew, and balanced by itself.
 */
static void synthetic_share(void **state)
{
    (void)state;
    struct cohort cohort = {
        .stores = 9, .patients = 9, .patches = 200, .group = 30, .labels = 3, .val = 3
    };
    struct dataset dataset = make_up(&cohort);
    for (int64_t i = 0; i < dataset.n_samples; i++)
        dataset.n_synthetic += dataset_origin(&dataset, i) == 8;
    struct order_options options = { .side = DATA_TRAIN, .shuffle = true, .seed = 3 };
    struct mixture once = mix(&dataset, &options);
    int64_t real = sum_of(once.real);
    assert_int_equal(sum_of(once.synthetic), dataset.n_synthetic);
    options.synthetic_share = 0.05; /* fewer than there are */
    struct mixture few = mix(&dataset, &options), again = mix(&dataset, &options);
    assert_int_equal(sum_of(few.real), real);
    assert_int_equal(sum_of(few.synthetic), (int64_t)((double)real * 0.05 / 0.95 + 0.5));
    assert_true(few.most_copies == 1 && few.left_out > 0);
    assert_true(few.hash == again.hash);
    options.epoch = 1;
    assert_true(mix(&dataset, &options).hash != few.hash);
    options.synthetic_share = 0.75; /* more */
    struct mixture many = mix(&dataset, &options);
    assert_int_equal(sum_of(many.synthetic), 3 * real);
    assert_true(many.left_out == 0 && many.most_copies > 1);
    options.balanced = true;
    struct mixture even = mix(&dataset, &options);
    for (int c = 0; c < 3; c++) {
        assert_int_equal(even.real[c], once.real[0]);
        assert_true(llabs(even.synthetic[c] - 3 * once.real[0]) <= 1);
    }
    dataset_free(&dataset);
}

/* --- 43 million patches --- */

static double peak_mb(void)
{
    char line[256];
    long long kb = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "VmHWM:", 6) == 0)
            kb = strtoll(line + 6, NULL, 10);
    if (file)
        fclose(file);
    return (double)kb / 1024;
}

/* The peak from here on. */
static void forget_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (file) {
        fputs("5", file);
        fclose(file);
    }
}

/* Every item of every `step`-th window is of the side, and none comes twice. */
static void check_windows(const struct order *order, int32_t step)
{
    uint64_t *seen = calloc((size_t)order->dataset->n_samples / 64 + 1, sizeof *seen);
    struct order_item *items = NULL;
    for (int32_t w = 0; w < order->n_windows; w += step) {
        int64_t n = order->windows[w + 1].first - order->windows[w].first;
        items = realloc(items, (size_t)n * sizeof *items);
        assert_true(order_window(order, w, items, NULL));
        for (int64_t i = 0; i < n; i++) {
            uint64_t bit = UINT64_C(1) << (items[i].sample % 64);
            assert_int_equal(dataset_side(order->dataset, items[i].sample), DATA_TRAIN);
            if (items[i].copy > 0)
                continue;
            assert_false(seen[items[i].sample / 64] & bit);
            seen[items[i].sample / 64] |= bit;
        }
    }
    free(items);
    free(seen);
}

/* Paper 001 has 43 million patches; here of 400 slides, or of 100,000. */
static void large_index(int32_t stores)
{
    int64_t all = SANITIZED ? 4300000 : 43000000;
    forget_peak();
    double before = peak_mb();
    struct cohort cohort = { .stores = stores,
                             .patients = stores,
                             .patches = all * 10 / 9 / stores,
                             .group = 400,
                             .labels = 2,
                             .unlabelled = 50,
                             .val = 5,
                             .test = 6 };
    struct dataset dataset = make_up(&cohort);
    assert_true(SANITIZED || dataset.n_samples > 42000000);
    for (int balanced = 0; balanced < 2; balanced++) {
        struct order order;
        struct order_options options = { .side = DATA_TRAIN,
                                         .shuffle = true,
                                         .balanced = balanced,
                                         .window_bytes = 1800 * 16 * 16 * 3 };
        assert_true(order_new(&dataset, &options, &order, NULL));
        check_windows(&order, 50);
        order_free(&order);
    }
    double used = peak_mb() - before;
    print_message("%lld patches of %d stores: %.0f MB\n", (long long)dataset.n_samples, stores,
                  used);
    assert_true(SANITIZED || used < 100);
    dataset_free(&dataset);
}

static void index_of_400_slides(void **state)
{
    (void)state;
    large_index(400);
}

static void index_of_100000_slides(void **state)
{
    (void)state;
    large_index(SANITIZED ? 10000 : 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(index_of_400_slides), /* first: later ones would find memory in use */
        cmocka_unit_test(index_of_100000_slides), cmocka_unit_test(index_gives_back),
        cmocka_unit_test(ranges_cover_all),       cmocka_unit_test(order_is_as_defined),
        cmocka_unit_test(synthetic_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
