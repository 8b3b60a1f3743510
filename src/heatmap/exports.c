/* exports.c: the exports of one heatmap in its slide's folder, see export.h. */
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "heatmap/export.h"
#include "heatmap/heatmap_json.h"
#include "base/text.h"

#define RECORD "exports.json"

/* All that decides what is in the files; the caller's, NULL if no memory. */
static char *options_text(const struct export_options *options)
{
    static const char *const rules[] = { "auto", "threshold", "winner" };
    return text_format("threshold=%.9g regions=%s class=%s tile=%lld", options->threshold,
                       rules[options->regions], options->class_name ? options->class_name : "",
                       (long long)options->tile_px);
}

/* Were the exports in the folder made with these options? */
static bool same_options(const char *folder, const struct export_options *options)
{
    char *path = text_format("%s/" RECORD, folder), *wanted = options_text(options);
    json_t *object = NULL;
    bool same = false;
    if (path && wanted && heatmap_json_load(path, &object, NULL)) {
        const char *found = json_string_value(json_object_get(object, "options"));
        same = found && strcmp(found, wanted) == 0;
    }
    json_decref(object);
    free(path);
    free(wanted);
    return same;
}

static bool write_record(const char *folder, const struct export_options *options, struct err *err)
{
    char *path = text_format("%s/" RECORD, folder), *text = options_text(options);
    struct file_out out;
    struct json_out json;
    bool ok = (path && text) || err_memory(err, folder);
    ok = ok && file_out_open(&out, path, err);
    if (ok) {
        json_out_begin(&json, out.stream);
        json_out_object(&json, NULL);
        json_out_text(&json, "options", text);
        json_out_close_object(&json);
        json_out_end(&json);
        ok = file_out_commit(&out, err);
    }
    free(path);
    free(text);
    return ok;
}

void exports_remove(const char *folder)
{
    for (size_t i = 0; exporters[i]; i++)
        file_remove_in(folder, exporters[i]->file);
    file_remove_in(folder, RECORD);
}

bool exports_exist(const char *folder, const struct exporter *const *list, bool has_slide,
                   const struct export_options *options)
{
    bool all = !list[0] || same_options(folder, options);
    for (size_t i = 0; all && list[i]; i++) {
        char *path = text_format("%s/%s", folder, list[i]->file);
        all = (list[i]->needs_slide && !has_slide) || (path && file_exists(path));
        free(path);
    }
    return all;
}

bool exports_write(const char *folder, const struct exporter *const *list,
                   const struct export_request *request, const struct ctx *ctx, struct err *err)
{
    bool ok = true;
    if (list[0] && !same_options(folder, request->options)) {
        exports_remove(folder);
        ok = write_record(folder, request->options, err);
    }
    for (size_t i = 0; ok && list[i]; i++) {
        char *path = text_format("%s/%s", folder, list[i]->file);
        ok = path || err_memory(err, folder);
        if (ok && !file_exists(path) && (request->slide || !list[i]->needs_slide))
            ok = ctx_stopped(ctx) ? err_stopped(err) : list[i]->write(request, path, ctx, err);
        free(path);
    }
    return ok;
}
