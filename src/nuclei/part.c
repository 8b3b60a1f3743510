/* part.c: groups of tiles -> part files -> a slide's tables (nuclei_slide.h). A part has a record
 * for each tile: a line "tile I n N csv BYTES geojson BYTES", then the bytes. */
#include "nuclei/part.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/console.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/geojson.h"
#include "base/json_file.h"
#include "base/label_image.h"
#include "base/pool.h"
#include "base/text.h"
#include "nuclei/tile.h"

#define SUMMARY_BYTES ((size_t)1 << 20)
#define MOST_TILE_BYTES ((size_t)1 << 32)

static char *path_of(const struct nuclei_slide *s, const char *ending)
{
    return text_format("%s/%s_%s", s->folder, s->entry->name, ending);
}

char *nuclei_part_path(const char *name, int64_t group)
{
    return text_format("parts/%s/%lld.nuclei", name, (long long)group);
}

static char *whole_part_path(const struct nuclei_slide *s, int64_t group)
{
    return text_format("%s/parts/%s/%lld.nuclei", s->folder, s->entry->name, (long long)group);
}

void nuclei_parts_remove(const char *folder, const char *name)
{
    char *parts = text_format("%s/parts", folder), *own = text_format("%s/parts/%s", folder, name);
    char **names = NULL;
    size_t n = 0;
    if (parts && own && folder_names(own, NULL, &names, &n, NULL)) {
        for (size_t i = 0; i < n; i++)
            file_remove_in(own, names[i]);
        folder_names_free(names, n);
        rmdir(own);
        rmdir(parts); /* only if it was the last */
    }
    free(parts), free(own);
}

/* --- a group --- */

struct group {
    const struct nuclei_slide *slide;
    int64_t first, n; /* the tiles that are made at once */
    struct nuclei_tile_text *texts;
    struct label_image labels; /* of the slide; px NULL: none */
    int64_t n_labels;
    const struct ctx *ctx;
};

static bool make_tile(void *arg, int64_t index, int worker, struct err *err)
{
    struct group *g = arg;
    bool ok = nuclei_tile_make(g->slide, g->first + index, worker, &g->texts[index], err);
    if (ok)
        console_advance(g->ctx->console, 1);
    return ok;
}

/* Where nuclei of neighbouring tiles meet, the first one keeps the pixels. */
static void paint_labels(struct group *g, const struct nuclei_tile_text *text)
{
    const struct nuclei_labels *from = &text->labels;
    for (int64_t y = 0; y < from->height; y++)
        for (int64_t x = 0; x < from->width; x++) {
            int32_t label = from->labels[y * from->width + x];
            int32_t *to = &g->labels.px[(text->top + y) * g->labels.width + text->left + x];
            if (label > 0 && *to == 0)
                *to = (int32_t)(g->n_labels + label);
        }
    g->n_labels += text->n;
}

static void write_tiles(struct group *g, FILE *stream)
{
    for (int64_t i = 0; i < g->n; i++) {
        struct nuclei_tile_text *text = &g->texts[i];
        fprintf(stream, "tile %lld n %lld csv %zu geojson %zu\n", (long long)(g->first + i),
                (long long)text->n, text->csv_bytes, text->geojson_bytes);
        fwrite(text->csv, 1, text->csv_bytes, stream);
        fwrite(text->geojson, 1, text->geojson_bytes, stream);
        if (g->labels.px)
            paint_labels(g, text);
        nuclei_tile_free(text);
    }
}

static bool make_tiles(struct group *g, int64_t first, int64_t n, FILE *stream, struct err *err)
{
    /* Several for each thread, so that few wait for the last; label images are kept till then. */
    int64_t at_once = pool_workers(g->ctx->pool) * (g->labels.px ? 2 : 4), end = first + n;
    bool ok = true;
    g->texts = calloc((size_t)at_once, sizeof *g->texts);
    if (!g->texts)
        return err_memory(err, "the tiles");
    for (g->first = first; ok && g->first < end; g->first += at_once) {
        g->n = end - g->first < at_once ? end - g->first : at_once;
        ok = pool_for(g->ctx->pool, g->n, make_tile, g, g->ctx->stop, err);
        if (ok)
            write_tiles(g, stream);
    }
    for (int64_t i = 0; i < at_once; i++)
        nuclei_tile_free(&g->texts[i]);
    free(g->texts);
    return ok;
}

/* 16 bits if the numbers fit, else .npy. */
static bool write_labels(const struct group *g, struct err *err)
{
    bool fits = g->n_labels <= UINT16_MAX;
    char *path = path_of(g->slide, fits ? "labels.png" : "labels.npy");
    bool ok = path || err_memory(err, "file names");
    if (ok && !fits)
        console_note(g->ctx->console, "%s: %lld nuclei are too many for 16 bits: a .npy", path,
                     (long long)g->n_labels);
    ok = ok && (fits ? label_image_write_png(path, &g->labels, err)
                     : label_image_write_npy(path, &g->labels, err));
    free(path);
    return ok;
}

bool nuclei_slide_group(const struct nuclei_slide *s, int64_t group, const struct ctx *ctx,
                        struct err *err)
{
    struct group g = { .slide = s, .ctx = ctx };
    char *path = whole_part_path(s, group);
    struct file_out out;
    int64_t first, n = nuclei_group_tiles(s, group, &first);
    bool ok = path || err_memory(err, "file names");
    if (ok && file_exists(path)) {
        free(path);
        return true;
    }
    if (ok && s->labelled) {
        g.labels.width = s->raster.width, g.labels.height = s->raster.height;
        g.labels.px = calloc((size_t)(g.labels.width * g.labels.height), sizeof *g.labels.px);
        ok = g.labels.px || err_memory(err, "the label image");
    }
    bool opened = ok && file_out_open(&out, path, err);
    ok = opened && make_tiles(&g, first, n, out.stream, err) && nuclei_slide_hold(s, err) &&
         (!s->labelled || write_labels(&g, err));
    if (opened && !ok)
        file_out_discard(&out);
    ok = ok && file_out_commit(&out, err);
    label_image_free(&g.labels);
    free(path);
    return ok;
}

/* --- merging --- */

struct merging {
    const struct nuclei_slide *slide;
    const char *path; /* of the current part */
    FILE *part, *csv;
    struct json_out json;
    bool filled; /* the GeoJSON has a feature */
    char *line;  /* of the table */
    size_t line_room;
    int64_t n, tile;
    double sum[NUCLEUS_FEATURES], squares[NUCLEUS_FEATURES];
    int64_t finite[NUCLEUS_FEATURES];
};

static bool damaged(const struct merging *m, struct err *err)
{
    return err_set(err, ERR_FORMAT, "%s: is damaged; delete it and run again", m->path);
}

/* Adds a row's features to the sums, as they are in the table. */
static void count_row(struct merging *m, const char *row)
{
    for (int skip = 0; row && skip < NUCLEI_PLACE_COLUMNS; skip++)
        row = (row = strchr(row, ',')) ? row + 1 : NULL;
    for (int f = 0; row && f < NUCLEUS_FEATURES; f++) {
        char *end;
        double value = strtod(row, &end);
        if (end != row)
            m->sum[f] += value, m->squares[f] += value * value, m->finite[f]++;
        row = (row = strchr(row, ',')) ? row + 1 : NULL;
    }
}

static bool copy_rows(struct merging *m, int64_t n, size_t bytes, struct err *err)
{
    for (int64_t i = 0; i < n; i++) {
        ssize_t length = getline(&m->line, &m->line_room, m->part);
        if (length < 0 || (size_t)length > bytes)
            return damaged(m, err);
        bytes -= (size_t)length;
        fprintf(m->csv, "%lld,%s", (long long)++m->n, m->line);
        count_row(m, m->line);
    }
    return bytes == 0 || damaged(m, err);
}

static bool copy_features(struct merging *m, size_t bytes, struct err *err)
{
    char buffer[1 << 16];
    if (bytes > 0 && m->filled)
        fputc(',', m->json.stream);
    m->filled |= bytes > 0;
    while (bytes > 0) {
        size_t want = bytes < sizeof buffer ? bytes : sizeof buffer;
        if (fread(buffer, 1, want, m->part) != want)
            return damaged(m, err);
        fwrite(buffer, 1, want, m->json.stream);
        bytes -= want;
    }
    return true;
}

static bool merge_part(struct merging *m, int64_t group, struct err *err)
{
    int64_t first, tiles = nuclei_group_tiles(m->slide, group, &first);
    bool ok = true;
    for (int64_t i = 0; ok && i < tiles; i++) {
        int64_t tile = -1, n = -1;
        size_t csv = 0, geojson = 0;
        if (fscanf(m->part, "tile %" SCNd64 " n %" SCNd64 " csv %zu geojson %zu", &tile, &n, &csv,
                   &geojson) != 4 ||
            fgetc(m->part) != '\n' || tile != first + i || n < 0 || csv > MOST_TILE_BYTES ||
            geojson > MOST_TILE_BYTES)
            return damaged(m, err);
        ok = copy_rows(m, n, csv, err) && copy_features(m, geojson, err);
    }
    return ok && (fgetc(m->part) == EOF || damaged(m, err));
}

static bool merge_parts(struct merging *m, struct err *err)
{
    bool ok = true;
    for (int64_t group = 0; ok && group < m->slide->n_groups; group++) {
        char *path = whole_part_path(m->slide, group);
        m->part = path ? fopen(path, "rb") : NULL;
        m->path = path;
        ok = m->part ? merge_part(m, group, err)
                     : (path ? err_errno(err, path, "open") : err_memory(err, "file names"));
        if (m->part)
            fclose(m->part);
        free(path);
    }
    return ok;
}

static void summarise(const struct merging *m, struct nuclei_summary *out)
{
    struct nuclei_source_slide size = nuclei_slide_size(m->slide);
    *out = (struct nuclei_summary){ .n = m->n,
                                    .tissue_mm2 = m->slide->mask.area_mm2,
                                    .mpp = m->slide->raster.mpp,
                                    .width = m->slide->raster.width,
                                    .height = m->slide->raster.height,
                                    .downsample = m->slide->raster.downsample,
                                    .width_l0 = size.width_l0,
                                    .height_l0 = size.height_l0,
                                    .objective = size.objective };
    for (int f = 0; f < NUCLEUS_FEATURES; f++) {
        double n = (double)m->finite[f], mean = n > 0 ? m->sum[f] / n : NAN;
        out->mean[f] = mean;
        out->deviation[f] = n > 0 ? sqrt(fmax(m->squares[f] / n - mean * mean, 0)) : NAN;
    }
}

static bool write_summary(const struct nuclei_slide *s, const struct nuclei_summary *summary,
                          struct err *err)
{
    char *path = path_of(s, "nuclei.json");
    struct file_out out;
    struct json_out json;
    bool ok = (path || err_memory(err, "file names")) && file_out_open(&out, path, err);
    free(path);
    if (!ok)
        return false;
    json_out_begin(&json, out.stream);
    json_out_object(&json, NULL);
    json_out_text(&json, "slide", s->entry->name);
    json_out_text(&json, "options", s->how);
    json_out_text(&json, "inputs", s->inputs);
    json_out_int(&json, "nuclei", summary->n);
    json_out_real(&json, "tissue_mm2", summary->tissue_mm2);
    json_out_real(&json, "mpp", summary->mpp);
    json_out_int(&json, "width", summary->width);
    json_out_int(&json, "height", summary->height);
    json_out_real(&json, "downsample", summary->downsample);
    json_out_int(&json, "width_l0", summary->width_l0);
    json_out_int(&json, "height_l0", summary->height_l0);
    json_out_real(&json, "objective", summary->objective);
    for (int f = 0; f < NUCLEUS_FEATURES; f++) {
        json_out_object_line(&json, nucleus_features[f].column);
        json_out_real(&json, "mean", summary->mean[f]);
        json_out_real(&json, "std", summary->deviation[f]);
        json_out_close_object(&json);
    }
    json_out_close_object(&json);
    json_out_end(&json);
    return file_out_commit(&out, err);
}

static double real_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

bool nuclei_summary_read(const struct nuclei_slide *s, const char *path, struct nuclei_summary *out,
                         struct err *err)
{
    json_t *json = json_file_read(path, SUMMARY_BYTES, err);
    if (!json)
        return false;
    const char *how = json_string_value(json_object_get(json, "options"));
    const char *inputs = json_string_value(json_object_get(json, "inputs"));
    bool ok =
        (how && inputs && json_is_integer(json_object_get(json, "nuclei"))) ||
        err_set(err, ERR_FORMAT, "%s: is not a summary of nuclei; delete it and run again", path);
    ok = ok && nuclei_same(path, how, s->inputs[0] ? inputs : "", s->how, s->inputs, err);
    *out = (struct nuclei_summary){
        .n = json_integer_value(json_object_get(json, "nuclei")),
        .tissue_mm2 = real_of(json, "tissue_mm2"),
        .mpp = real_of(json, "mpp"),
        .width = json_integer_value(json_object_get(json, "width")),
        .height = json_integer_value(json_object_get(json, "height")),
        .downsample = real_of(json, "downsample"),
        .width_l0 = json_integer_value(json_object_get(json, "width_l0")),
        .height_l0 = json_integer_value(json_object_get(json, "height_l0")),
        .objective = real_of(json, "objective"),
    };
    for (int f = 0; f < NUCLEUS_FEATURES; f++) {
        const json_t *feature = json_object_get(json, nucleus_features[f].column);
        out->mean[f] = real_of(feature, "mean"), out->deviation[f] = real_of(feature, "std");
    }
    json_decref(json);
    return ok;
}

bool nuclei_slide_merge(const struct nuclei_slide *s, struct nuclei_summary *out, struct err *err)
{
    struct merging m = { .slide = s };
    char *csv_path = path_of(s, "nuclei.csv"), *json_path = path_of(s, "nuclei.geojson");
    struct file_out csv = { 0 }, geojson = { 0 };
    bool ok = (csv_path && json_path) || err_memory(err, "file names");
    ok = ok && file_out_open(&csv, csv_path, err) && file_out_open(&geojson, json_path, err);
    if (ok) {
        m.csv = csv.stream;
        nuclei_table_header(s->source != NULL, csv.stream);
        geojson_begin(&m.json, geojson.stream);
        ok = merge_parts(&m, err);
        m.json.filled[m.json.depth] |= m.filled;
        geojson_end(&m.json);
    }
    ok = ok && file_out_commit(&csv, err) && file_out_commit(&geojson, err);
    if (!ok) {
        file_out_discard(&csv);
        file_out_discard(&geojson);
    }
    summarise(&m, out);
    ok = ok && write_summary(s, out, err);
    if (ok)
        nuclei_parts_remove(s->folder, s->entry->name);
    free(m.line), free(csv_path), free(json_path);
    return ok;
}
