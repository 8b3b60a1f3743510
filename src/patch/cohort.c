/* cohort.c: extract_cohort (extract.h): one slide after another; existing stores are kept, failures
 * are recorded. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/csv.h"
#include "base/console.h"
#include "base/file.h"
#include "base/run_each.h"
#include "patch/annotations.h"
#include "patch/extract.h"
#include "patch/preview.h"
#include "base/text.h"

struct cohort {
    const struct extract_request *request;
    const struct ctx *ctx;
    char *options_text;
    struct stain_fit target;
    struct extract_row *rows;
    bool *exists;              /* [slides] */
    size_t stale, first_stale; /* kept stores that differ from the list in some other column */
    struct err *changed; /* [slides]: why a store that tasks left is not taken; kind 0: it is */
};

static char *store_path(const struct cohort *cohort, size_t i)
{
    return text_format("%s/%s.h5", cohort->request->folder,
                       cohort->request->slides->entries[i].name);
}

static void count_store(const struct cohort *cohort, const struct store *store,
                        struct extract_result *out)
{
    const struct patch_list *patches = store_patches(store);
    const struct store_facts *facts = store_facts(store);
    *out = (struct extract_result){ .patches = patches->n,
                                    .groups = store_n_groups(store),
                                    .mpp = facts->mpp,
                                    .annotated = strstr(facts->inputs, " annotation=") != NULL };
    extract_count(cohort->request->options.class_map, patches, out);
}

/* The column of the slide list that says something else of the slide than its store; NULL: none. An
 * empty cell says nothing. *stale: columns differ that nothing in the store was made from. */
static const char *other_column(const struct extract_request *request,
                                const struct slide_entry *entry, const struct store_facts *facts,
                                bool *stale)
{
    const char *const columns[][3] = { { "patient", entry->patient, facts->patient },
                                       { "node", entry->node, facts->node },
                                       { "center", entry->center, facts->center },
                                       { "split", entry->split, facts->split },
                                       { "label", entry->label, facts->slide_label } };
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        if (columns[i][1][0] && strcmp(columns[i][1], columns[i][2]) != 0)
            return columns[i][0];
    const char *used = extract_other_cell(entry, &request->options, facts, stale);
    if (used)
        return used;
    bool by_list = request->options.slide_mpp <= 0 && entry->mpp > 0;
    return by_list && entry->mpp != facts->mpp_l0 ? "mpp" : NULL;
}

/* Would this store of slide i be made the same way today, from the same files? */
static bool check_store(struct cohort *cohort, size_t i, const char *path,
                        const struct store_facts *facts, struct err *err)
{
    const struct extract_request *request = cohort->request;
    const struct slide_entry *entry = &request->slides->entries[i];
    bool stale = false;
    const char *column = other_column(request, entry, facts, &stale);
    char now[INPUTS_ROOM];
    if (strcmp(facts->options, cohort->options_text) != 0)
        return err_set(err, ERR_USAGE,
                       "%s: was made with other options; pass --overwrite or another -o folder\n"
                       "  then: %.300s\n  now:  %.300s",
                       path, facts->options, cohort->options_text);
    if (column)
        return err_set(err, ERR_USAGE,
                       "%s: was made when the slide list had a different '%s' for this slide; pass "
                       "--overwrite or another -o folder",
                       path, column);
    if (stale && cohort->stale++ == 0)
        cohort->first_stale = i;
    if (!file_exists(entry->path)) { /* cannot have been replaced, only removed */
        if (cohort->ctx)
            console_warn(cohort->ctx->console, "%s: not found; its store is kept unchecked",
                         entry->path);
        cohort->exists[i] = true;
        return true;
    }
    if (!extract_inputs(entry, &request->options, now, &cohort->changed[i]) ||
        !inputs_check(path, facts->inputs, now, &cohort->changed[i])) {
        *err = cohort->changed[i];
        return request->tasks != NULL; /* then it is this slide's failure, not the run's */
    }
    cohort->exists[i] = true;
    return true;
}

/* Is there a store of this slide already that may be kept? */
static bool look_at_existing(struct cohort *cohort, size_t i, struct err *err)
{
    const struct extract_request *request = cohort->request;
    char *path = store_path(cohort, i);
    if (!path)
        return err_memory(err, request->folder);
    bool ok = true;
    if (file_exists(path) && (!request->overwrite || request->tasks)) {
        struct store *store = NULL;
        ok = store_open(path, &store, err);
        if (!ok) {
            struct err cause = *err;
            err_set(err, ERR_FORMAT, "%.900s; pass --overwrite to replace it", cause.text);
        } else {
            ok = check_store(cohort, i, path, store_facts(store), err);
        }
        if (ok && cohort->exists[i])
            count_store(cohort, store, &cohort->rows[i].result);
        store_close(store);
    }
    free(path);
    return ok;
}

bool extract_target(const struct extract_options *options, struct stain_fit *out, struct err *err)
{
    if (options->stain == STAIN_NONE)
        return true;
    *out = stain_default_target(options->stain);
    if (!options->stain_template)
        return true;
    struct image image = { 0 };
    if (!image_read_png(options->stain_template, 3, &image, err))
        return false;
    bool ok = stain_fit(options->stain, image.px, image.width * image.height, out, err) ||
              err_prefix(err, options->stain_template);
    image_free(&image);
    return ok;
}

static bool write_preview(const struct cohort *cohort, size_t i, const char *store, struct err *err)
{
    char *path = text_format("%s/%s_patches.png", cohort->request->folder,
                             cohort->request->slides->entries[i].name);
    bool ok = path || err_memory(err, store);
    bool made = cohort->exists[i] && file_exists(path);
    if (ok && cohort->rows[i].result.patches > 0 && !made)
        ok = preview_write(store, path, err);
    free(path);
    return ok;
}

static bool make_slide(void *arg, size_t i, struct err *err)
{
    struct cohort *cohort = arg;
    const struct extract_request *request = cohort->request;
    struct extract_row *row = &cohort->rows[i];
    char *path = store_path(cohort, i);
    bool ok = path || err_memory(err, request->folder);
    row->state = cohort->exists[i] && !request->tasks ? RUN_KEPT : RUN_DONE;
    if (ok && !cohort->exists[i] && request->tasks)
        ok = err_set(err, ERR_MISSING, "%s",
                     cohort->changed[i].kind   ? cohort->changed[i].text
                     : request->tasks[i].error ? request->tasks[i].error
                                               : "its store is missing");
    else if (ok && !cohort->exists[i])
        ok = extract_slide(&request->slides->entries[i], &request->options, &cohort->target, path,
                           cohort->ctx, &row->result, err);
    if (ok && row->result.patches == 0)
        row->state = RUN_NO_TISSUE;
    if (ok && request->preview)
        ok = write_preview(cohort, i, path, err);
    free(path);
    return ok;
}

static void tell_slide(void *arg, size_t i, const struct err *why, struct run_item *item)
{
    const struct cohort *cohort = arg;
    const struct slide_entry *entry = &cohort->request->slides->entries[i];
    const struct run_outcome *tasks = cohort->request->tasks;
    struct extract_row *row = &cohort->rows[i];
    struct extract_result *result = &row->result;
    item->name = entry->name;
    item->path = entry->path;
    if (tasks) {
        item->seconds = tasks[i].seconds;
        item->cpu_s = tasks[i].cpu_s;
    }
    if (why) {
        row->state = RUN_FAILED;
        *result = (struct extract_result){ 0 };
        return;
    }
    item->state = row->state;
    item->facts[item->n_facts++] = (struct run_fact){ "patches", (double)result->patches };
    const struct class_map *map = cohort->request->options.class_map;
    int places[CLASS_MOST], n = extract_columns(map, places);
    for (int c = 0; c < n; c++)
        item->facts[item->n_facts++] = (struct run_fact){ class_map_class(map, places[c]),
                                                          (double)result->per_class[places[c]] };
    item->facts[item->n_facts++] = (struct run_fact){ "groups", (double)result->groups };
    item->facts[item->n_facts++] = (struct run_fact){ "patch_mpp", result->mpp };
}

/* Group g of the cohort (from 1) is group g - first_group of its slide. */
static bool write_lookup(const struct cohort *cohort, size_t n, struct err *err)
{
    struct file_out out;
    char *path = text_format("%s/lookup.csv", cohort->request->folder);
    if (!path)
        return err_memory(err, "lookup.csv");
    bool ok = file_out_open(&out, path, err);
    free(path);
    if (!ok)
        return false;
    int64_t next = 1;
    fputs("slide,first_group,last_group\n", out.stream);
    for (size_t i = 0; i < n; i++) {
        if (cohort->rows[i].state == RUN_FAILED || cohort->rows[i].result.groups == 0)
            continue;
        csv_write_cell(out.stream, cohort->rows[i].slide);
        fprintf(out.stream, ",%lld,%lld\n", (long long)next,
                (long long)(next + cohort->rows[i].result.groups - 1));
        next += cohort->rows[i].result.groups;
    }
    return file_out_commit(&out, err);
}

/* If annotations were requested: slides that have none and that the list does not label normal.
 * Perhaps the folder is a wrong one, or the names in it are not the slides'. */
static void warn_of_annotations(const struct cohort *cohort, size_t n)
{
    const struct extract_request *request = cohort->request;
    const struct class_map *map = request->options.class_map;
    int place = class_map_unlabelled(map);
    const char *rest = place < 0 ? NULL : class_map_class(map, place);
    bool asked = request->options.annotations && request->options.label_rule <= LABEL_CENTER;
    size_t made = 0, annotated = 0, without = 0, first = 0;
    for (size_t i = 0; i < n; i++) {
        const struct slide_entry *entry = &request->slides->entries[i];
        const struct extract_result *result = &cohort->rows[i].result;
        made += cohort->rows[i].state == RUN_DONE;
        annotated += result->annotated;
        asked = asked || (entry->annotation[0] && request->options.label_rule <= LABEL_CENTER);
        bool unlabelled = result->patches > 0 && extract_labelled(result) == 0;
        if (unlabelled && !result->annotated && !entry->label[0] && without++ == 0)
            first = i;
    }
    struct console *console = cohort->ctx->console;
    bool none = request->options.annotations && made > 0 && annotated == 0;
    if (none && rest)
        console_warn(console,
                     "%s: no annotation file matches a slide name; only patches of slides that the "
                     "slide list labels %s have a label",
                     request->options.annotations, rest);
    else if (none)
        console_warn(console, "%s: no annotation file matches a slide name; no patch has a label",
                     request->options.annotations);
    else if (asked && without > 0 && rest)
        console_warn(console,
                     "slides with neither an annotation nor a label in the slide list: %zu (the "
                     "first is '%s'); their patches have no label; to make them %s, label the "
                     "slides '%s' in the list",
                     without, request->slides->entries[first].name, rest, rest);
    else if (asked && without > 0)
        console_warn(console,
                     "slides without an annotation: %zu (the first is '%s'); their patches have no "
                     "label",
                     without, request->slides->entries[first].name);
}

static bool end(void *arg, size_t reached, struct err *err)
{
    const struct cohort *cohort = arg;
    if (cohort->stale > 0)
        console_warn(cohort->ctx->console,
                     "stores made when other columns of the slide list were different or absent: "
                     "%zu (the first is '%s'); they keep those values; pass --overwrite to replace "
                     "the stores",
                     cohort->stale, cohort->rows[cohort->first_stale].slide);
    warn_of_annotations(cohort, reached);
    return write_lookup(cohort, reached, err);
}

static bool run_slides(struct cohort *cohort, size_t *n_rows, struct err *err)
{
    const struct extract_request *request = cohort->request;
    struct run *run = NULL;
    struct run_each each = {
        .n = request->slides->n, .make = make_slide, .tell = tell_slide, .end = end, .arg = cohort
    };
    bool ok = run_begin(request->folder, each.n, request->argc, request->argv, &run, err) &&
              run_each(run, &each, cohort->ctx, n_rows, err);
    run_free(run);
    return ok;
}

static bool check_classes(const struct cohort *cohort, struct err *err)
{
    const struct extract_request *request = cohort->request;
    const struct extract_options *options = &request->options;
    return options->label_rule > LABEL_CENTER ||
           annotations_check(request->slides, options->annotations, cohort->exists,
                             options->class_map, err);
}

bool extract_look(const struct extract_request *request, struct err *err)
{
    size_t n = request->slides->n;
    struct cohort cohort = { .request = request };
    cohort.rows = calloc(n + 1, sizeof *cohort.rows);
    cohort.options_text = extract_options_text(&request->options);
    cohort.exists = calloc(n + 1, sizeof *cohort.exists);
    cohort.changed = calloc(n + 1, sizeof *cohort.changed);
    bool ok = (cohort.rows && cohort.options_text && cohort.exists && cohort.changed) ||
              err_memory(err, "the slides");
    ok = ok && annotations_check_source(request->options.annotations, n, err) &&
         extract_check_columns(request->slides, &request->options, err);
    for (size_t i = 0; ok && i < n; i++) {
        char *path = request->overwrite ? store_path(&cohort, i) : NULL;
        if (path && unlink(path) != 0 && errno != ENOENT)
            ok = err_errno(err, path, "replace");
        free(path);
        ok = ok && look_at_existing(&cohort, i, err);
    }
    ok = ok && check_classes(&cohort, err);
    free(cohort.rows);
    free(cohort.options_text);
    free(cohort.exists);
    free(cohort.changed);
    return ok;
}

bool extract_cohort(const struct extract_request *request, const struct ctx *ctx,
                    struct extract_row *rows, size_t *n_rows, struct err *err)
{
    struct cohort cohort = { .request = request, .ctx = ctx, .rows = rows };
    *n_rows = 0;
    cohort.options_text = extract_options_text(&request->options);
    cohort.exists = calloc(request->slides->n + 1, sizeof *cohort.exists);
    cohort.changed = calloc(request->slides->n + 1, sizeof *cohort.changed);
    bool ok =
        (cohort.options_text && cohort.exists && cohort.changed) || err_memory(err, "the slides");
    for (size_t i = 0; i < request->slides->n; i++)
        rows[i] = (struct extract_row){ .slide = request->slides->entries[i].name };
    ok = ok && annotations_check_source(request->options.annotations, request->slides->n, err) &&
         extract_check_columns(request->slides, &request->options, err) &&
         file_make_folder(request->folder, err) &&
         extract_target(&request->options, &cohort.target, err);
    for (size_t i = 0; ok && i < request->slides->n; i++)
        ok = look_at_existing(&cohort, i, err);
    ok = ok && (request->tasks || check_classes(&cohort, err)) && run_slides(&cohort, n_rows, err);
    free(cohort.options_text);
    free(cohort.exists);
    free(cohort.changed);
    return ok;
}
