/* dataset.c: patients, sides and what is found (dataset.h). */
#include "train/dataset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/array.h"
#include "base/csv.h"
#include "base/identity.h"
#include "base/rng.h"
#include "train/dataset_origin.h"
#include "train/dataset_recordings.h"
#include "base/text.h"

/* Patients by name: open addressing over indices into dataset->patients. */
struct patient_table {
    int32_t *slots; /* -1: free */
    size_t n_slots; /* a power of two */
};

static size_t slot_of(const struct dataset *dataset, const char *name)
{
    const struct patient_table *table = dataset->lookup;
    size_t slot = rng_hash(name) & (table->n_slots - 1);
    while (table->slots[slot] >= 0 && strcmp(dataset->patients[table->slots[slot]], name) != 0)
        slot = (slot + 1) & (table->n_slots - 1);
    return slot;
}

static bool grow_table(struct dataset *dataset)
{
    struct patient_table *table = dataset->lookup;
    size_t n_slots = table->n_slots ? 2 * table->n_slots : 256;
    int32_t *slots = malloc(n_slots * sizeof *slots);
    char **patients = realloc(dataset->patients, n_slots * sizeof *patients);
    if (patients)
        dataset->patients = patients;
    if (!slots || !patients) {
        free(slots);
        return false;
    }
    free(table->slots);
    *table = (struct patient_table){ .slots = slots, .n_slots = n_slots };
    for (size_t i = 0; i < n_slots; i++)
        slots[i] = -1;
    for (int32_t i = 0; i < dataset->n_patients; i++)
        slots[slot_of(dataset, dataset->patients[i])] = i;
    return true;
}

int32_t dataset_add_patient(struct dataset *dataset, const char *name)
{
    if (!dataset->lookup && !(dataset->lookup = calloc(1, sizeof *dataset->lookup)))
        return -1;
    if (2 * (size_t)dataset->n_patients >= dataset->lookup->n_slots && !grow_table(dataset))
        return -1;
    size_t slot = slot_of(dataset, name);
    if (dataset->lookup->slots[slot] >= 0)
        return dataset->lookup->slots[slot];
    char *copy = strdup(name);
    if (!copy)
        return -1;
    dataset->patients[dataset->n_patients] = copy;
    return dataset->lookup->slots[slot] = dataset->n_patients++;
}

static void free_lookup(struct dataset *dataset)
{
    if (dataset->lookup)
        free(dataset->lookup->slots);
    free(dataset->lookup);
    dataset->lookup = NULL;
}

void dataset_free(struct dataset *dataset)
{
    for (int32_t i = 0; i < dataset->n_origins; i++)
        origin_free(&dataset->origins[i]);
    for (int32_t i = 0; i < dataset->n_patients; i++)
        free(dataset->patients[i]);
    free_lookup(dataset);
    free(dataset->origins);
    dataset_free_index(dataset);
    dataset_free_texts(dataset);
    dataset_free_recordings(dataset);
    free(dataset->patients);
    *dataset = (struct dataset){ 0 };
}

void dataset_put_sample(const struct dataset *dataset, int64_t sample, FILE *stream)
{
    char *name = dataset_sample_name(dataset, sample);
    csv_write_cell(stream, name ? name : "");
    fputc(',', stream);
    csv_write_cell(stream, dataset_patient(dataset, sample));
    free(name);
}

static uint64_t hash_size(uint64_t hash, const char *path)
{
    struct stat status;
    int64_t bytes = path && stat(path, &status) == 0 ? (int64_t)status.st_size : -1;
    return identity_hash(hash, &bytes, sizeof bytes);
}

/* Stores and tars by their size and a sample of their bytes, single images by their size. */
static uint64_t hash_origin(const struct origin *origin, bool label_images)
{
    struct identity identity = { 0 };
    if (origin->kind == ORIGIN_SLIDES)
        return origin_hash_slides(origin);
    if (origin->kind != ORIGIN_FOLDER) {
        identity_of_sample(origin->path, &identity, NULL);
        return identity.hash ^ (uint64_t)identity.bytes;
    }
    uint64_t hash = IDENTITY_HASH_BEGIN;
    for (size_t i = 0; i < origin->n_files; i++) {
        char *path = text_format("%s%s", origin->path, origin->files[i]);
        char *labels = path && label_images ? label_image_of(path, NULL) : NULL;
        hash = hash_size(hash, path);
        if (label_images)
            hash = hash_size(hash, labels);
        free(path);
        free(labels);
    }
    return hash;
}

uint64_t dataset_hash(const struct dataset *dataset)
{
    uint64_t hash = UINT64_C(0x9E3779B97F4A7C15);
    for (int32_t i = 0; i < dataset->n_origins; i++) {
        struct rng rng = rng_new(hash, hash_origin(&dataset->origins[i], dataset->label_images), 0);
        hash = rng_u64(&rng);
    }
    for (int64_t s = 0; s < dataset->n_spans; s++) {
        const struct sample_span *span = &dataset->spans[s];
        uint64_t patient = rng_hash(dataset->patients[span->patient]);
        for (int64_t i = span->first; i < dataset_span_end(dataset, s); i++) {
            struct rng rng =
                rng_new(hash, patient,
                        (uint64_t)dataset_span_item(span, i) * 64 +
                            (uint64_t)dataset_label(dataset, i) * 4 + (uint64_t)span->side);
            hash = rng_u64(&rng);
        }
    }
    if (dataset->recordings)
        hash = identity_hash(hash, &dataset->recordings->hash, sizeof dataset->recordings->hash);
    if (dataset->targets)
        hash = identity_hash(hash, dataset->targets,
                             (size_t)dataset->n_samples * sizeof *dataset->targets);
    return hash;
}

/* --- sides --- */

struct drawn_patient {
    int32_t patient;
    bool drawn;  /* has samples that are not kept for the test */
    int stratum; /* patients of the same are drawn together */
    uint64_t draw;
};

static int by_draw(const void *a, const void *b)
{
    const struct drawn_patient *x = a, *y = b;
    if (x->drawn != y->drawn)
        return x->drawn ? -1 : 1;
    if (x->stratum != y->stratum)
        return x->stratum - y->stratum;
    if (x->draw != y->draw)
        return x->draw < y->draw ? -1 : 1;
    return x->patient - y->patient;
}

/* The rarest class that each patient has, counted in patients. With two classes: whether there is
 * any but the first. */
static bool find_strata(const struct dataset *dataset, struct drawn_patient *drawn)
{
    size_t classes = (size_t)dataset->n_classes, patients = (size_t)dataset->n_patients;
    bool *has = calloc(patients * classes + 1, sizeof *has);
    int32_t *count = calloc(classes + 1, sizeof *count);
    for (int64_t s = 0; has && count && s < dataset->n_spans; s++) {
        const struct sample_span *span = &dataset->spans[s];
        for (int64_t i = span->first; span->side != DATA_TEST && i < dataset_span_end(dataset, s);
             i++)
            if (dataset_label(dataset, i) >= 0)
                has[(size_t)span->patient * classes + (size_t)dataset_label(dataset, i)] = true;
    }
    for (size_t i = 0; has && count && i < patients * classes; i++)
        count[i % classes] += has[i];
    for (size_t i = 0; has && count && i < patients * classes; i++) {
        int class = (int)(i % classes), *stratum = &drawn[i / classes].stratum;
        bool rarer = classes == 2 || class == 0 || !has[i - (size_t)(class - *stratum)] ||
                     count[class] <= count[*stratum];
        if (has[i] && rarer)
            *stratum = class;
    }
    bool ok = has && count;
    free(has);
    free(count);
    return ok;
}

/* Patients that are drawn, at the front, in the order of their draw; *n of them. NULL if no
 * memory. A draw depends on the seed and the patient's name alone. */
static struct drawn_patient *draw_patients(const struct dataset *dataset, uint64_t seed, int32_t *n)
{
    struct drawn_patient *drawn = calloc((size_t)dataset->n_patients + 1, sizeof *drawn);
    *n = 0;
    if (!drawn)
        return NULL;
    for (int32_t i = 0; i < dataset->n_patients; i++) {
        struct rng rng = rng_new(seed, rng_hash("split"), rng_hash(dataset->patients[i]));
        drawn[i] = (struct drawn_patient){ .patient = i, .draw = rng_u64(&rng) };
    }
    for (int64_t s = 0; s < dataset->n_spans; s++) {
        const struct sample_span *span = &dataset->spans[s];
        if (span->side == DATA_TEST)
            continue;
        drawn[span->patient].drawn = true;
    }
    if (!find_strata(dataset, drawn)) {
        free(drawn);
        return NULL;
    }
    qsort(drawn, (size_t)dataset->n_patients, sizeof *drawn, by_draw);
    while (*n < dataset->n_patients && drawn[*n].drawn)
        ++*n;
    return drawn;
}

/* The sides of n drawn patients: a fraction of those of each stratum for validation. */
static void draw_fraction(const struct drawn_patient *drawn, int32_t n, double fraction,
                          enum data_side *side)
{
    for (int32_t first = 0, end; first < n; first = end) {
        for (end = first; end < n && drawn[end].stratum == drawn[first].stratum;)
            end++;
        int32_t val = (int32_t)lround(fraction * (end - first));
        val = val < 1 && end - first > 1 ? 1 : val;
        val = val == end - first ? val - 1 : val;
        for (int32_t i = 0; i < end - first; i++)
            side[drawn[first + i].patient] = i < val ? DATA_VAL : DATA_TRAIN;
    }
}

/* The same for a fold: patients are dealt one by one, stratum by stratum. */
static bool deal_folds(const struct train_config *config, const struct drawn_patient *drawn,
                       int32_t n, enum data_side *side, struct err *err)
{
    int64_t folds = config->data.folds, fold = config->data.fold;
    if (folds < 2 || fold > folds)
        return err_set(err, ERR_USAGE,
                       "data.fold: %lld of %lld folds; data.folds must be 2 or more, and data.fold "
                       "at most that",
                       (long long)fold, (long long)folds);
    if (n < folds)
        return err_set(err, ERR_MISSING,
                       "data.folds: %lld folds need as many patients, but there are %d; use fewer",
                       (long long)folds, n);
    for (int32_t i = 0; i < n; i++)
        side[drawn[i].patient] = i % folds == fold - 1 ? DATA_VAL : DATA_TRAIN;
    return true;
}

/* Patients with a rare class and the others are drawn apart, so that both sides have it. What is
 * kept for the test stays there. */
static bool split_patients(struct dataset *dataset, const struct train_config *config,
                           struct err *err)
{
    int32_t n = 0;
    struct drawn_patient *drawn = draw_patients(dataset, (uint64_t)config->seed, &n);
    enum data_side *side = calloc((size_t)dataset->n_patients + 1, sizeof *side);
    bool ok = (drawn && side) || err_memory(err, "the split");
    if (ok && n < 2)
        ok = err_set(
            err, ERR_MISSING,
            "all data%s come from one patient (%s), but validation needs another; set data.val",
            n < dataset->n_patients ? ", except the test data," : "",
            n ? dataset->patients[drawn[0].patient] : "none");
    if (ok && config->data.folds > 0)
        ok = deal_folds(config, drawn, n, side, err);
    else if (ok)
        draw_fraction(drawn, n, config->data.val_fraction, side);
    for (int64_t i = 0; ok && i < dataset->n_spans; i++)
        if (dataset->spans[i].side != DATA_TEST)
            dataset->spans[i].side = side[dataset->spans[i].patient];
    free(drawn);
    free(side);
    return ok;
}

/* The sides that a patient with these bits is on, in words. */
static const char *sides_of(unsigned char bits)
{
    static const char *const names[8] = { [3] = "both training and validation",
                                          [5] = "both training and test",
                                          [6] = "both validation and test",
                                          [7] = "training, validation and test" };
    return names[bits];
}

/* No patient on two sides. */
static bool check_leak(const struct dataset *dataset, struct err *err)
{
    unsigned char *sides = calloc((size_t)dataset->n_patients + 1, 1);
    if (!sides)
        return err_memory(err, "the split");
    for (int64_t i = 0; i < dataset->n_spans; i++)
        if (dataset->spans[i].side != DATA_NONE)
            sides[dataset->spans[i].patient] |= (unsigned char)(1 << dataset->spans[i].side);
    int32_t both = 0, first = -1;
    for (int32_t i = 0; i < dataset->n_patients; i++)
        if (sides_of(sides[i])) {
            first = first < 0 ? i : first;
            both++;
        }
    const char *where = both ? sides_of(sides[first]) : "";
    free(sides);
    if (both == 0)
        return true;
    return err_set(err, ERR_FORMAT,
                   "%d of %d patients are in %s, e.g. '%s': results measured there would not hold "
                   "for new patients; use different patients in data.val and data.test, or omit "
                   "data.val to split by patient",
                   both, dataset->n_patients, where, dataset->patients[first]);
}

/* Samples of every class, or, where classes do not count, at least one. */
static bool check_classes(const struct dataset *dataset, const struct train_config *config,
                          struct err *err)
{
    int64_t *count = calloc((size_t)dataset->n_classes, sizeof *count);
    if (!count)
        return err_memory(err, "the data set");
    bool ok = true, labelled = config->truth == TRUTH_LABELS;
    int64_t n = dataset_count(dataset, DATA_TRAIN, count);
    if (n == 0 && !labelled)
        ok = err_set(err, ERR_MISSING,
                     "data.train: no patches to train on; the stores are those of slides without "
                     "tissue, or all their patches are for validation or testing");
    for (int64_t c = 0; ok && labelled && c < dataset->n_classes; c++)
        if (count[c] == 0)
            ok = err_set(err, ERR_MISSING,
                         "class '%s' has no training sample (of %lld in all); add some, or remove "
                         "it from classes",
                         config->classes.items[c], (long long)n);
    free(count);
    return ok;
}

/* --- opening --- */

static bool compile_patterns(struct listing *listing, struct err *err)
{
    static const char *const usual[] = { "^(.+)_idx[0-9]+_x[0-9]+_y[0-9]+",
                                         "^(.+)_[0-9]+_[0-9]+[.]" };
    const char *given = listing->config->data.patient;
    int wanted = given[0] ? 1 : 2;
    for (int i = 0; i < wanted; i++) {
        const char *pattern = given[0] ? given : usual[i];
        regex_t *regex = &listing->patients[i];
        int code = regcomp(regex, pattern, REG_EXTENDED);
        if (code != 0) {
            char why[128];
            regerror(code, regex, why, sizeof why);
            return err_set(err, ERR_USAGE, "data.patient: '%s': %s", pattern, why);
        }
        listing->n_patterns++;
        if (regex->re_nsub < 1)
            return err_set(
                err, ERR_USAGE,
                "data.patient: '%s' has no group; put ( ) around the part that names the patient",
                pattern);
    }
    return true;
}

static bool add_all(struct listing *listing, const char *key, const struct texts *paths,
                    enum data_side side, struct err *err)
{
    listing->key = key;
    listing->side = side;
    for (size_t i = 0; i < paths->n; i++)
        if (!origin_add(listing, paths->items[i], err))
            return false;
    return true;
}

/* Frees what only the listing needed; the data set as well, if it failed. */
static bool end_listing(struct listing *listing, bool ok)
{
    for (int i = 0; i < listing->n_patterns; i++)
        regfree(&listing->patients[i]);
    free_lookup(listing->dataset);
    if (!ok)
        dataset_free(listing->dataset);
    return ok;
}

bool dataset_open(const struct train_config *config, struct dataset *out, struct err *err)
{
    *out = (struct dataset){ .n_classes = (int64_t)config->classes.n,
                             .label_images = config->truth == TRUTH_LABEL_IMAGES };
    static const enum label_use labels[] = { [TRUTH_LABELS] = LABELS_NEEDED,
                                             [TRUTH_NONE] = LABELS_IGNORED,
                                             [TRUTH_TARGETS] = LABELS_TARGETS,
                                             [TRUTH_LABEL_IMAGES] = LABELS_IMAGES };
    bool labelled = config->truth == TRUTH_LABELS;
    struct listing listing = { .dataset = out,
                               .config = config,
                               .labels = labels[config->truth],
                               .synthetic = SYNTHETIC_REFUSED };
    const struct texts *train = config_whole(config) ? &config->data.slides : &config->data.train;
    if (train->n == 0)
        return err_set(
            err, ERR_USAGE,
            "data.train is empty; list patch stores, folders or tar files there, or slides "
            "in data.slides");
    if (config->data.folds > 0 && (config->data.val.n > 0 || config->data.split != SPLIT_PATIENT))
        return err_set(err, ERR_USAGE,
                       "data.folds: validation is already chosen by data.val or data.split; omit "
                       "one of them");
    bool ok = compile_patterns(&listing, err) &&
              add_all(&listing, "data.train", train, DATA_TRAIN, err) &&
              add_all(&listing, "data.val", &config->data.val, DATA_VAL, err) &&
              add_all(&listing, "data.test", &config->data.test, DATA_TEST, err);
    bool split = config->data.val.n == 0 && config->data.split == SPLIT_PATIENT;
    if (ok && split && !config_private(config)) /* nothing private is used for validation */
        ok = split_patients(out, config, err);
    if (ok && labelled && config->data.hard_negatives[0])
        ok = dataset_add_hard(&listing, config->data.hard_negatives, err);
    ok = ok && dataset_add_synthetic(&listing, err) && check_leak(out, err) &&
         check_classes(out, config, err) &&
         (!config_texts(config) || dataset_open_texts(out, config, err)) &&
         (!config_recordings(config) || dataset_open_recordings(out, config, err));
    return end_listing(&listing, ok);
}

bool dataset_open_any(const struct train_config *config, char *const *paths, size_t n_paths,
                      struct dataset *out, struct err *err)
{
    *out = (struct dataset){ .n_classes = (int64_t)config->classes.n };
    struct listing listing = { .dataset = out, .config = config, .labels = LABELS_OPTIONAL };
    struct texts texts = { (char **)paths, n_paths };
    bool ok = compile_patterns(&listing, err) && add_all(&listing, NULL, &texts, DATA_TRAIN, err);
    return end_listing(&listing, ok);
}

bool dataset_open_normal(const struct train_config *config, struct dataset *out, struct err *err)
{
    *out = (struct dataset){ .n_classes = (int64_t)config->classes.n };
    struct listing listing = { .dataset = out, .config = config, .labels = LABELS_NORMAL };
    bool ok = compile_patterns(&listing, err) &&
              add_all(&listing, "mine.stores", &config->mine.stores, DATA_TRAIN, err);
    for (int32_t i = 0; ok && i < out->n_origins; i++)
        if (out->origins[i].kind != ORIGIN_STORE)
            ok = err_set(err, ERR_USAGE, "mine.stores: %s is not a patch store",
                         out->origins[i].path);
    if (ok && out->n_samples == 0)
        ok = err_set(err, ERR_MISSING,
                     "mine.stores: no patches of normal tissue; a patch is normal by an "
                     "annotation, or by the label of its slide in the slide list");
    return end_listing(&listing, ok);
}
