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

static bool same_options(const char *file, const char *then, const char *now, struct err *err)
{
    char was[300], is[300];
    if (strcmp(then, now) == 0)
        return true;
    text_other_words(then, now, was, sizeof was);
    text_other_words(now, then, is, sizeof is);
    return err_set(err, ERR_USAGE,
                   "%.400s: was made with other options or another model; pass --overwrite or "
                   "another -o folder\n  then: %s\n  now:  %s",
                   file, was[0] ? was : "unknown", is);
}

/* A slide that is gone cannot have been replaced. */
static bool same_inputs(const struct predict *predict, struct predict_slide *slide,
                        const char *file, const char *then, struct err *err)
{
    if (!file_exists(predict->slides->entries[slide->index].path))
        return true;
    return (slide->inputs[0] || predict_inputs(predict, slide->index, slide->inputs, err)) &&
           inputs_check(file, then, slide->inputs, err);
}

bool predict_same(const struct predict *predict, struct predict_slide *slide, const char *file,
                  const struct heatmap_info *made, struct err *err)
{
    char *now = predict_line(predict, slide->index);
    char *then = line_of(predict, slide->index, made->options, made->mpp_l0, made->path);
    bool ok = (now && then) || err_memory(err, file);
    ok = ok && same_options(file, then, now, err) &&
         same_inputs(predict, slide, file, made->inputs, err);
    free(now);
    free(then);
    return ok;
}

bool predict_hold(const struct predict *predict, const struct predict_slide *slide, struct err *err)
{
    char now[INPUTS_ROOM];
    return predict_inputs(predict, slide->index, now, err) &&
           inputs_hold(predict->slides->entries[slide->index].path, slide->partition.info.inputs,
                       now, "run the command again with --overwrite", err);
}

/* Of heatmap.json or plan.json in the slide's folder: is it there, and would it be made the same
 * way today? Of a damaged one nothing is known. *made is the caller's; free with heatmap_info_free.
 */
static bool look_at(const struct predict *predict, struct predict_slide *slide, const char *name,
                    bool *there, struct heatmap_info *made, struct err *err)
{
    json_t *object = NULL;
    char *file = text_format("%s/%s", slide->folder, name);
    *there = file && file_exists(file);
    bool ok = file || err_memory(err, slide->folder);
    if (ok && *there) {
        ok = heatmap_json_load(file, &object, err) && heatmap_json_get(object, file, made, err);
        if (!ok && err)
            err_set(err, ERR_USAGE,
                    "%.400s: is damaged or from another version; pass --overwrite or another -o "
                    "folder",
                    file);
        ok = ok &&
             (predict->prepared[slide->index] || predict_same(predict, slide, file, made, err));
    }
    json_decref(object);
    free(file);
    return ok;
}

bool predict_refuse(const struct predict *predict, size_t slide, struct err *err)
{
    bool there;
    struct predict_slide work = { .index = slide, .folder = predict_folder(predict, slide) };
    struct heatmap_info made = { 0 }, planned = { 0 };
    bool ok = (work.folder || err_memory(err, "a slide's folder")) &&
              look_at(predict, &work, "heatmap.json", &there, &made, err) &&
              look_at(predict, &work, "plan.json", &there, &planned, err);
    heatmap_info_free(&made);
    heatmap_info_free(&planned);
    predict_leave(&work);
    return ok;
}

bool predict_enter(const struct predict *predict, size_t slide, struct predict_slide *out,
                   struct err *err)
{
    *out = (struct predict_slide){ .index = slide, .state = PREDICT_MISSING };
    out->folder = predict_folder(predict, slide);
    if (!out->folder)
        return err_memory(err, "a slide's folder");
    bool there = false, store = specimen_is_store(predict->slides->entries[slide].path);
    struct heatmap_info made = { 0 }, planned = { 0 };
    bool ok = look_at(predict, out, "heatmap.json", &there, &made, err);
    if (ok && there && heatmap_open_scores(out->folder, &made, &out->heatmap, NULL))
        out->state = exports_exist(out->folder, predict->exports, !store, &predict->options->export)
                         ? PREDICT_DONE
                         : PREDICT_SCORED;
    else if (ok && !predict->prepared[slide])
        ok = look_at(predict, out, "plan.json", &there, &planned, err);
    if (!ok)
        out->state = PREDICT_OTHER;
    heatmap_info_free(&made);
    heatmap_info_free(&planned);
    return ok;
}

void predict_leave(struct predict_slide *slide)
{
    partition_free(&slide->partition);
    if (slide->specimen)
        specimen_close(slide->specimen);
    free(slide->specimen);
    heatmap_close(slide->heatmap);
    free(slide->folder);
    *slide = (struct predict_slide){ 0 };
}
