/* slide_view.c: the pictures of one slide (slide_view.h). */
#include "report/slide_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "annotation/annotation.h"
#include "base/file.h"
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
        !slide_overview(work->file, longer > MOST_SIDE ? longer / MOST_SIDE : 1, &image, &why)) {
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

static bool write_heat(struct work *work, const struct picture *picture, struct err *err)
{
    char *heat = NULL, *overlay = NULL, *outline = NULL;
    bool ok = path_in(work, "heat.png", &heat, err) &&
              path_in(work, "overlay.png", &overlay, err) &&
              path_in(work, "tissue.svg", &outline, err) &&
              picture_write_heat(heat, &picture->heat, false, err) &&
              picture_write_heat(overlay, &picture->heat, true, err) &&
              picture_write_outline(outline, &picture->heat, "#00a040", err);
    free(heat), free(overlay), free(outline);
    return ok;
}

static bool make_heat(struct work *work, struct err *err)
{
    struct slide_view *view = work->view;
    struct picture picture;
    struct err why = { 0 };
    if (!picture_scan(work->heatmap, view->width, view->height, work->ctx, &picture, &why)) {
        if (why.kind == ERR_STOPPED)
            return *err = why, false;
        note_problem(view, why.text);
        return true;
    }
    view->heat = true;
    view->mean = picture.mean;
    view->max = picture.max;
    view->n_peaks = picture.n_peaks;
    memcpy(view->peaks, picture.peaks, sizeof view->peaks);
    double side_mm = (double)view->info.stride * view->info.mpp / 1000;
    view->tissue_mm2 = view->info.mpp > 0 ? (double)view->info.scored * side_mm * side_mm : NAN;
    bool ok = write_heat(work, &picture, err);
    picture_free(&picture);
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

static bool make_patches(struct work *work, struct err *err)
{
    struct slide_view *view = work->view;
    bool ok = true;
    view->patches = work->file && view->n_peaks > 0;
    for (int i = 0; ok && work->file && i < view->n_peaks; i++) {
        struct image image = { 0 };
        struct err why = { 0 };
        if (!read_window(work, &view->peaks[i], &image, &why)) {
            note_problem(view, why.text);
            view->patches = false;
            break;
        }
        char *path = text_format("%s/peak%d.jpg", work->folder, i + 1);
        ok = path ? image_write_jpeg(path, &image, JPEG_QUALITY, err) : err_memory(err, "a name");
        free(path);
        image_free(&image);
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
    struct annotation *annotation = NULL;
    struct image mask = { 0 };
    struct err why = { 0 };
    if (!work->slide->annotation)
        return true;
    double step = (double)view->info.width_l0 / (double)view->width;
    struct annotation_slide slide = { work->slide->name, view->info.width_l0,
                                      view->info.height_l0 };
    if (!annotation_read(work->slide->annotation, &slide, work->class_map, &annotation, &why) ||
        !annotation_mask(annotation, 0, 0, step, view->width, view->height, &mask, &why)) {
        note_another(view, why.text);
        annotation_free(annotation);
        return true;
    }
    char *path = NULL;
    view->truth = true;
    bool ok = path_in(work, "truth.svg", &path, err) &&
              picture_write_outline(path, &mask, "#0060ff", err);
    free(path);
    image_free(&mask);
    annotation_free(annotation);
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
        ok = make_overview(&work, err) && make_heat(&work, err) && make_patches(&work, err) &&
             make_truth(&work, err) && make_marks(&work, err);
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
    *view = (struct slide_view){ 0 };
}
