/* dataset_agree.c: what all stores of a data set must have in common (dataset_origin.h):
 * resolution, stains, the number to be learnt, and classes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/names.h"
#include "patch/extract.h"
#include "train/dataset_origin.h"

#define MPP_TOLERANCE 0.2 /* as in predict */
#define NO_CLASS 126      /* a class of the store that the config does not have */

/* A network learns one resolution: that of the first store that states it. */
static bool note_mpp(const struct listing *listing, const struct origin *origin, double mpp,
                     struct err *err)
{
    const struct train_config *config = listing->config;
    struct dataset *dataset = listing->dataset;
    int64_t resized = config->data.resize_px;
    bool given = config->data.spacing_um_px > 0 && !config->distill.teacher[0];
    double learnt = resized > 0 ? mpp * (double)origin->patch_px / (double)resized : mpp;
    if (mpp <= 0)
        return true;
    if (dataset->mpp <= 0)
        dataset->mpp = mpp, dataset->learnt_mpp = learnt;
    return given || fabs(learnt / dataset->learnt_mpp - 1) <= MPP_TOLERANCE ||
           err_set(err, ERR_USAGE,
                   "%s: patches have %g um/px%s, but the stores before it have %g; extract all "
                   "with the same --mpp, or set data.spacing_um_px to the correct value",
                   origin->path, learnt, resized > 0 ? " when resized" : "", dataset->learnt_mpp);
}

/* And one meaning of colours. Before note_stain, which knows the first store. */
static bool note_icc(struct dataset *dataset, const struct origin *origin,
                     const struct store_facts *facts, struct err *err)
{
    bool own = extract_used_icc(facts->options);
    if (!dataset->has_stores)
        dataset->icc = own;
    return own == dataset->icc ||
           err_set(err, ERR_USAGE,
                   "%s: extracted %s --icc, but the stores before it %s; extract all the same way",
                   origin->path, own ? "with" : "without", own ? "without" : "with");
}

/* A network learns one look of stains: that of the first store. */
static bool note_stain(struct dataset *dataset, const struct origin *origin,
                       const struct store_facts *facts, struct err *err)
{
    struct stain_fit own = stain_of_store(facts);
    if (!dataset->has_stores)
        dataset->stain = own;
    dataset->has_stores = true;
    if (stain_same_target(&own, &dataset->stain))
        return true;
    return err_set(
        err, ERR_USAGE,
        "%s: extracted with --stain %s, but the stores before it with %s%s; extract all with "
        "the same --stain and --template",
        origin->path, stain_method_names[own.method], stain_method_names[dataset->stain.method],
        own.method == dataset->stain.method ? " and another --template" : "");
}

/* A network learns one number: that of the first store. */
static bool note_target(const struct listing *listing, const struct origin *origin, struct err *err)
{
    struct dataset *dataset = listing->dataset;
    struct store_target own = store_target(origin->store);
    if (listing->labels != LABELS_TARGETS)
        return true;
    if (!own.name)
        return err_set(err, ERR_USAGE,
                       "%s: has no targets to be learnt by regression; extract it with --target",
                       origin->path);
    if (!dataset->target_name) {
        dataset->target_name = strdup(own.name);
        dataset->target_unit = strdup(own.unit);
        return (dataset->target_name && dataset->target_unit) || err_memory(err, origin->path);
    }
    return strcmp(own.name, dataset->target_name) == 0 ||
           err_set(err, ERR_USAGE,
                   "%s: its target is '%s', but that of the stores before it is '%s'; extract all "
                   "with the same --target",
                   origin->path, own.name, dataset->target_name);
}

static const char *const plain[] = { "normal", "tumor" };

static bool same_names(const char *const *a, size_t n_a, const struct texts *b)
{
    bool same = n_a == b->n;
    for (size_t i = 0; same && i < n_a; i++)
        same = strcmp(a[i], b->items[i]) == 0;
    return same;
}

/* Where the config does not say what the classes are, they are those of the first store, and then
 * of all. */
static bool check_classes(const struct listing *listing, const struct origin *origin,
                          const struct class_names *own, struct err *err)
{
    const struct train_config *config = listing->config;
    const char *const *names = own->n > 0 ? (const char *const *)own->items : plain;
    size_t n = own->n > 0 ? (size_t)own->n : 2;
    char these[200], those[200];
    if (listing->labels != LABELS_NEEDED || !config->classes_from ||
        same_names(names, n, &config->classes))
        return true;
    return err_set(err, ERR_USAGE,
                   "%.250s: its classes are %s, but those of %.250s are %s; extract both with the "
                   "same --class-map, or set classes in the config",
                   origin->path, names_join(names, n, these, sizeof these), config->classes_from,
                   names_join((const char *const *)config->classes.items, config->classes.n, those,
                              sizeof those));
}

/* Labels of a store that names its classes are those of the config by name. */
static bool note_classes(struct listing *listing, const struct origin *origin, struct err *err)
{
    const struct class_names *own = store_classes(origin->store);
    const struct texts *classes = &listing->config->classes;
    listing->n_store_classes = own->n;
    for (int i = 0; i < own->n; i++) {
        size_t c = 0;
        while (c < classes->n && strcmp(classes->items[c], own->items[i]) != 0)
            c++;
        listing->store_classes[i] = (int8_t)(c < classes->n ? c : NO_CLASS);
    }
    return check_classes(listing, origin, own, err);
}

int32_t label_of_store(const struct listing *listing, int32_t label)
{
    if (label < 0 || label >= listing->n_store_classes)
        return label;
    int32_t place = listing->store_classes[label];
    return place == NO_CLASS && listing->labels == LABELS_OPTIONAL ? PATCH_UNLABELED : place;
}

bool refuse_label(const struct listing *listing, const struct origin *origin, int64_t patch,
                  int32_t label, struct err *err)
{
    if (label >= 0 && label < listing->n_store_classes)
        return err_set(err, ERR_FORMAT,
                       "%s: patch %lld is of class '%s', which is not one of the classes in the "
                       "config; add it, or omit classes to use those of the stores",
                       origin->path, (long long)patch, store_classes(origin->store)->items[label]);
    return err_set(err, ERR_FORMAT, "%s: patch %lld has label %d, but classes has only %lld names",
                   origin->path, (long long)patch, label, (long long)listing->dataset->n_classes);
}

bool origin_agrees(struct listing *listing, const struct origin *origin, struct err *err)
{
    const struct store_facts *facts = store_facts(origin->store);
    /* synthetic patches look as what the generator learnt from */
    return note_mpp(listing, origin, facts->mpp, err) &&
           (origin->n_groups == 0 || listing->synthetic == SYNTHETIC_ONLY ||
            (note_icc(listing->dataset, origin, facts, err) &&
             note_stain(listing->dataset, origin, facts, err))) &&
           note_target(listing, origin, err) && note_classes(listing, origin, err);
}
