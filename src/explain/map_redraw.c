/* map_redraw.c: how the maps change where the weights of the network are redrawn: redrawn.json, for
 * a few of the subjects (map.h). */
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "base/file.h"
#include "base/json_file.h"
#include "base/npy.h"
#include "base/text.h"
#include "explain/map_work.h"

#define MOST_JSON_BYTES ((size_t)1 << 20)

struct redrawing {
    const struct subject **subjects; /* [n] */
    struct map_view *views;
    struct explain_view *plain;
    struct attribution *maps; /* [columns, n] */
    int n, room;
};

static void redrawing_free(struct redrawing *r, int n_columns)
{
    for (int i = 0; r->views && i < r->n; i++)
        map_view_free(&r->views[i]);
    for (int i = 0; r->maps && i < n_columns * r->room; i++)
        free(r->maps[i].values);
    free(r->subjects);
    free(r->views);
    free(r->plain);
    free(r->maps);
}

/* The line that redrawn.json is known by; the caller's. */
static char *redrawn_identity(const struct map_run *run, const struct redrawing *r)
{
    uint64_t hash = IDENTITY_HASH_BEGIN;
    for (int i = 0; i < r->n; i++) {
        char *line = map_identity(run, r->subjects[i]);
        if (!line)
            return NULL;
        hash = identity_hash(hash, line, strlen(line) + 1);
        free(line);
    }
    return text_format("%s subjects=%d:%016llx", run->options, r->n, (unsigned long long)hash);
}

/* Subjects that are done, spread over the list. */
static bool choose(const struct map_run *run, struct redrawing *r, struct err *err)
{
    const struct subjects *subjects = run->subjects;
    int64_t wanted = run->request->redrawn_subjects, done = 0, at = 0;
    const struct subject **all = calloc((size_t)subjects->n + 1, sizeof *all);
    if (!all)
        return err_memory(err, "the maps");
    for (int64_t i = 0; i < subjects->n; i++)
        if (map_done(run, &subjects->items[i]))
            all[done++] = &subjects->items[i];
    r->room = (int)(wanted < done ? wanted : done);
    size_t n = (size_t)r->room + 1;
    r->subjects = calloc(n, sizeof *r->subjects);
    r->views = calloc(n, sizeof *r->views);
    r->plain = calloc(n, sizeof *r->plain);
    r->maps = calloc(n * (size_t)run->n_columns, sizeof *r->maps);
    bool ok = (r->subjects && r->views && r->plain && r->maps) || err_memory(err, "the maps");
    for (; ok && at < r->room; at++)
        r->subjects[r->n++] = all[at * done / r->room];
    free(all);
    return ok;
}

/* The views of the subjects and their maps as they were written. Only views of one size can be
 * looked at together: those of the first. */
static bool load(struct map_run *run, struct redrawing *r, struct err *err)
{
    struct map_worker *worker = &run->workers[0];
    int n = r->n, kept = 0;
    bool ok = true;
    for (int i = 0; ok && i < n; i++) {
        struct map_view view = { 0 };
        r->subjects[kept] = r->subjects[i];
        ok = subjects_enter(run->subjects, r->subjects[i]->source, err) &&
             map_view_make(run, worker, r->subjects[i], &view, err);
        bool same = ok && (kept == 0 || (view.sized.width == r->views[0].sized.width &&
                                         view.sized.height == r->views[0].sized.height));
        if (!same) {
            map_view_free(&view);
            continue;
        }
        r->views[kept] = view;
        r->plain[kept] = view.view;
        r->plain[kept].image = &r->views[kept].sized;
        kept++;
    }
    r->n = kept;
    for (int c = 0; ok && c < run->n_columns; c++)
        for (int i = 0; ok && i < r->n; i++) {
            struct attribution *map = &r->maps[c * r->n + i];
            char *file = text_format("%s_raw.npy", run->columns[c].name);
            char *path = file ? map_path(run, r->subjects[i], file) : NULL;
            ok = path ? npy_read(path, &map->values, &map->height, &map->width, err)
                      : err_memory(err, "a map");
            free(file);
            free(path);
        }
    return ok;
}

static bool save(const struct map_run *run, const struct redrawing *r, const char *identity,
                 const struct belief_redrawn *redrawn, struct err *err)
{
    struct file_out out;
    struct json_out json;
    if (!file_out_open_in(&out, run->request->folder, "redrawn.json", err))
        return false;
    json_out_begin(&json, out.stream);
    json_out_object(&json, NULL);
    json_out_text(&json, "identity", identity);
    json_out_array_line(&json, "subjects");
    for (int i = 0; i < r->n; i++)
        json_out_text(&json, NULL, r->subjects[i]->name);
    json_out_close_array(&json);
    json_out_array(&json, "maps");
    for (int c = 0; c < run->n_columns; c++) {
        json_out_object(&json, NULL);
        json_out_text(&json, "name", run->columns[c].name);
        json_out_array_line(&json, "share"); /* of the layers that were redrawn, from the top */
        for (int d = 0; d < BELIEF_DEPTHS; d++)
            json_out_real(&json, NULL, redrawn[c].share[d]);
        json_out_close_array(&json);
        json_out_array_line(&json, "correlation");
        for (int d = 0; d < BELIEF_DEPTHS; d++)
            json_out_real(&json, NULL, redrawn[c].correlation[d]);
        json_out_close_array(&json);
        json_out_bool(&json, "no_explanation", redrawn[c].no_explanation);
        json_out_close_object(&json);
    }
    json_out_close_array(&json);
    json_out_close_object(&json);
    json_out_end(&json);
    return file_out_commit(&out, err);
}

json_t *map_read_redrawn(const struct map_run *run)
{
    char *path = text_format("%s/redrawn.json", run->request->folder);
    json_t *object = path ? json_file_read(path, MOST_JSON_BYTES, NULL) : NULL;
    const char *identity = json_string_value(json_object_get(object, "identity"));
    size_t length = strlen(run->options);
    free(path);
    if (identity && strncmp(identity, run->options, length) == 0 && identity[length] == ' ')
        return object;
    json_decref(object);
    return NULL;
}

static bool is_there(const struct map_run *run, const char *identity)
{
    json_t *object = map_read_redrawn(run);
    const char *then = json_string_value(json_object_get(object, "identity"));
    bool there = then && strcmp(then, identity) == 0;
    json_decref(object);
    return there;
}

static bool redraw(struct map_run *run, struct redrawing *r, const char *identity,
                   const struct ctx *ctx, struct err *err)
{
    struct belief_method methods[MAP_MOST_COLUMNS];
    struct belief_redrawn *redrawn = calloc((size_t)run->n_columns, sizeof *redrawn);
    for (int c = 0; c < run->n_columns; c++)
        methods[c] = (struct belief_method){ run->columns[c].explainer,
                                             run->columns[c].layer >= 0 ? run->columns[c].layer_name
                                                                        : NULL };
    struct explain_settings settings = run->workers[0].settings;
    struct belief_settings belief = run->request->belief;
    settings.threads = run->threads_each * run->n_workers;
    bool ok = redrawn || err_memory(err, "the maps");
    ok = ok && load(run, r, err) && map_forget(run, err);
    if (ok) {
        settings.width = r->views[0].sized.width;
        settings.height = r->views[0].sized.height;
        console_begin(ctx->console, "with redrawn weights",
                      (int64_t)BELIEF_DEPTHS * run->n_columns * r->n, "maps");
        ok = belief_redraw(&settings, &belief, methods, run->n_columns, r->plain, r->n, r->maps,
                           ctx, redrawn, err) &&
             save(run, r, identity, redrawn, err);
        console_end(ctx->console);
    }
    free(redrawn);
    return ok;
}

bool map_redraw(struct map_run *run, const struct ctx *ctx, struct err *err)
{
    struct redrawing r = { 0 };
    bool ok = choose(run, &r, err);
    char *identity = ok ? redrawn_identity(run, &r) : NULL;
    ok = ok && (identity || err_memory(err, "the maps"));
    if (ok && r.n > 0 && !is_there(run, identity)) {
        ok = redraw(run, &r, identity, ctx, err);
    }
    free(identity);
    redrawing_free(&r, run->n_columns);
    return ok;
}
