/* map_write.c: the files of one subject, and what of them is there already (map.h, map_work.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/json_file.h"
#include "base/npy.h"
#include "base/text.h"
#include "explain/map_work.h"
#include "explain/panel.h"
#include "net/model/classifier.h"

#define MOST_JSON_BYTES ((size_t)64 << 20)

char *map_path(const struct map_run *run, const struct subject *subject, const char *file)
{
    return text_format("%s/%s%s%s", run->request->folder, subject->name, file[0] ? "/" : "", file);
}

/* --- maps --- */

static char *column_path(const struct map_run *run, const struct subject *subject, int column,
                         const char *ending)
{
    return text_format("%s/%s/%s%s", run->request->folder, subject->name, run->columns[column].name,
                       ending);
}

bool map_write_column(const struct map_run *run, const struct subject *subject, int column,
                      const struct map_view *view, const struct attribution *raw, struct err *err)
{
    const struct explainer *explainer = run->columns[column].explainer;
    int64_t width = view->image.width, height = view->image.height;
    float *shown = map_for_viewing(raw, explainer, &view->frame, width, height);
    char *map = column_path(run, subject, column, ".npy");
    char *as_is = column_path(run, subject, column, "_raw.npy");
    char *picture = column_path(run, subject, column, ".png");
    struct panel panel = { .image = &view->image,
                           .map = shown,
                           .positive = explainer->positive,
                           .hot = run->request->hot };
    bool ok = (shown && map && as_is && picture) || err_memory(err, "a map");
    ok = ok && npy_write(as_is, raw->values, raw->height, raw->width, err) &&
         npy_write(map, shown, height, width, err) &&
         (!explainer->pixelwise || panel_soften(shown, width, height, explainer->positive, err)) &&
         panel_write(picture, &panel, err);
    free(shown);
    free(map);
    free(as_is);
    free(picture);
    return ok;
}

/* --- subject.json --- */

static void put_belief(struct json_out *json, const struct belief_order *order)
{
    json_out_object(json, "belief");
    json_out_real(json, "deletion", order->deletion);
    json_out_real(json, "random_deletion", order->random_deletion);
    json_out_real(json, "insertion", order->insertion);
    json_out_real(json, "random_insertion", order->random_insertion);
    json_out_real(json, "better_by", order->better_by);
    for (int curve = 0; curve < 2; curve++) {
        json_out_array_line(json, curve ? "insertion_curve" : "deletion_curve");
        for (int64_t i = 0; i <= order->steps; i++)
            json_out_real(json, NULL, curve ? order->insertion_curve[i] : order->deletion_curve[i]);
        json_out_close_array(json);
    }
    json_out_close_object(json);
}

static void put_inside(struct json_out *json, const struct belief_inside *inside)
{
    json_out_object_line(json, "inside");
    json_out_real(json, "map_share", inside->map_share);
    json_out_real(json, "area_share", inside->area_share);
    json_out_real(json, "enrichment", inside->enrichment);
    json_out_close_object(json);
}

static void put_maps(struct json_out *json, const struct map_run *run,
                     const struct map_numbers *numbers)
{
    json_out_array(json, "maps");
    for (int i = 0; i < run->n_columns; i++) {
        const struct map_column *column = &run->columns[i];
        json_out_object(json, NULL);
        json_out_text(json, "name", column->name);
        json_out_text(json, "method", column->explainer->name);
        json_out_text(json, "layer", column->layer >= 0 ? column->layer_name : NULL);
        json_out_array_line(json, "raw_size"); /* height, width */
        json_out_int(json, NULL, numbers->height[i]);
        json_out_int(json, NULL, numbers->width[i]);
        json_out_close_array(json);
        json_out_real(json, "raw_min", numbers->low[i]);
        json_out_real(json, "raw_max", numbers->high[i]);
        put_belief(json, &numbers->orders[i]);
        if (run->inside)
            put_inside(json, &numbers->inside[i]);
        json_out_close_object(json);
    }
    json_out_close_array(json);
    json_out_array(json, "agreement"); /* [maps, maps]: Spearman's rank correlation */
    for (int i = 0; i < run->n_columns; i++) {
        json_out_array_line(json, NULL);
        for (int k = 0; k < run->n_columns; k++)
            json_out_real(json, NULL, numbers->agreement[i * run->n_columns + k]);
        json_out_close_array(json);
    }
    json_out_close_array(json);
}

/* What is known of the subject before anything is made. */
static void put_facts(struct json_out *json, const struct map_run *run,
                      const struct subject *subject, const char *identity)
{
    const struct model_config *config = &run->request->model->config;
    bool placed = subject->x_l0 >= 0 || subject->y_l0 >= 0 || subject->downsample > 0;
    json_out_text(json, "name", subject->name);
    json_out_text(json, "file", subject->file);
    json_out_text(json, "slide", subject->slide[0] ? subject->slide : NULL);
    if (placed) {
        json_out_int(json, "x_l0", subject->x_l0);
        json_out_int(json, "y_l0", subject->y_l0);
    } else {
        json_out_text(json, "x_l0", NULL);
        json_out_text(json, "y_l0", NULL);
    }
    json_out_real(json, "downsample", subject->downsample > 0 ? subject->downsample : NAN);
    json_out_real(json, "mpp", subject->mpp > 0 ? subject->mpp : NAN);
    if (subject->lesion > 0)
        json_out_int(json, "lesion", subject->lesion);
    else
        json_out_text(json, "lesion", NULL);
    json_out_text(json, "class", config->class_names[run->subjects->class_index]);
    json_out_text(json, "model", run->request->model_name);
    json_out_text(json, "model_hash", run->model_hash);
    json_out_text(json, "identity", identity);
}

static void put_seen(struct json_out *json, const struct map_run *run,
                     const struct subject *subject, const struct map_view *view)
{
    const struct model_config *config = &run->request->model->config;
    const struct map_frame *frame = &view->frame;
    json_out_int(json, "width", view->image.width);
    json_out_int(json, "height", view->image.height);
    json_out_array_line(json, "seen"); /* of the image, by the network: left, top, width, height */
    json_out_int(json, NULL, frame->left);
    json_out_int(json, NULL, frame->top);
    json_out_int(json, NULL, frame->width);
    json_out_int(json, NULL, frame->height);
    json_out_close_array(json);
    json_out_array_line(json, "input_size"); /* height, width */
    json_out_int(json, NULL, view->sized.height);
    json_out_int(json, NULL, view->sized.width);
    json_out_close_array(json);
    json_out_real(json, "score", view->view.score);
    json_out_real(json, "picked_score", subject->found);
    json_out_object_line(json, "scores");
    for (int64_t i = 0; i < config->num_classes; i++)
        json_out_real(json, config->class_names[i], view->scores[i]);
    json_out_close_object(json);
}

static bool write_json(const struct map_run *run, const struct subject *subject,
                       const struct map_view *view, const struct map_numbers *numbers,
                       const struct err *why, struct err *err)
{
    struct file_out out;
    struct json_out json;
    char *folder = map_path(run, subject, ""), *identity = map_identity(run, subject);
    bool ok = ((folder && identity) || err_memory(err, "a map")) && file_make_folder(folder, err) &&
              file_out_open_in(&out, folder, "subject.json", err);
    if (ok) {
        json_out_begin(&json, out.stream);
        json_out_object(&json, NULL);
        put_facts(&json, run, subject, identity);
        if (why) {
            json_out_text(&json, "error", why->text);
        } else {
            put_seen(&json, run, subject, view);
            put_maps(&json, run, numbers);
        }
        json_out_close_object(&json);
        json_out_end(&json);
        ok = file_out_commit(&out, err);
    }
    free(folder);
    free(identity);
    return ok;
}

bool map_write_subject(const struct map_run *run, const struct subject *subject,
                       const struct map_view *view, const struct map_numbers *numbers,
                       struct err *err)
{
    return write_json(run, subject, view, numbers, NULL, err);
}

bool map_write_failure(const struct map_run *run, const struct subject *subject,
                       const struct err *why, struct err *err)
{
    return write_json(run, subject, NULL, NULL, why, err);
}

/* --- what is there --- */

json_t *map_read_subject(const struct map_run *run, const struct subject *subject)
{
    char *path = map_path(run, subject, "subject.json");
    json_t *object = path ? json_file_read(path, MOST_JSON_BYTES, NULL) : NULL;
    free(path);
    return object;
}

static bool files_exist(const struct map_run *run, const struct subject *subject)
{
    static const char *const endings[] = { ".npy", "_raw.npy", ".png" };
    bool all = true;
    for (int i = 0; i < run->n_columns; i++)
        for (size_t k = 0; all && k < sizeof endings / sizeof *endings; k++) {
            char *path = column_path(run, subject, i, endings[k]);
            all = path && file_exists(path);
            free(path);
        }
    return all;
}

bool map_done(const struct map_run *run, const struct subject *subject)
{
    json_t *object = map_read_subject(run, subject);
    char *identity = map_identity(run, subject);
    const char *then = json_string_value(json_object_get(object, "identity"));
    bool done = then && identity && strcmp(then, identity) == 0 &&
                !json_object_get(object, "error") && files_exist(run, subject);
    json_decref(object);
    free(identity);
    return done;
}

static bool refuse(const char *path, const char *then, const char *now, struct err *err)
{
    char was[300], is[300];
    text_other_words(then, now, was, sizeof was);
    text_other_words(now, then, is, sizeof is);
    return err_set(err, ERR_USAGE,
                   "%.400s: was made with other options, another model or from another file; pass "
                   "--overwrite or another -o folder\n  then: %s\n  now:  %s",
                   path, was, is);
}

static bool prepare_subject(const struct map_run *run, const struct subject *subject,
                            struct err *err)
{
    json_t *object = map_read_subject(run, subject);
    char *now = map_identity(run, subject), *path = map_path(run, subject, "subject.json");
    const char *then = json_string_value(json_object_get(object, "identity"));
    bool ok = (now && path) || err_memory(err, "the maps");
    if (ok && run->request->overwrite) {
        char *folder = map_path(run, subject, "");
        if (folder)
            file_remove_in(folder, "subject.json");
        free(folder);
    } else if (ok && then && strcmp(then, now) != 0) {
        ok = refuse(path, then, now, err);
    }
    json_decref(object);
    free(now);
    free(path);
    return ok;
}

bool map_prepare(const struct map_run *run, struct err *err)
{
    bool ok = true;
    for (int64_t i = 0; ok && i < run->subjects->n; i++)
        ok = prepare_subject(run, &run->subjects->items[i], err);
    if (ok && run->request->overwrite)
        file_remove_in(run->request->folder, "redrawn.json");
    return ok;
}
