/* map_stitch.c: the maps of all windows over a slide's lesions -> one heatmap of the slide for each
 * stitched column, with the exports of predict (map.h). Windows overlap by half; where several show
 * a pixel, their maps before normalisation are averaged, with weights that fall towards the edges
 * of a window. Memory: 16 bytes for each cell of a lesion's box and column, and the maps of a few
 * windows. Sums are in the order of the windows, so threads do not change them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "base/divide.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/text.h"
#include "explain/map_work.h"
#include "heatmap/export.h"
#include "heatmap/heatmap.h"
#include "heatmap/window_source.h"

#define FINEST 16            /* cells across a window, unless the heatmap's are finer */
#define COARSEST 8           /* a heatmap with fewer is too coarse for maps */
#define WINDOWS_PER_WORKER 4 /* that are held at a time */

/* One lesion's box: cells [left, right) x [top, bottom) of the stitched grid. */
struct box {
    int64_t left, top, right, bottom;
    double *sums;    /* [columns, height, width]: of weighted values */
    double *weights; /* [height, width]: the same for all columns */
};

/* A window and its maps; no maps where there is only glass. */
struct stitch_window {
    int64_t x, y; /* raster px */
    struct attribution maps[MAP_MOST_COLUMNS];
    bool made;
};

struct stitching {
    struct map_run *run;
    const struct ctx *ctx;
    const struct heatmap_info *info; /* of the heatmap with the scores */
    struct window_source *pixels;
    int columns[MAP_MOST_COLUMNS], n_columns; /* that are stitched */
    int64_t stride, width, height;            /* of the grid */
    struct box *boxes;
    int64_t n_boxes;
    struct stitch_window *windows; /* [room] of the chunk */
    int64_t n, room;
    float *map, *ramp; /* [window, window] and [window] */
};

/* --- windows of a chunk --- */

static bool make_window(void *arg, int64_t index, int worker, struct err *err)
{
    struct stitching *s = arg;
    struct stitch_window *w = &s->windows[index];
    struct map_worker *own = &s->run->workers[worker];
    struct image image = { 0 };
    struct map_view view = { 0 };
    struct err why = { 0 };
    char name[64];
    int64_t side = s->info->window;
    snprintf(name, sizeof name, "window %lld %lld", (long long)w->x, (long long)w->y);
    if (!window_source_read(s->pixels, w->x, w->y, side, side, &image, err))
        return false;
    w->made = map_view_of(s->run, own, &image, name, &view, &why);
    bool ok = w->made || why.kind == ERR_MISSING; /* all of one colour: glass */
    if (!ok)
        *err = why;
    for (int i = 0; ok && w->made && i < s->n_columns; i++)
        ok = map_explain(s->run, own, s->columns[i], &view.view, s->ctx, &w->maps[i], err);
    map_view_free(&view);
    return ok;
}

/* Adds one window's maps to a box. */
static void add_window(struct stitching *s, struct box *box, const struct stitch_window *w,
                       int column)
{
    int64_t side = s->info->window, across = box->right - box->left;
    double *sums = box->sums + column * across * (box->bottom - box->top);
    attribution_resize(&w->maps[column], side, side, s->map);
    for (int64_t y = 0; y < side; y++) {
        int64_t row = floor_div(w->y + y, s->stride);
        if (row < box->top || row >= box->bottom)
            continue;
        for (int64_t x = 0; x < side; x++) {
            int64_t cell = floor_div(w->x + x, s->stride);
            if (cell < box->left || cell >= box->right)
                continue;
            int64_t at = (row - box->top) * across + cell - box->left;
            double weight = (double)s->ramp[y] * (double)s->ramp[x];
            sums[at] += weight * (double)s->map[y * side + x];
            if (column == 0)
                box->weights[at] += weight;
        }
    }
}

static bool end_chunk(struct stitching *s, struct box *box, struct err *err)
{
    bool ok = (!ctx_stopped(s->ctx) || err_stopped(err)) &&
              pool_for(s->ctx->pool, s->n, make_window, s, s->ctx->stop, err);
    for (int64_t i = 0; i < s->n; i++)
        for (int c = 0; c < s->n_columns; c++) {
            if (ok && s->windows[i].made)
                add_window(s, box, &s->windows[i], c);
            attribution_free(&s->windows[i].maps[c]);
        }
    console_advance(s->ctx->console, s->n);
    s->n = 0;
    return ok;
}

/* Windows along one side of a box that is widened by a quarter of a window. */
static int64_t windows_along(const struct stitching *s, int64_t begin, int64_t end)
{
    int64_t side = s->info->window, length = (end - begin) * s->stride + side / 2;
    return length <= side ? 1 : ceil_div(2 * (length - side), side) + 1;
}

static int64_t window_at(const struct stitching *s, int64_t begin, int64_t end, int64_t i)
{
    int64_t side = s->info->window, n = windows_along(s, begin, end);
    int64_t first = begin * s->stride - side / 4, length = (end - begin) * s->stride + side / 2;
    return n == 1 ? first + (length - side) / 2 : first + i * (length - side) / (n - 1);
}

static bool fill_box(struct stitching *s, struct box *box, struct err *err)
{
    int64_t across = windows_along(s, box->left, box->right);
    int64_t down = windows_along(s, box->top, box->bottom);
    bool ok = true;
    for (int64_t i = 0; ok && i < across * down; i++) {
        s->windows[s->n++] =
            (struct stitch_window){ .x = window_at(s, box->left, box->right, i % across),
                                    .y = window_at(s, box->top, box->bottom, i / across) };
        if (s->n == s->room || i + 1 == across * down)
            ok = end_chunk(s, box, err);
    }
    return ok;
}

/* --- the heatmap --- */

/* The value of a cell; NaN outside of all boxes. */
static double cell_value(const struct stitching *s, int column, int64_t x, int64_t y)
{
    double sum = 0, weight = 0;
    for (int64_t i = 0; i < s->n_boxes; i++) {
        const struct box *box = &s->boxes[i];
        if (x < box->left || x >= box->right || y < box->top || y >= box->bottom)
            continue;
        int64_t across = box->right - box->left, cells = across * (box->bottom - box->top);
        int64_t at = (y - box->top) * across + x - box->left;
        sum += box->sums[column * cells + at];
        weight += box->weights[at];
    }
    return weight > 0 ? sum / weight : NAN;
}

/* To a number whose quarters are short: the range of colours has a scale. */
static double round_up(double value)
{
    static const double steps[] = { 1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10 };
    double ten = pow(10, floor(log10(value)));
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (value <= steps[i] * ten)
            return steps[i] * ten;
    return 10 * ten;
}

static void find_range(const struct stitching *s, int column, double *low, double *high)
{
    *low = INFINITY, *high = -INFINITY;
    for (int64_t i = 0; i < s->n_boxes; i++)
        for (int64_t y = s->boxes[i].top; y < s->boxes[i].bottom; y++)
            for (int64_t x = s->boxes[i].left; x < s->boxes[i].right; x++) {
                double value = cell_value(s, column, x, y);
                *low = fmin(*low, value);
                *high = fmax(*high, value);
            }
    *low = *low < 0 ? -round_up(-*low) : 0;
    *high = *high > 0 ? round_up(*high) : 0;
    if (!(*low < *high)) /* colours need a range */
        *high = *low + 1;
}

/* Rows of the map, NaN also where the heatmap has no score. */
static bool write_rows(const struct stitching *s, int column, const struct heatmap *scored,
                       struct heatmap_writer *writer, struct err *err)
{
    const struct heatmap_info *info = s->info;
    float *row = malloc((size_t)s->width * sizeof *row);
    float *scores = malloc((size_t)(info->width * info->n_classes) * sizeof *scores);
    bool ok = (row && scores) || err_memory(err, info->slide);
    int64_t held = -1;
    for (int64_t y = 0; ok && y < s->height; y++) {
        int64_t from = (y * s->stride + s->stride / 2) / info->stride;
        from = from < info->height ? from : info->height - 1;
        ok = from == held || heatmap_read_rows(scored, from, 1, scores, err);
        held = from;
        for (int64_t x = 0; ok && x < s->width; x++) {
            int64_t cell = (x * s->stride + s->stride / 2) / info->stride;
            cell = cell < info->width ? cell : info->width - 1;
            bool tissue = !isnan(scores[cell * info->n_classes]);
            row[x] = tissue ? (float)cell_value(s, column, x, y) : NAN;
        }
        ok = ok && heatmap_write_rows(writer, row, 1, err);
    }
    free(row);
    free(scores);
    return ok;
}

static char *column_folder(const struct stitching *s, int column)
{
    char *slide = strdup(s->info->slide);
    if (slide)
        subject_name_file(slide);
    char *folder = slide ? text_format("%s/maps/%s/%s", s->run->request->folder,
                                       s->run->columns[s->columns[column]].name, slide)
                         : NULL;
    free(slide);
    return folder;
}

static char *stitched_options(const struct stitching *s)
{
    return text_format("%s stitched stride=%lld of=%s", s->run->options, (long long)s->stride,
                       s->info->options);
}

static bool write_exports(const struct stitching *s, const char *folder, struct err *err)
{
    const struct exporter *list[16] = { 0 };
    struct export_options options = export_defaults();
    struct heatmap *heatmap = NULL;
    size_t n = 0;
    for (size_t i = 0; exporters[i]; i++)
        if (!exporters[i]->needs_scores)
            list[n++] = exporters[i];
    if (!heatmap_open(folder, &heatmap, err))
        return false;
    struct export_request request = { heatmap, window_source_slide(s->pixels), &options };
    bool ok = exports_write(folder, list, &request, s->ctx, err);
    heatmap_close(heatmap);
    return ok;
}

static bool write_column(const struct stitching *s, int column, const char *scored_folder,
                         struct err *err)
{
    const struct map_run *run = s->run;
    char *folder = column_folder(s, column), *options = stitched_options(s);
    char *name = text_format("%s_%s", run->columns[s->columns[column]].name,
                             run->request->model->config.class_names[run->subjects->class_index]);
    struct heatmap *scored = NULL;
    struct heatmap_writer *writer = NULL;
    struct heatmap_info info = *s->info;
    info.stride = s->stride;
    info.origin_x = info.origin_y = s->stride / 2;
    info.width = s->width, info.height = s->height;
    info.n_classes = 1;
    info.class_names = &name;
    info.number = (struct heatmap_number){ 0 };
    find_range(s, column, &info.number.min, &info.number.max);
    info.mode = "window";
    info.models = (char *)run->request->model_name;
    info.model_hash = (char *)run->model_hash;
    info.options = options;
    info.check = info.raw = (struct heatmap_check){ 0 };
    bool ok = ((folder && options && name) || err_memory(err, info.slide)) &&
              heatmap_open(scored_folder, &scored, err) && file_make_folder(folder, err) &&
              heatmap_create(folder, &info, &writer, err);
    if (ok && !write_rows(s, column, scored, writer, err)) {
        heatmap_discard(writer);
        ok = false;
    } else if (ok) {
        exports_remove(folder);
        ok = heatmap_commit(writer, err) && write_exports(s, folder, err);
    }
    heatmap_close(scored);
    free(folder);
    free(options);
    free(name);
    return ok;
}

/* --- a slide --- */

static bool begin_boxes(struct stitching *s, int32_t source, struct err *err)
{
    const struct subjects *subjects = s->run->subjects;
    s->boxes = calloc((size_t)subjects->n_areas + 1, sizeof *s->boxes);
    if (!s->boxes)
        return err_memory(err, s->info->slide);
    for (int64_t i = 0; i < subjects->n_areas; i++) {
        const struct subject_area *area = &subjects->areas[i];
        if (area->source != source)
            continue;
        struct box box = { .left = area->left / s->stride,
                           .top = area->top / s->stride,
                           .right = ceil_div(area->right, s->stride),
                           .bottom = ceil_div(area->bottom, s->stride) };
        box.right = box.right < s->width ? box.right : s->width;
        box.bottom = box.bottom < s->height ? box.bottom : s->height;
        size_t cells = (size_t)((box.right - box.left) * (box.bottom - box.top));
        box.sums = calloc(cells * (size_t)s->n_columns, sizeof *box.sums);
        box.weights = calloc(cells, sizeof *box.weights);
        s->boxes[s->n_boxes++] = box;
        if (!box.sums || !box.weights)
            return err_memory(err, "the map of a lesion");
    }
    return true;
}

static bool begin(struct stitching *s, int32_t source, struct err *err)
{
    int64_t window = s->info->window, width, height;
    window_source_size(s->pixels, &width, &height);
    int64_t finest = window >= FINEST ? window / FINEST : 1;
    s->stride = s->info->stride * COARSEST <= window ? s->info->stride : finest;
    s->width = ceil_div(width, s->stride);
    s->height = ceil_div(height, s->stride);
    s->room = WINDOWS_PER_WORKER * s->run->n_workers;
    s->windows = calloc((size_t)s->room, sizeof *s->windows);
    s->map = malloc((size_t)(window * window) * sizeof *s->map);
    s->ramp = malloc((size_t)window * sizeof *s->ramp);
    if (!s->windows || !s->map || !s->ramp)
        return err_memory(err, "the map of a lesion");
    for (int64_t i = 0; i < window; i++) /* a triangle that is nowhere 0 */
        s->ramp[i] = (float)(i < window - 1 - i ? i + 1 : window - i);
    return begin_boxes(s, source, err);
}

static void end(struct stitching *s)
{
    for (int64_t i = 0; i < s->n_boxes; i++) {
        free(s->boxes[i].sums);
        free(s->boxes[i].weights);
    }
    free(s->boxes);
    free(s->windows);
    free(s->map);
    free(s->ramp);
}

/* Are all stitched maps of the slide there, made in the same way? */
static bool is_done(const struct stitching *s)
{
    char *options = stitched_options(s);
    bool done = options != NULL;
    for (int i = 0; done && i < s->n_columns; i++) {
        struct heatmap *heatmap = NULL;
        char *folder = column_folder(s, i);
        done = folder && heatmap_open(folder, &heatmap, NULL) &&
               strcmp(heatmap_info(heatmap)->options, options) == 0;
        heatmap_close(heatmap);
        free(folder);
    }
    free(options);
    return done;
}

static bool stitch(struct stitching *s, const char *slide, struct err *err)
{
    int64_t windows = 0;
    bool ok = true;
    for (int64_t i = 0; i < s->n_boxes; i++)
        windows += windows_along(s, s->boxes[i].left, s->boxes[i].right) *
                   windows_along(s, s->boxes[i].top, s->boxes[i].bottom);
    console_begin(s->ctx->console, slide, windows, "windows");
    for (int64_t i = 0; ok && i < s->n_boxes; i++)
        ok = fill_box(s, &s->boxes[i], err);
    console_end(s->ctx->console);
    return ok;
}

bool map_stitch(struct map_run *run, int32_t source, const struct ctx *ctx, struct err *err)
{
    struct stitching s = { .run = run, .ctx = ctx };
    s.info = subjects_heatmap(run->subjects, source);
    for (int i = 0; i < run->n_columns; i++)
        if (run->columns[i].stitched)
            s.columns[s.n_columns++] = i;
    bool any = false;
    for (int64_t i = 0; i < run->subjects->n_areas; i++)
        any = any || run->subjects->areas[i].source == source;
    if (!any || s.n_columns == 0)
        return true;
    bool ok = subjects_enter(run->subjects, source, err);
    s.pixels = subjects_pixels(run->subjects);
    ok = ok && begin(&s, source, err);
    if (ok && !is_done(&s)) {
        ok = stitch(&s, s.info->slide, err);
        for (int i = 0; ok && i < s.n_columns; i++)
            ok = write_column(&s, i, subjects_folder(run->subjects, source), err);
    }
    end(&s);
    return ok;
}
