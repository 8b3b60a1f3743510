/* map_outlines.c: the hottest areas of maps as GeoJSON for QuPath: one file for each slide, in
 * level-0 px, and one for each image that is not of a slide, in its px (map.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/class_colour.h"
#include "base/file.h"
#include "base/geojson.h"
#include "base/npy.h"
#include "base/outline.h"
#include "base/rng.h"
#include "base/text.h"
#include "explain/map_work.h"
#include "explain/panel.h"

struct tracing {
    const struct map_run *run;
    struct json_out json;
    uint64_t file, n; /* hash of the file's name; features so far */
    const struct subject *subject;
    int column;
    double score;
};

static void put_piece(struct tracing *t, const struct outline *outline, int64_t *ring)
{
    static const uint8_t colour[3] = { 255, 200, 0 };
    const struct map_column *column = &t->run->columns[t->column];
    const struct subject *s = t->subject;
    double scale = s->downsample > 0 ? s->downsample : 1;
    double left = s->downsample > 0 ? (double)s->x_l0 : 0;
    double top = s->downsample > 0 ? (double)s->y_l0 : 0;
    int32_t piece = outline->rings[*ring].piece;
    geojson_feature(&t->json, t->file, t->n++);
    for (; *ring < outline->n_rings && outline->rings[*ring].piece == piece; (*ring)++) {
        const struct outline_point *points = outline->points + outline->rings[*ring].first;
        int64_t n = outline->rings[*ring].n;
        geojson_ring(&t->json);
        for (int64_t i = 0; i <= n; i++)
            geojson_point(&t->json, left + scale * points[i % n].x, top + scale * points[i % n].y);
        geojson_close_ring(&t->json);
    }
    geojson_properties(&t->json, "annotation");
    char *name =
        text_format("%s: %s", column->name,
                    t->run->request->model->config.class_names[t->run->subjects->class_index]);
    geojson_classification(&t->json, name ? name : column->name, colour);
    free(name);
    json_out_text(&t->json, "name", s->name);
    json_out_object_line(&t->json, "measurements");
    json_out_real(&t->json, "score", t->score);
    json_out_real(&t->json, "at least, of the map's highest value", t->run->request->hot);
    json_out_close_object(&t->json);
    geojson_close_feature(&t->json);
}

static bool trace_column(struct tracing *t, struct err *err)
{
    char *file = text_format("%s.npy", t->run->columns[t->column].name);
    char *path = file ? map_path(t->run, t->subject, file) : NULL;
    float *map = NULL;
    int64_t height = 0, width = 0, ring = 0;
    struct image mask = { 0 };
    struct outline outline = { 0 };
    const struct explainer *explainer = t->run->columns[t->column].explainer;
    bool ok =
        (path || err_memory(err, "outlines")) && npy_read(path, &map, &height, &width, err) &&
        (!explainer->pixelwise || panel_soften(map, width, height, explainer->positive, err)) &&
        panel_hottest(map, width, height, t->run->request->hot, &mask, err) &&
        outline_trace(&mask, &outline, err);
    while (ok && ring < outline.n_rings)
        put_piece(t, &outline, &ring);
    outline_free(&outline);
    image_free(&mask);
    free(map);
    free(file);
    free(path);
    return ok;
}

/* Subjects [first, end) to one file. */
static bool write_file(const struct map_run *run, json_t *const *subjects, int64_t first,
                       int64_t end, const char *path, struct err *err)
{
    struct tracing t = { .run = run, .file = rng_hash(run->subjects->items[first].name) };
    struct file_out out;
    if (!file_out_open(&out, path, err))
        return false;
    bool ok = true;
    geojson_begin(&t.json, out.stream);
    for (int64_t i = first; i < end; i++)
        for (int c = 0; ok && json_object_get(subjects[i], "maps") && c < run->n_columns; c++) {
            t.subject = &run->subjects->items[i];
            t.column = c;
            t.score = json_number_value(json_object_get(subjects[i], "score"));
            ok = trace_column(&t, err);
        }
    geojson_end(&t.json);
    if (ok)
        return file_out_commit(&out, err);
    file_out_discard(&out);
    return false;
}

bool map_write_outlines(const struct map_run *run, json_t *const *subjects, int64_t n,
                        struct err *err)
{
    const struct subject *items = run->subjects->items;
    bool ok = true;
    for (int64_t i = 0, end; ok && i < n; i = end) {
        bool placed = items[i].slide[0] && items[i].downsample > 0;
        for (end = i + 1; placed && end < n && strcmp(items[end].slide, items[i].slide) == 0;)
            end++;
        if (!placed && !json_object_get(subjects[i], "maps"))
            continue;
        char *slide = strdup(items[i].slide);
        if (slide)
            subject_name_file(slide);
        char *path = !slide   ? NULL
                     : placed ? text_format("%s/%s.geojson", run->request->folder, slide)
                              : map_path(run, &items[i], "hottest.geojson");
        free(slide);
        ok = path ? write_file(run, subjects, i, end, path, err) : err_memory(err, "outlines");
        free(path);
    }
    return ok;
}
