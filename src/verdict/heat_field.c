/* heat_field.c: see heat_field.h. */
#include "verdict/heat_field.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/text.h"

#define MOST_CELLS (INT64_C(1) << 28)
#define BAND_BYTES (INT64_C(16) << 20)

bool heat_class(const struct heatmap *heatmap, const char *name, int64_t *index, struct err *err)
{
    const struct heatmap_info *info = heatmap_info(heatmap);
    char names[300];
    if (!heatmap_need_scores(info, "this command", err))
        return false;
    if (name || info->n_classes <= 2)
        return heatmap_find_class(info, name, index, err) || err_prefix(err, info->slide);
    heatmap_list_classes(info, names, sizeof names);
    return err_set(err, ERR_USAGE, "%s: has more than two classes (%s); pass --class NAME",
                   info->slide, names);
}

bool heat_field_read(const struct heatmap *heatmap, int64_t class_index, struct heat_field *out,
                     struct err *err)
{
    const struct heatmap_info *info = heatmap_info(heatmap);
    const int64_t rows = heatmap_rows_in(info, BAND_BYTES);
    *out = (struct heat_field){ .width = info->width, .height = info->height };
    if (info->width > MOST_CELLS / info->height)
        return err_set(err, ERR_USAGE,
                       "%s: %lld x %lld cells are too many to find regions in; predict the heatmap "
                       "with a larger --stride",
                       info->slide, (long long)info->width, (long long)info->height);
    float *band = malloc((size_t)(rows * info->width * info->n_classes) * sizeof *band);
    out->values = malloc((size_t)(info->width * info->height) * sizeof *out->values);
    bool ok = (band && out->values) || err_memory(err, info->slide);
    for (int64_t row = 0; ok && row < info->height; row += rows) {
        int64_t n = info->height - row < rows ? info->height - row : rows;
        ok = heatmap_read_rows(heatmap, row, n, band, err);
        for (int64_t i = 0; ok && i < n * info->width; i++) {
            float value = band[i * info->n_classes + class_index];
            out->tissue += !isnan(value);
            out->values[row * info->width + i] = isnan(value) ? 0 : value;
        }
    }
    free(band);
    if (!ok)
        free(out->values), out->values = NULL;
    return ok;
}

struct list {
    char **folders;
    size_t n;
    int64_t room;
};

static bool holds(const char *folder, const char *file)
{
    char *path = text_format("%s/%s", folder, file);
    bool there = path && file_exists(path);
    free(path);
    return there;
}

static bool add(struct list *list, const char *folder, struct err *err)
{
    if (!array_grow(&list->folders, &list->room, (int64_t)list->n + 1, sizeof *list->folders,
                    "the list of heatmaps", err))
        return false;
    if (!(list->folders[list->n] = strdup(folder)))
        return err_memory(err, "the list of heatmaps");
    list->n++;
    return true;
}

static bool add_below(struct list *list, const char *path, size_t *unfinished, struct err *err)
{
    char **names;
    size_t n;
    bool ok = folder_names(path, NULL, &names, &n, err);
    for (size_t i = 0; ok && i < n; i++) {
        char *folder = text_format("%s/%s", path, names[i]);
        if (!folder)
            ok = err_memory(err, path);
        else if (holds(folder, "heatmap.json"))
            ok = add(list, folder, err);
        else
            *unfinished += holds(folder, "plan.json");
        free(folder);
    }
    folder_names_free(names, n);
    return ok;
}

bool heat_list(char *const *paths, int n_paths, char ***folders, size_t *n, size_t *unfinished,
               struct err *err)
{
    struct list list = { 0 };
    bool ok = true;
    *unfinished = 0;
    for (int i = 0; ok && i < n_paths; i++) {
        size_t before = list.n, begun = *unfinished;
        ok = holds(paths[i], "heatmap.json") ? add(&list, paths[i], err)
                                             : add_below(&list, paths[i], unfinished, err);
        if (ok && list.n == before && *unfinished > begun)
            ok = err_set(err, ERR_MISSING,
                         "%s: no finished heatmaps, but %zu unfinished ones; run the same "
                         "'microtome predict' again to finish them",
                         paths[i], *unfinished - begun);
        else if (ok && list.n == before)
            ok = err_set(
                err, ERR_MISSING,
                "%s: no heatmaps in this folder; create them with 'microtome predict -o %s'",
                paths[i], paths[i]);
    }
    *folders = list.folders, *n = list.n;
    if (!ok) {
        folder_names_free(list.folders, list.n);
        *folders = NULL, *n = 0;
    }
    return ok;
}
