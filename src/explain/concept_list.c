/* concept_list.c: names of concepts and their values for a patch (concept_list.h). */
#include "explain/concept_list.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/names.h"
#include "base/rng.h"
#include "base/text.h"
#include "nuclei/hematoxylin.h"
#include "stain/colour.h"
#include "tissue/method.h"

static const char *const summaries[] = { "mean", "std", "sum" };
static const char *const colours[COLOURS] = { "red",        "green",      "blue",
                                              "brightness", "saturation", "hematoxylin" };

/* --- names --- */

#define BUILT_IN (3 + COLOURS + 3 * NUCLEUS_FEATURES)

/* The i-th built-in concept; its name is the caller's, NULL if no memory. */
static struct concept built_in(int i)
{
    if (i == 0)
        return (struct concept){ .name = strdup("nuclei.count"), .source = SOURCE_COUNT };
    if (i == 1)
        return (struct concept){ .name = strdup("quality.pen"), .source = SOURCE_PEN };
    if (i == 2)
        return (struct concept){ .name = strdup("random"), .source = SOURCE_RANDOM };
    i -= 3;
    if (i < COLOURS)
        return (struct concept){ .name = text_format("colour.%s", colours[i]),
                                 .source = SOURCE_COLOUR,
                                 .which = i };
    i -= COLOURS;
    return (struct concept){ .name = text_format("nuclei.%s.%s", nucleus_features[i / 3].name,
                                                 summaries[i % 3]),
                             .source = SOURCE_NUCLEI,
                             .which = i / 3,
                             .summary = (enum concept_summary)(i % 3) };
}

static bool refuse(const struct concept_list *list, const char *name, struct err *err)
{
    const char **known = NULL;
    size_t n = 0;
    struct concept all[BUILT_IN];
    if (list->table && !concept_table_columns(list->table, &known, &n, err))
        return false;
    const char **names = realloc(known, (n + BUILT_IN) * sizeof *names);
    if (!names) {
        free(known);
        return err_memory(err, "concepts");
    }
    for (int i = 0; i < BUILT_IN; i++) {
        all[i] = built_in(i);
        if (all[i].name)
            names[n++] = all[i].name;
    }
    const char *nearest = names_nearest(name, names, n);
    err_set(err, ERR_USAGE,
            "--concepts: no concept '%s'%s%s%s; there are nuclei.count, nuclei.<feature>.<mean, "
            "std or sum>, colour.<name>, quality.pen, random%s, see docs/explain.md",
            name, nearest ? " (did you mean '" : "", nearest ? nearest : "", nearest ? "'?)" : "",
            list->table ? " and the columns of the table" : "");
    for (int i = 0; i < BUILT_IN; i++)
        free(all[i].name);
    free(names);
    return false;
}

static bool find(const struct concept_list *list, const char *name, struct concept *out,
                 struct err *err)
{
    int column = list->table ? concept_table_column(list->table, name) : -1;
    if (column >= 0) {
        *out = (struct concept){ .name = strdup(name), .source = SOURCE_TABLE, .which = column };
        return (out->name || err_memory(err, "concepts")) &&
               (concept_table_use(list->table, column, &out->answers, err) ||
                (free(out->name), false));
    }
    for (int i = 0; i < BUILT_IN; i++) {
        *out = built_in(i);
        if (!out->name)
            return err_memory(err, "concepts");
        if (strcmp(out->name, name) == 0)
            return true;
        free(out->name);
    }
    return refuse(list, name, err);
}

static bool add(struct concept_list *list, const char *name, struct err *err)
{
    for (int i = 0; i < list->n; i++)
        if (strcmp(list->items[i].name, name) == 0)
            return err_set(err, ERR_USAGE, "--concepts: '%s' is given twice", name);
    if (list->n == CONCEPT_MOST)
        return err_set(err, ERR_USAGE, "--concepts: more than %d concepts", CONCEPT_MOST);
    struct concept *concept = &list->items[list->n];
    if (!find(list, name, concept, err))
        return false;
    list->needs_nuclei |= concept->source == SOURCE_COUNT || concept->source == SOURCE_NUCLEI;
    list->n++;
    return true;
}

static bool add_all(struct concept_list *list, const char *names, struct err *err)
{
    bool ok = true;
    for (const char *at = names; ok && at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char *name = strndup(at, strcspn(at, ","));
        ok = name ? add(list, name, err) : err_memory(err, "concepts");
        free(name);
    }
    return ok;
}

static bool add_columns(struct concept_list *list, struct err *err)
{
    const char **names = NULL;
    size_t n = 0;
    bool ok = concept_table_columns(list->table, &names, &n, err);
    if (ok && n == 0)
        ok = err_set(err, ERR_USAGE, "%s: has no column besides the names of patches",
                     concept_table_path(list->table));
    for (size_t i = 0; ok && i < n; i++)
        ok = add(list, names[i], err);
    free(names);
    return ok && (concept_table_column(list->table, "random") >= 0 || add(list, "random", err));
}

bool concept_list_make(const char *names, const char *table, struct concept_list *out,
                       struct err *err)
{
    *out = (struct concept_list){ 0 };
    if (table && !concept_table_read(table, &out->table, err))
        return false;
    if (table && !names)
        return add_columns(out, err);
    return add_all(out, names ? names : CONCEPT_DEFAULTS, err);
}

void concept_list_free(struct concept_list *list)
{
    for (int i = 0; i < list->n; i++)
        free(list->items[i].name);
    concept_table_free(list->table);
    *list = (struct concept_list){ 0 };
}

/* --- values --- */

static void mean_colours(const struct image *image, double out[COLOURS])
{
    struct hematoxylin_table table;
    int64_t n = image->width * image->height;
    hematoxylin_table_fill(&table);
    memset(out, 0, COLOURS * sizeof *out);
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *px = image->px + 3 * i;
        for (int channel = 0; channel < 3; channel++)
            out[channel] += px[channel];
        out[COLOUR_BRIGHTNESS] += (px[0] + px[1] + px[2]) / 3.0;
        out[COLOUR_SATURATION] += 255 * colour_saturation(px);
        out[COLOUR_HEMATOXYLIN] += (double)hematoxylin_at(&table, px);
    }
    for (int i = 0; i < COLOURS; i++)
        out[i] /= (double)n;
}

static bool pen_share(const struct image *image, double *out, struct err *err)
{
    struct image mask;
    if (!image_new(&mask, image->width, image->height, 1, err))
        return false;
    bool ok = method_find_pen(image, &mask, err);
    int64_t n = image->width * image->height, marked = 0;
    for (int64_t i = 0; ok && i < n; i++)
        marked += mask.px[i] != 0;
    *out = (double)marked / (double)n;
    image_free(&mask);
    return ok;
}

/* Of the nuclei that have the feature; NaN: none has, or for std fewer than two have. */
static double summarize(const struct nucleus *nuclei, int32_t n, int feature,
                        enum concept_summary summary)
{
    double sum = 0, squares = 0;
    int32_t counted = 0;
    for (int32_t i = 0; i < n; i++)
        if (!isnan(nuclei[i].features[feature])) {
            sum += nuclei[i].features[feature];
            counted++;
        }
    double mean = counted ? sum / counted : NAN;
    if (summary == SUMMARY_MEAN || counted == 0)
        return mean;
    if (summary == SUMMARY_SUM)
        return sum;
    for (int32_t i = 0; i < n; i++)
        if (!isnan(nuclei[i].features[feature]))
            squares += (nuclei[i].features[feature] - mean) * (nuclei[i].features[feature] - mean);
    return counted > 1 ? sqrt(squares / counted) : NAN;
}

static bool measure_nuclei(const struct concept_list *list, const struct concept_patch *patch,
                           double *values, struct err *err)
{
    struct nuclei_settings settings = nuclei_defaults();
    struct nuclei_labels found = { 0 };
    struct nucleus *nuclei = NULL;
    const struct nuclei_labels *labels = patch->labels ? patch->labels : &found;
    bool ok = (patch->labels || nuclei_find(patch->image, patch->mpp, &settings, &found, err)) &&
              nuclei_measure(patch->image, patch->mpp, labels, &nuclei, err);
    for (int i = 0; ok && i < list->n; i++) {
        const struct concept *concept = &list->items[i];
        if (concept->source == SOURCE_COUNT)
            values[i] = labels->n;
        else if (concept->source == SOURCE_NUCLEI)
            values[i] = summarize(nuclei, labels->n, concept->which, concept->summary);
    }
    free(nuclei);
    nuclei_labels_free(&found);
    return ok;
}

bool concept_measure(const struct concept_list *list, const struct concept_patch *patch,
                     double *values, struct err *err)
{
    double means[COLOURS];
    bool coloured = false, ok = true;
    if (list->needs_nuclei && !measure_nuclei(list, patch, values, err))
        return false;
    for (int i = 0; ok && i < list->n; i++) {
        const struct concept *concept = &list->items[i];
        if (concept->source == SOURCE_COLOUR) {
            if (!coloured)
                mean_colours(patch->image, means);
            coloured = true;
            values[i] = means[concept->which];
        } else if (concept->source == SOURCE_PEN) {
            ok = pen_share(patch->image, &values[i], err);
        } else if (concept->source == SOURCE_RANDOM) {
            struct rng rng = rng_new(patch->seed, rng_hash("concept"), rng_hash(patch->name));
            values[i] = rng_normal(&rng);
        } else if (concept->source == SOURCE_TABLE) {
            values[i] = concept_table_value(list->table, concept->which, patch);
        }
    }
    return ok;
}
