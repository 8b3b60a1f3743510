/* dataset_slides.c: slide lists -> samples, each of which is a whole slide with the label of its
 * line (dataset.h). */
#include <stdlib.h>
#include <string.h>
#include "base/names.h"
#include "patch/label.h"
#include "slide/slide_identity.h"
#include "train/dataset_origin.h"

static bool read_list(const struct train_config *config, const char *path, struct slide_list *out,
                      struct err *err)
{
    char *operand = (char *)path;
    const char *column = config->data.label;
    if (!slide_list_read(&operand, 1, out, err))
        return false;
    bool ok = out->n_headers > 0 ||
              err_set(err, ERR_USAGE,
                      "data.slides: %s: not a slide list; labels are in a CSV with the columns "
                      "slide and %s",
                      path, column);
    ok = ok && slide_list_check_column(out, "data.label", column, err) &&
         slide_list_label_by(out, column, err);
    if (!ok)
        slide_list_free(out);
    return ok;
}

/* A class by its name or number, or what slide lists call normal and tumor; -1: none. */
static int32_t class_of_label(const struct train_config *config, const char *label)
{
    int8_t known = PATCH_UNLABELED;
    for (size_t i = 0; i < config->classes.n; i++)
        if (strcmp(config->classes.items[i], label) == 0)
            return (int32_t)i;
    char *end = NULL;
    long number = strtol(label, &end, 10);
    if (end != label && !*end)
        return number >= 0 && number < (long)config->classes.n ? (int32_t)number : -1;
    return config_default_classes(config) && label_of_text(label, NULL, &known) ? known : -1;
}

static bool class_of_entry(const struct train_config *config, const struct slide_entry *entry,
                           int32_t *out, struct err *err)
{
    char list[300];
    *out = class_of_label(config, entry->label);
    if (*out >= 0)
        return true;
    if (!entry->label[0])
        return err_set(err, ERR_FORMAT,
                       "%s: the slide '%s' has no label in the column '%s'; add it, or remove the "
                       "line",
                       entry->origin, entry->name, config->data.label);
    return err_set(err, ERR_FORMAT, "%s: '%s' is not one of the classes %s; add it to classes",
                   entry->origin, entry->label,
                   names_join((const char *const *)config->classes.items, config->classes.n, list,
                              sizeof list));
}

static bool number_of_entry(const struct train_config *config, const struct slide_entry *entry,
                            float *out, struct err *err)
{
    double value;
    bool given;
    if (!slide_entry_number(entry, config->data.label, &value, &given, err))
        return false;
    *out = (float)value;
    return given || err_set(err, ERR_FORMAT,
                            "%s: the slide '%s' has no number in the column '%s'; add it, or "
                            "remove the line",
                            entry->origin, entry->name, config->data.label);
}

/* The side that the list names, where that counts; see data.split. */
static bool side_of_entry(const struct listing *listing, const struct slide_entry *entry,
                          enum data_side *out, struct err *err)
{
    const struct train_config *config = listing->config;
    enum data_side said = side_of_split(entry->split);
    bool splits = config->data.val.n == 0 && listing->side == DATA_TRAIN;
    *out = listing->side;
    if (!splits)
        return true;
    if (config->data.split == SPLIT_ATTRIBUTE && !entry->split[0])
        return err_set(err, ERR_MISSING,
                       "%s: the slide '%s' has no split; fill the column split, or use data.split: "
                       "patient",
                       entry->origin, entry->name);
    if (config->data.split == SPLIT_ATTRIBUTE || (entry->split[0] && said == DATA_TEST))
        *out = said;
    return true;
}

static bool add_slide(struct listing *listing, const struct slide_entry *entry, int64_t item,
                      struct err *err)
{
    struct dataset *dataset = listing->dataset;
    struct new_sample new = { .origin = dataset->n_origins - 1, .item = item };
    bool numbers = listing->labels == LABELS_TARGETS;
    if (!(numbers ? number_of_entry(listing->config, entry, &new.target, err)
                  : class_of_entry(listing->config, entry, &new.label, err)) ||
        !side_of_entry(listing, entry, &new.side, err))
        return false;
    new.patient = dataset_add_patient(dataset, entry->patient[0] ? entry->patient : entry->name);
    return new.patient >= 0 ? dataset_add_sample(dataset, &new, err)
                            : err_memory(err, "the data set");
}

bool origin_add_slides(struct listing *listing, const char *path, struct err *err)
{
    struct dataset *dataset = listing->dataset;
    struct origin *origin = origin_new(dataset, ORIGIN_SLIDES, path, err);
    if (!origin || !read_list(listing->config, path, &origin->slides, err))
        return false;
    if (listing->labels == LABELS_TARGETS && !dataset->target_name) {
        dataset->target_name = strdup(listing->config->data.label);
        dataset->target_unit = strdup("");
        if (!dataset->target_name || !dataset->target_unit)
            return err_memory(err, "the data set");
    }
    for (size_t i = 0; i < origin->slides.n; i++)
        if (!add_slide(listing, &origin->slides.entries[i], (int64_t)i, err))
            return false;
    return true;
}

const struct slide_entry *dataset_slide(const struct dataset *dataset, int64_t sample)
{
    const struct origin *origin = &dataset->origins[dataset_origin(dataset, sample)];
    return origin->kind == ORIGIN_SLIDES ? &origin->slides.entries[dataset_item(dataset, sample)]
                                         : NULL;
}

uint64_t origin_hash_slides(const struct origin *origin)
{
    uint64_t hash = IDENTITY_HASH_BEGIN;
    for (size_t i = 0; i < origin->slides.n; i++) {
        const struct slide_entry *entry = &origin->slides.entries[i];
        struct identity identity = { 0 }; /* one that cannot be read fails when it is used */
        slide_identity(entry->path, &identity, NULL);
        hash = identity_hash(hash, &identity.hash, sizeof identity.hash);
        hash = identity_hash(hash, &identity.bytes, sizeof identity.bytes);
        hash = identity_hash(hash, &entry->mpp, sizeof entry->mpp);
    }
    return hash;
}

/* --- classes --- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Notes the labels that are not in texts yet. */
static bool note_labels(const struct slide_list *list, struct texts *texts, struct err *err)
{
    for (size_t i = 0; i < list->n; i++) {
        const char *label = list->entries[i].label;
        size_t at = 0;
        while (at < texts->n && strcmp(texts->items[at], label) != 0)
            at++;
        if (at < texts->n || !label[0])
            continue;
        char **more = realloc(texts->items, (texts->n + 1) * sizeof *more);
        if (more)
            texts->items = more;
        if (!more || !(more[texts->n] = strdup(label)))
            return err_memory(err, "the config");
        texts->n++;
    }
    return true;
}

static void free_texts(struct texts *texts)
{
    for (size_t i = 0; i < texts->n; i++)
        free(texts->items[i]);
    free(texts->items);
}

bool config_adopt_labels(struct train_config *config, struct err *err)
{
    struct texts found = { 0 };
    bool ok = true, known = true;
    for (size_t i = 0; ok && i < config->data.slides.n; i++) {
        struct slide_list list = { 0 };
        ok = read_list(config, config->data.slides.items[i], &list, err) &&
             note_labels(&list, &found, err);
        slide_list_free(&list);
    }
    for (size_t i = 0; i < found.n; i++)
        known = known && class_of_label(config, found.items[i]) >= 0;
    if (ok && !known && found.n < 2)
        ok = err_set(err, ERR_USAGE,
                     "data.slides: all labels are '%s', but training needs at least two classes",
                     found.items[0]);
    if (ok && !known) {
        qsort(found.items, found.n, sizeof *found.items, by_text);
        struct texts drop = config->classes;
        config->classes = found;
        found = drop;
    }
    free_texts(&found);
    return ok;
}
