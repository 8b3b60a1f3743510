/* truth_list.c: see truth_list.h. */
#include "verdict/truth_list.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "annotation/annotation.h"
#include "base/file.h"
#include "base/folder.h"
#include "slide/slide_folder.h"
#include "verdict/slide_table.h"
#include "base/text.h"

const char *const truth_endings[] = { ".xml", ".json", ".geojson", ".annotations",
                                      ".png", ".tif",  ".tiff",    NULL };

static int by_slide(const void *a, const void *b)
{
    return strcmp(((const struct truth_entry *)a)->slide, ((const struct truth_entry *)b)->slide);
}

/* "test_001_mask.png", "test_001.svs.geojson" -> "test_001", in place. */
static void cut_ending(char *name)
{
    char *dot = strrchr(name, '.');
    if (dot)
        *dot = 0;
    dot = strrchr(name, '.');
    if (dot && slide_has_extension(name))
        *dot = 0;
    size_t length = strlen(name);
    if (length > 5 && strcasecmp(name + length - 5, "_mask") == 0)
        name[length - 5] = 0;
}

static bool read_folder(struct truth_list *list, struct err *err)
{
    char **names = NULL;
    size_t n = 0;
    if (!folder_names(list->source, truth_endings, &names, &n, err))
        return false;
    bool ok =
        n > 0 ||
        err_set(err, ERR_MISSING,
                "%s: no annotations (.xml, .json, .geojson, .annotations) or masks (.png, .tif)",
                list->source);
    list->entries = calloc(n + 1, sizeof *list->entries);
    ok = ok && (list->entries || err_memory(err, list->source));
    for (size_t i = 0; ok && i < n; i++) {
        struct truth_entry *entry = &list->entries[list->n++];
        entry->path = text_format("%s/%s", list->source, names[i]);
        entry->slide = strdup(names[i]);
        ok = (entry->path && entry->slide) || err_memory(err, list->source);
        if (ok)
            cut_ending(entry->slide);
    }
    folder_names_free(names, n);
    if (ok)
        qsort(list->entries, list->n, sizeof *list->entries, by_slide);
    for (size_t i = 1; ok && i < list->n; i++)
        if (by_slide(&list->entries[i - 1], &list->entries[i]) == 0)
            ok = err_set(err, ERR_FORMAT,
                         "%s: slide '%s' has two truth files (%s and %s); keep one", list->source,
                         list->entries[i].slide, list->entries[i - 1].path, list->entries[i].path);
    return ok;
}

static bool read_table(struct truth_list *list, const char *slide_column, struct err *err)
{
    struct slide_table table;
    int column = 0;
    if (!slide_table_read(list->source, slide_column, &table, err))
        return false;
    const char *slash = strrchr(list->source, '/');
    int folder = slash ? (int)(slash - list->source) + 1 : 0;
    list->lists_all = true;
    list->entries = calloc(table.n, sizeof *list->entries);
    bool ok = slide_table_column(
                  &table, "annotation",
                  "it names the annotation or mask file, and is empty for slides without tumour",
                  &column, err) &&
              (list->entries || err_memory(err, list->source));
    for (size_t i = 0; ok && i < table.n; i++) {
        struct truth_entry *entry = &list->entries[list->n++];
        const char *cell = csv_cell(&table.csv, table.rows[i], column);
        entry->slide = strdup(table.slides[i]);
        if (*cell)
            entry->path =
                *cell == '/' ? strdup(cell) : text_format("%.*s%s", folder, list->source, cell);
        ok = (entry->slide && (entry->path || !*cell)) || err_memory(err, list->source);
        ok = ok && csv_mpp(&table.csv, table.rows[i], &entry->mpp, err);
    }
    slide_table_free(&table);
    return ok;
}

bool truth_is_mask(const char *path)
{
    const char *ending = file_extension(path);
    return strcasecmp(ending, ".png") == 0 || strncasecmp(ending, ".tif", 4) == 0;
}

static bool check_classes(const struct truth_list *list, struct err *err)
{
    struct annotation_file *files = calloc(list->n + 1, sizeof *files);
    size_t n = 0;
    for (size_t i = 0; files && i < list->n; i++)
        if (list->entries[i].path && !truth_is_mask(list->entries[i].path))
            files[n++] = (struct annotation_file){ list->entries[i].path, list->entries[i].slide };
    bool ok = files ? annotation_check_classes(files, n, list->class_map, err)
                    : err_memory(err, list->source);
    free(files);
    return ok;
}

bool truth_list_read(const char *path, const char *slide_column, const struct class_map *class_map,
                     struct truth_list *out, struct err *err)
{
    *out = (struct truth_list){ .source = path, .class_map = class_map };
    bool ok = (file_is_folder(path) ? read_folder(out, err) : read_table(out, slide_column, err)) &&
              check_classes(out, err);
    if (!ok)
        truth_list_free(out);
    return ok;
}

void truth_list_free(struct truth_list *list)
{
    for (size_t i = 0; list->entries && i < list->n; i++)
        free(list->entries[i].slide), free(list->entries[i].path);
    free(list->entries);
    *list = (struct truth_list){ 0 };
}

const struct truth_entry *truth_list_find(const struct truth_list *list, const char *slide)
{
    struct truth_entry key = { .slide = (char *)slide };
    return list->n ? bsearch(&key, list->entries, list->n, sizeof *list->entries, by_slide) : NULL;
}

bool truth_list_entry(const struct truth_list *list, const char *slide, bool allow_missing,
                      const struct truth_entry **entry, bool *skipped, struct err *err)
{
    *entry = truth_list_find(list, slide);
    *skipped = !*entry && list->lists_all;
    if (*skipped && !allow_missing)
        return err_set(err, ERR_MISSING,
                       "slide '%s' is not in %s; add it there, or pass --allow-missing to skip it",
                       slide, list->source);
    return true;
}

bool truth_list_check(const struct truth_list *list, const void *slides, size_t n,
                      const char *(*name)(const void *slides, size_t i), bool allow_missing,
                      int64_t *left_out, struct err *err)
{
    size_t found = 0;
    for (size_t i = 0; i < list->n; i++) {
        bool there = false;
        for (size_t k = 0; k < n && !there; k++)
            there = strcmp(name(slides, k), list->entries[i].slide) == 0;
        found += there;
        *left_out += !there;
        if (!there && !allow_missing)
            return err_set(err, ERR_MISSING,
                           "%s: slide '%s' has truth but no heatmap; predict it, or pass "
                           "--allow-missing to skip it",
                           list->source, list->entries[i].slide);
    }
    return found > 0 ||
           err_set(err, ERR_MISSING, "the heatmaps and %s have no slide in common", list->source);
}
