/* concept_draw.c: which patches are looked at, and in which fold each patient is. A draw depends on
 * the seed and the names of patient, file and patch alone. */
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "explain/concept_study.h"

struct drawn_patch {
    int32_t patient;
    uint64_t draw;
    int64_t sample;
};

static int by_patient(const void *a, const void *b)
{
    const struct drawn_patch *x = a, *y = b;
    if (x->patient != y->patient)
        return x->patient < y->patient ? -1 : 1;
    if (x->draw != y->draw)
        return x->draw < y->draw ? -1 : 1;
    return x->sample < y->sample ? -1 : 1;
}

static int by_sample(const void *a, const void *b)
{
    const struct drawn_patch *x = a, *y = b;
    return x->sample < y->sample ? -1 : x->sample > y->sample;
}

/* The largest number of patches for each patient with which all together are `most` or fewer. */
static int64_t share_of_each(const int64_t *counts, int32_t n, int64_t most)
{
    int64_t low = 1, high = most;
    while (low < high) {
        int64_t middle = (low + high + 1) / 2, sum = 0;
        for (int32_t i = 0; i < n; i++)
            sum += counts[i] < middle ? counts[i] : middle;
        if (sum <= most)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* All samples, with their draws; counts [n_patients]. */
static struct drawn_patch *list_all(const struct dataset *dataset, uint64_t seed, int64_t *counts)
{
    struct drawn_patch *all = malloc((size_t)dataset->n_samples * sizeof *all + 1);
    struct sample_range range;
    for (int64_t first = 0; all && first < dataset->n_samples; first = range.end) {
        range = dataset_range(dataset, first);
        const char *path = dataset_origin_path(dataset, first), *slash = strrchr(path, '/');
        uint64_t stream = rng_hash(slash ? slash + 1 : path) ^ rng_hash("patches");
        for (int64_t i = range.first; i < range.end; i++) {
            struct rng rng = rng_new(seed, stream, (uint64_t)dataset_item(dataset, i));
            all[i] = (struct drawn_patch){ range.patient, rng_u64(&rng), i };
        }
        counts[range.patient] += range.end - range.first;
    }
    return all;
}

/* The first `each` of every patient, in the order of samples. Returns how many. */
static int64_t keep_some(struct drawn_patch *all, int64_t n, int64_t each)
{
    int64_t kept = 0;
    qsort(all, (size_t)n, sizeof *all, by_patient);
    for (int64_t i = 0, of_patient = 0; i < n; i++) {
        of_patient = i > 0 && all[i].patient == all[i - 1].patient ? of_patient + 1 : 0;
        if (of_patient < each)
            all[kept++] = all[i];
    }
    qsort(all, (size_t)kept, sizeof *all, by_sample);
    return kept;
}

static bool keep_drawn(struct concept_study *study, const struct drawn_patch *drawn, int64_t n,
                       struct err *err)
{
    const struct dataset *dataset = &study->source.dataset;
    study->samples = malloc((size_t)n * sizeof *study->samples + 1);
    study->names = calloc((size_t)n + 1, sizeof *study->names);
    study->patient = malloc((size_t)n * sizeof *study->patient + 1);
    study->fold = malloc((size_t)n * sizeof *study->fold + 1);
    if (!study->samples || !study->names || !study->patient || !study->fold)
        return err_memory(err, "the patches");
    study->n = n;
    for (int64_t i = 0; i < n; i++) {
        study->samples[i] = drawn[i].sample;
        study->patient[i] = drawn[i].patient;
        study->names[i] = dataset_sample_name(dataset, drawn[i].sample);
        if (!study->names[i])
            return err_memory(err, "the patches");
    }
    return true;
}

static bool enough_patients(const struct concept_study *study, struct err *err)
{
    const struct dataset *dataset = &study->source.dataset;
    int folds = study->request->folds, known = 0;
    for (int32_t i = 0; i < dataset->n_patients; i++)
        known += dataset->patients[i][0] != '\0';
    if (known < dataset->n_patients)
        return err_set(err, ERR_USAGE,
                       "%s: the name contains no patient, and folds are made of patients; pass "
                       "--patient with a regular expression whose first group is the patient, "
                       "e.g. '^([^_]+)_'",
                       study->names[0]);
    if (known >= folds)
        return true;
    return err_set(err, ERR_USAGE,
                   "%d folds need at least %d patients, but the patches are of %d; give patches of "
                   "more patients%s",
                   folds, folds, known, known >= 2 ? ", or pass --folds 2" : "");
}

static bool deal_folds(struct concept_study *study, struct err *err)
{
    const struct dataset *dataset = &study->source.dataset;
    int64_t *counts = calloc((size_t)dataset->n_patients + 1, sizeof *counts);
    int *fold = calloc((size_t)dataset->n_patients + 1, sizeof *fold);
    bool ok = (counts && fold) || err_memory(err, "patients");
    for (int64_t i = 0; ok && i < study->n; i++)
        counts[study->patient[i]]++;
    ok = ok && concept_folds(counts, dataset->patients, dataset->n_patients, study->request->folds,
                             study->request->seed, fold, err);
    for (int64_t i = 0; ok && i < study->n; i++)
        study->fold[i] = fold[study->patient[i]];
    free(counts);
    free(fold);
    return ok;
}

bool concept_draw(struct concept_study *study, struct err *err)
{
    const struct dataset *dataset = &study->source.dataset;
    int64_t *counts = calloc((size_t)dataset->n_patients + 1, sizeof *counts);
    struct drawn_patch *all = counts ? list_all(dataset, study->request->seed, counts) : NULL;
    bool ok = all || err_memory(err, "the patches");
    if (ok) {
        int64_t each = share_of_each(counts, dataset->n_patients, study->request->most_patches);
        int64_t kept = keep_some(all, dataset->n_samples, each);
        ok = keep_drawn(study, all, kept, err) && enough_patients(study, err) &&
             deal_folds(study, err);
    }
    free(all);
    free(counts);
    return ok;
}
