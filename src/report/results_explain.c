/* results_explain.c: explain.json -> the maps of a slide's windows (results.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/json_file.h"
#include "base/text.h"
#include "report/results.h"

#define MOST_BYTES ((size_t)256 << 20)
#define MOST_MAPS 64

void results_free_whys(struct result_slide *slide)
{
    for (size_t i = 0; i < slide->n_whys; i++) {
        struct result_why *why = &slide->whys[i];
        for (size_t k = 0; k < why->n; k++) {
            free(why->pictures[k]);
            free(why->titles[k]);
        }
        free(why->pictures);
        free(why->titles);
    }
    free(slide->whys);
    free(slide->why_class);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* Names become parts of paths: none may lead out of the folder. */
static bool is_plain(const char *name)
{
    return name[0] && name[0] != '.' && !strchr(name, '/');
}

/* The verdict on a map, of all images of the run. */
static const char *verdict_of(const json_t *root, size_t map)
{
    const json_t *maps = json_object_get(json_object_get(root, "summary"), "maps");
    return text_of(json_array_get(maps, map), "verdict");
}

static bool add_maps(const json_t *root, const json_t *subject, const char *folder,
                     struct result_why *why, struct err *err)
{
    const json_t *maps = json_object_get(subject, "maps"), *columns = json_object_get(root, "maps");
    size_t n = json_array_size(maps) < MOST_MAPS ? json_array_size(maps) : MOST_MAPS;
    why->pictures = calloc(n + 1, sizeof *why->pictures);
    why->titles = calloc(n + 1, sizeof *why->titles);
    if (!why->pictures || !why->titles)
        return err_memory(err, folder);
    for (size_t i = 0; i < n; i++) {
        const json_t *column = json_array_get(columns, i);
        const char *name = text_of(json_array_get(maps, i), "name");
        const char *layer = text_of(column, "layer"), *verdict = verdict_of(root, i);
        if (!is_plain(name))
            continue;
        why->pictures[why->n] = text_format("%s/%s/%s.png", folder, text_of(subject, "name"), name);
        why->titles[why->n] =
            text_format("%s%s%s%s%s", text_of(column, "title"), layer[0] ? ", " : "", layer,
                        verdict[0] ? ": " : "", verdict);
        why->n++;
        if (!why->pictures[why->n - 1] || !why->titles[why->n - 1])
            return err_memory(err, folder);
    }
    return true;
}

static int64_t middle(const json_t *subject, const char *begin, const char *side, double scale)
{
    return llround(json_number_value(json_object_get(subject, begin)) +
                   scale * json_number_value(json_object_get(subject, side)));
}

static bool add_subject(struct results *results, const json_t *root, const json_t *subject,
                        const char *folder, struct err *err)
{
    const char *name = text_of(subject, "slide");
    if (!name[0] || !is_plain(text_of(subject, "name")) ||
        !json_is_array(json_object_get(subject, "maps")))
        return true;
    struct result_slide *slide = results_slide(results, name);
    if (!slide ||
        !results_room(&slide->whys, slide->n_whys, &slide->whys_room, sizeof *slide->whys, err))
        return err_memory(err, folder);
    if (!slide->why_class && !(slide->why_class = strdup(text_of(root, "class"))))
        return err_memory(err, folder);
    struct result_why *why = &slide->whys[slide->n_whys++];
    double scale = json_number_value(json_object_get(subject, "downsample")) / 2;
    *why = (struct result_why){
        .score = json_number_value(json_object_get(subject, "score")),
        .x_l0 = middle(subject, "x_l0", "width", scale),
        .y_l0 = middle(subject, "y_l0", "height", scale),
    };
    return add_maps(root, subject, folder, why, err);
}

static int by_score(const void *a, const void *b)
{
    const struct result_why *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    if (x->y_l0 != y->y_l0)
        return x->y_l0 < y->y_l0 ? -1 : 1;
    return (x->x_l0 > y->x_l0) - (x->x_l0 < y->x_l0);
}

bool results_take_explain(struct results *results, const char *folder, struct err *err)
{
    struct err why = { 0 };
    char *path = text_format("%s/explain.json", folder);
    if (!path)
        return err_memory(err, folder);
    json_t *root = json_file_read(path, MOST_BYTES, &why);
    free(path);
    if (!root)
        return results_problem(results, why.text, err);
    const json_t *subjects = json_object_get(root, "subjects");
    bool ok = true;
    for (size_t i = 0; ok && i < json_array_size(subjects); i++)
        ok = add_subject(results, root, json_array_get(subjects, i), folder, err);
    for (size_t i = 0; ok && i < results->n_slides; i++)
        if (results->slides[i].n_whys > 1)
            qsort(results->slides[i].whys, results->slides[i].n_whys, sizeof(struct result_why),
                  by_score);
    json_decref(root);
    return ok;
}
