/* slide_view.c: the pictures of one slide (slide_view.h). */
#include "report/slide_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "report/slide_truth.h"
#include "slide/slide.h"
#include "base/text.h"

#define MOST_SIDE 1200 /* px of the longer side of a picture */
#define PATCH_SIDE 224
#define JPEG_QUALITY 86

struct work {
    const struct result_slide *slide;
    const struct class_map *class_map;
    const char *folder;
    const struct ctx *ctx;
    struct slide_view *view;
    struct heatmap *heatmap;
    struct slide *file; /* NULL: not to be opened */
};

/* The first problem is kept; later ones often follow from it. */
static void note_problem(struct slide_view *view, const char *text)
{
    if (!view->problem[0])
        snprintf(view->problem, sizeof view->problem, "%s", text);
}

static bool path_in(const struct work *work, const char *name, char **out, struct err *err)
{
    *out = text_format("%s/%s", work->folder, name);
    return *out || err_memory(err, name);
}

static void choose_size(struct slide_view *view)
{
    const struct heatmap_info *info = &view->info;
    double longer = (double)(info->width_l0 > info->height_l0 ? info->width_l0 : info->height_l0);
    double downsample = longer > MOST_SIDE ? longer / MOST_SIDE : 1;
    view->width = (int64_t)ceil((double)info->width_l0 / downsample);
    view->height = (int64_t)ceil((double)info->height_l0 / downsample);
}

static bool make_overview(struct work *work, struct err *err)
{
    struct slide_view *view = work->view;
    const struct heatmap_info *info = &view->info;
    struct err why = { 0 };
    struct image image = { 0 };
    double longer = (double)(info->width_l0 > info->height_l0 ? info->width_l0 : info->height_l0);
    /* A heatmap records the path as it was typed; the record of the run has the absolute path. */
    const char *recorded = work->slide->path;
    const char *file = recorded && file_exists(recorded) ? recorded : info->path;
    if (!slide_open(file, info->mpp_l0, &work->file, &why) ||
        !slide_overview(work->file, longer > MOST_SIDE ? longer / MOST_SIDE : 1, NULL, &image,
                        &why)) {
        note_problem(view, why.text);
        slide_close(work->file);
        work->file = NULL;
        return true;
    }
    char *path = NULL;
    view->width = image.width;
    view->height = image.height;
    view->overview = true;
    bool ok = path_in(work, "overview.jpg", &path, err) &&
              image_write_jpeg(path, &image, JPEG_QUALITY, err);
    image_free(&image);
    free(path);
    return ok;
}

/* slides/<number>/<name><suffix>.<extension>; the caller's. */
static bool picture_path(const struct work *work, const char *name, const char *suffix,
                         const char *extension, char **out, struct err *err)
{
    *out = text_format("%s/%s%s.%s", work->folder, name, suffix, extension);
    return *out || err_memory(err, name);
}

static bool write_heat(struct work *work, const struct picture *picture, const char *suffix,
                       struct err *err)
{
    char *heat = NULL, *overlay = NULL;
    bool ok = picture_path(work, "heat", suffix, "png", &heat, err) &&
              picture_path(work, "overlay", suffix, "png", &overlay, err) &&
              picture_write_heat(heat, &picture->heat, false, err) &&
              picture_write_heat(overlay, &picture->heat, true, err);
    free(heat), free(overlay);
    return ok;
}

static bool write_tissue(struct work *work, const struct image *heat, struct err *err)
{
    char *path = NULL;
    bool ok = path_in(work, "tissue.svg", &path, err) &&
              picture_write_outline(path, heat, "#00a040", err);
    free(path);
    return ok;
}

/* Scores that cannot be read are a problem of the slide, not of the page. */
static bool pass_unless_stopped(struct work *work, const struct err *why, struct err *err)
{
    if (why->kind == ERR_STOPPED)
        return *err = *why, false;
    note_problem(work->view, why->text);
    return true;
}

/* The pictures of one class. *read: its scores could be read. */
static bool make_class(struct work *work, struct view_class *class, bool *read, struct err *err)
{
    struct slide_view *view = work->view;
    struct picture picture;
    struct err why = { 0 };
    *read = picture_scan(work->heatmap, class->index, view->width, view->height, work->ctx,
                         &picture, &why);
    if (!*read)
        return pass_unless_stopped(work, &why, err);
    class->n_peaks = picture.n_peaks;
    memcpy(class->peaks, picture.peaks, sizeof class->peaks);
    if (class->index == heatmap_main_class(&view->info))
        view->mean = picture.mean, view->max = picture.max;
    bool ok = write_heat(work, &picture, class->suffix, err) &&
              (view->heat || write_tissue(work, &picture.heat, err));
    view->heat = true;
    picture_free(&picture);
    return ok;
}

static bool write_winners(struct work *work, const struct image *winners, struct err *err)
{
    char *heat = NULL, *overlay = NULL;
    bool ok = path_in(work, "heat-classes.png", &heat, err) &&
              path_in(work, "overlay-classes.png", &overlay, err) &&
              picture_write_winners(heat, winners, &work->view->info, false, err) &&
              picture_write_winners(overlay, winners, &work->view->info, true, err);
    free(heat), free(overlay);
    return ok;
}

static bool make_winners(struct work *work, struct err *err)
{
    struct slide_view *view = work->view;
    struct image winners = { 0 };
    struct err why = { 0 };
    view->won = calloc((size_t)view->info.n_classes, sizeof *view->won);
    if (!view->won)
        return err_memory(err, "the classes");
    bool read =
        picture_winners(work->heatmap, view->width, view->height, work->ctx, &winners, &why) &&
        picture_count_winners(work->heatmap, work->ctx, view->won, &why);
    bool ok = read ? write_winners(work, &winners, err) : pass_unless_stopped(work, &why, err);
    image_free(&winners);
    if (!read)
        free(view->won), view->won = NULL;
    return ok;
}

/* The class that is shown: the main one; of more than two, each, the first of very many. */
static void choose_classes(struct slide_view *view)
{
    const struct heatmap_info *info = &view->info;
    if (!heatmap_has_winners(info)) {
        view->n_classes = 1;
        view->classes[0] = (struct view_class){ .index = heatmap_main_class(info) };
        return;
    }
    view->n_classes = info->n_classes < VIEW_CLASSES ? (int)info->n_classes : VIEW_CLASSES;
    for (int i = 0; i < view->n_classes; i++) {
        view->classes[i] = (struct view_class){ .index = i };
        snprintf(view->classes[i].suffix, sizeof view->classes[i].suffix, "-%d", i);
    }
}

static double cell_mm2(const struct heatmap_info *info)
{
    double side_mm = (double)info->stride * info->mpp / 1000;
    return info->mpp > 0 ? side_mm * side_mm : NAN;
}

double slide_view_class_mm2(const struct slide_view *view, int64_t class_index)
{
    return view->won ? (double)view->won[class_index] * cell_mm2(&view->info) : NAN;
}

static bool make_heat(struct work *work, struct err *err)
{
    struct slide_view *view = work->view;
    bool ok = true, read = true;
    choose_classes(view);
    for (int i = 0; ok && read && i < view->n_classes; i++)
        ok = make_class(work, &view->classes[i], &read, err);
    view->heat = ok && read;
    if (ok && read && heatmap_has_winners(&view->info))
        ok = make_winners(work, err);
    if (view->heat)
        view->tissue_mm2 = (double)view->info.scored * cell_mm2(&view->info);
    return ok;
}

/* The window of a peak at the resolution the network saw, if the slide has a suitable level. */
static bool read_window(struct work *work, const struct picture_peak *peak, struct image *out,
                        struct err *err)
{
    const struct heatmap_info *info = &work->view->info;
    const struct slide_info *slide = slide_info(work->file);
    int level = 0;
    while (level + 1 < slide->n_levels &&
           slide->levels[level + 1].downsample <= 1.01 * info->downsample)
        level++;
    double half = (double)(info->window / 2),
           scale = info->downsample / slide->levels[level].downsample;
    double x = ((double)(info->origin_x + peak->column * info->stride) - half) * scale;
    double y = ((double)(info->origin_y + peak->row * info->stride) - half) * scale;
    int64_t side = (int64_t)ceil((double)info->window * scale);
    struct image read = { 0 };
    side = side < 1 ? 1 : side > 4096 ? 4096 : side;
    bool ok =
        slide_read(work->file, level, (int64_t)floor(x), (int64_t)floor(y), side, side, &read, err);
    if (ok && side > PATCH_SIDE) {
        ok = image_resize(&read, PATCH_SIDE, PATCH_SIDE, out, err);
        image_free(&read);
    } else if (ok) {
        *out = read;
    }
    return ok;
}

static bool write_window(struct work *work, const struct view_class *class, int number,
                         const struct image *image, struct err *err)
{
    char *path = text_format("%s/peak%d%s.jpg", work->folder, number, class->suffix);
    bool ok = path ? image_write_jpeg(path, image, JPEG_QUALITY, err) : err_memory(err, "a name");
    free(path);
    return ok;
}

/* The windows of the highest scores of a class. */
static bool make_patches(struct work *work, struct view_class *class, struct err *err)
{
    bool ok = true;
    class->patches = work->file && class->n_peaks > 0;
    for (int i = 0; ok && class->patches && i < class->n_peaks; i++) {
        struct image image = { 0 };
        struct err why = { 0 };
        if (read_window(work, &class->peaks[i], &image, &why)) {
            ok = write_window(work, class, i + 1, &image, err);
            image_free(&image);
        } else {
            note_problem(work->view, why.text);
            class->patches = false;
        }
    }
    return ok;
}

/* A problem unrelated to the previous ones. */
static void note_another(struct slide_view *view, const char *text)
{
    size_t used = strlen(view->problem);
    snprintf(view->problem + used, sizeof view->problem - used, "%s%s", used > 0 ? "; " : "", text);
}

static bool make_truth(struct work *work, struct err *err)
{
    struct slide_view *view = work->view;
    struct err why = { 0 };
    char *path = NULL;
    if (!work->slide->annotation)
        return true;
    struct slide_truth truth = { .annotation = work->slide->annotation,
                                 .slide = work->slide->name,
                                 .info = &view->info,
                                 .class_map = work->class_map,
                                 .width = view->width,
                                 .height = view->height };
    bool ok = path_in(work, "truth.svg", &path, err) &&
              slide_truth_write(&truth, path, &view->truth, &why, err);
    if (ok && !view->truth)
        note_another(view, why.text);
    free(path);
    return ok;
}

/* Highest score first. */
static void insert_lesion(struct slide_view *view, struct lesion lesion)
{
    size_t at = view->n_lesions;
    while (at > 0 && view->lesions[at - 1].score < lesion.score)
        at--;
    if (at == VIEW_LESIONS)
        return;
    size_t last = view->n_lesions < VIEW_LESIONS ? view->n_lesions++ : VIEW_LESIONS - 1;
    memmove(&view->lesions[at + 1], &view->lesions[at], (last - at) * sizeof *view->lesions);
    view->lesions[at] = lesion;
}

static void read_lesions(const struct result_slide *slide, struct slide_view *view)
{
    struct lesion_list list = { 0 };
    struct err why = { 0 };
    if (!slide->lesions)
        return;
    if (!lesions_read(slide->lesions, &list, &why))
        note_problem(view, why.text);
    for (int64_t i = 0; i < list.n; i++)
        insert_lesion(view, list.items[i]);
    view->all_lesions = (size_t)list.n;
    lesions_free(&list);
}

static bool make_marks(struct work *work, struct err *err)
{
    struct slide_view *view = work->view;
    struct picture_mark marks[VIEW_LESIONS];
    double scale_x = (double)view->width / (double)view->info.width_l0;
    double scale_y = (double)view->height / (double)view->info.height_l0;
    for (size_t i = 0; i < view->n_lesions; i++)
        marks[i] = (struct picture_mark){ view->lesions[i].x_l0 * scale_x,
                                          view->lesions[i].y_l0 * scale_y };
    char *path = NULL;
    bool ok = view->n_lesions == 0 ||
              (path_in(work, "lesions.svg", &path, err) &&
               picture_write_marks(path, view->width, view->height, marks, view->n_lesions, err));
    free(path);
    return ok;
}

bool slide_view_make(const struct result_slide *slide, const struct class_map *class_map,
                     const char *folder, const struct ctx *ctx, struct slide_view *out,
                     struct err *err)
{
    *out = (struct slide_view){ .mean = NAN, .max = NAN, .tissue_mm2 = NAN };
    struct work work = {
        .slide = slide, .class_map = class_map, .folder = folder, .ctx = ctx, .view = out
    };
    struct err why = { 0 };
    if (slide->error)
        note_problem(out, slide->error);
    read_lesions(slide, out);
    if (!slide_why_make(slide, folder, out, err))
        return false;
    if (!slide->heatmap)
        return true;
    if (!heatmap_open(slide->heatmap, &work.heatmap, &why)) {
        note_problem(out, why.text);
        return true;
    }
    bool ok = heatmap_info_copy(heatmap_info(work.heatmap), &out->info, err);
    if (ok) {
        out->no_tissue = out->info.scored == 0;
        choose_size(out);
        ok = make_overview(&work, err) && make_heat(&work, err);
        for (int i = 0; ok && i < out->n_classes; i++)
            ok = make_patches(&work, &out->classes[i], err);
        ok = ok && make_truth(&work, err) && make_marks(&work, err);
    }
    slide_close(work.file);
    heatmap_close(work.heatmap);
    if (!ok)
        slide_view_free(out);
    return ok;
}

void slide_view_free(struct slide_view *view)
{
    heatmap_info_free(&view->info);
    free(view->won);
    *view = (struct slide_view){ 0 };
}
