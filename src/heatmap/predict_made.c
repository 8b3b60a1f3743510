/* predict_made.c: what exists of a slide, and whether it would be made the same way today: with
 * the same options, from the same files. See predict.h. */
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "heatmap/heatmap_json.h"
#include "heatmap/predict_state.h"
#include "slide/slide_identity.h"
#include "base/text.h"

bool predict_inputs(const struct predict *predict, size_t slide, char out[INPUTS_ROOM],
                    struct err *err)
{
    const struct predict_options *options = predict->options;
    const struct slide_entry *entry = &predict->slides->entries[slide];
    struct identity identity;
    bool store = specimen_is_store(entry->path), ok;
    out[0] = 0;
    ok = store ? identity_of_sample(entry->path, &identity, err)
               : slide_identity(entry->path, &identity, err);
    if (!ok)
        return false;
    inputs_add(out, store ? "store" : "slide", &identity);
    if (options->tissue && !store) {
        char *mask = text_format("%s/%s_mask.png", options->tissue, entry->name);
        ok = mask ? identity_of_file(mask, &identity, err) : err_memory(err, entry->name);
        free(mask);
        inputs_add(out, "mask", &identity);
    }
    if (ok && options->stain != STAIN_NONE && options->stain_template) {
        ok = identity_of_file(options->stain_template, &identity, err);
        inputs_add(out, "template", &identity);
    }
    return ok;
}

/* Options as a line, with what the slide list may say otherwise of this slide; the caller's. An
 * empty mpp of the list says nothing, and none is said of a store. */
static char *line_of(const struct predict *predict, size_t slide, const char *options,
                     double mpp_l0, const char *path)
{
    const struct slide_entry *entry = &predict->slides->entries[slide];
    bool by_list =
        predict->options->slide_mpp <= 0 && entry->mpp > 0 && !specimen_is_store(entry->path);
    char mpp[40] = "";
    if (by_list)
        snprintf(mpp, sizeof mpp, " list-mpp=%.9g", mpp_l0);
    return text_format("%s%s of=%s", options, mpp, specimen_is_store(path) ? "store" : "slide");
}

char *predict_line(const struct predict *predict, size_t slide)
{
    const struct slide_entry *entry = &predict->slides->entries[slide];
    return line_of(predict, slide, predict->options_text, entry->mpp, entry->path);
}

/* The words of one line of options that another does not have, with spaces between them. */
static void other_words(const char *line, const char *than, char *out, size_t room)
{
    size_t used = 0;
    out[0] = 0;
    while (*(line += strspn(line, " "))) {
        size_t length = strcspn(line, " ");
        bool there = false;
        for (const char *at = than; !there && *(at += strspn(at, " ")); at += strcspn(at, " "))
            there = strcspn(at, " ") == length && strncmp(at, line, length) == 0;
        if (!there && used + length + 2 < room)
            used += (size_t)snprintf(out + used, room - used, "%s%.*s", used ? " " : "",
                                     (int)length, line);
        line += length;
    }
}

static bool same_options(const char *file, const char *then, const char *now, struct err *err)
{
    char was[300], is[300];
    if (strcmp(then, now) == 0)
        return true;
    other_words(then, now, was, sizeof was);
    other_words(now, then, is, sizeof is);
    return err_set(err, ERR_USAGE,
                   "%.400s: was made with other options or another model; pass --overwrite or "
                   "another -o folder\n  then: %s\n  now:  %s",
                   file, was[0] ? was : "unknown", is);
}

/* A slide that is gone cannot have been replaced. */
static bool same_inputs(const struct predict *predict, size_t slide, const char *file,
                        const char *then, struct err *err)
{
    char now[INPUTS_ROOM];
    return !file_exists(predict->slides->entries[slide].path) ||
           (predict_inputs(predict, slide, now, err) && inputs_check(file, then, now, err));
}

bool predict_same(const struct predict *predict, size_t slide, const char *file,
                  const struct heatmap_info *made, struct err *err)
{
    char *now = predict_line(predict, slide);
    char *then = line_of(predict, slide, made->options, made->mpp_l0, made->path);
    bool ok = (now && then) || err_memory(err, file);
    ok = ok && same_options(file, then, now, err) &&
         same_inputs(predict, slide, file, made->inputs, err);
    free(now);
    free(then);
    return ok;
}

bool predict_hold(const struct predict *predict, size_t slide, const struct partition *partition,
                  struct err *err)
{
    char now[INPUTS_ROOM];
    return predict_inputs(predict, slide, now, err) &&
           inputs_hold(predict->slides->entries[slide].path, partition->info.inputs, now,
                       "run the command again with --overwrite", err);
}

/* Of folder/name, heatmap.json or plan.json: is it there, and would it be made the same way today?
 * Of a damaged one nothing is known. */
static bool look_at(const struct predict *predict, size_t slide, const char *folder,
                    const char *name, bool *there, struct err *err)
{
    struct heatmap_info made = { 0 };
    json_t *object = NULL;
    char *file = text_format("%s/%s", folder, name);
    *there = file && file_exists(file);
    bool ok = file || err_memory(err, folder);
    if (ok && *there) {
        ok = heatmap_json_load(file, &object, err) && heatmap_json_get(object, file, &made, err);
        if (!ok && err)
            err_set(err, ERR_USAGE,
                    "%.400s: is damaged or from another version; pass --overwrite or another -o "
                    "folder",
                    file);
        ok = ok && predict_same(predict, slide, file, &made, err);
    }
    heatmap_info_free(&made);
    json_decref(object);
    free(file);
    return ok;
}

bool predict_refuse(const struct predict *predict, size_t slide, struct err *err)
{
    bool there;
    char *folder = predict_folder(predict, slide);
    bool ok = folder || err_memory(err, "a slide's folder");
    ok = ok && look_at(predict, slide, folder, "heatmap.json", &there, err) &&
         look_at(predict, slide, folder, "plan.json", &there, err);
    free(folder);
    return ok;
}

/* Are heatmap.json and the scores that it tells of both there? */
static bool is_whole(const char *folder)
{
    struct heatmap *heatmap = NULL;
    bool ok = heatmap_open(folder, &heatmap, NULL);
    heatmap_close(heatmap);
    return ok;
}

enum predict_state predict_look(const struct predict *predict, size_t slide)
{
    enum predict_state state = PREDICT_MISSING;
    bool store = specimen_is_store(predict->slides->entries[slide].path), there = false, planned;
    char *folder = predict_folder(predict, slide);
    if (!folder)
        return state;
    bool ours = look_at(predict, slide, folder, "heatmap.json", &there, NULL);
    if (there && ours && is_whole(folder))
        state = exports_exist(folder, predict->options->exports, !store, &predict->options->export)
                    ? PREDICT_DONE
                    : PREDICT_SCORED;
    else if ((there && !ours) || !look_at(predict, slide, folder, "plan.json", &planned, NULL))
        state = PREDICT_OTHER;
    free(folder);
    return state;
}
