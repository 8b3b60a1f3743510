/* tile.c: see tile.h. */
#include "nuclei/tile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/csv.h"
#include "base/geojson.h"
#include "base/outline.h"
#include "base/rng.h"

/* Sums over the pixels of a nucleus, in px of the raster: exact, whatever tile they are seen in. */
struct centroid {
    int64_t x, y, n;
};

/* A tile while it is made. */
struct making {
    const struct nuclei_slide *slide;
    int64_t tile;
    int64_t left, top, width, height; /* px of the raster, with the margin */
    struct image rgb;
    struct nuclei_labels labels;
    struct centroid *centroids; /* [labels.n + 1], by label */
    int64_t *sources;           /* [labels.n]: nuclei of the slide's source; NULL: none */
    struct nucleus *nuclei;
};

void nuclei_tile_free(struct nuclei_tile_text *text)
{
    free(text->csv);
    free(text->geojson);
    nuclei_labels_free(&text->labels);
    *text = (struct nuclei_tile_text){ 0 };
}

void nuclei_table_header(bool kinds, FILE *stream)
{
    fputs("label,x_px,y_px,x_um,y_um", stream);
    for (int f = 0; f < NUCLEUS_FEATURES; f++)
        fprintf(stream, ",%s", nucleus_features[f].column);
    fprintf(stream, ",touches_border%s\n", kinds ? ",kind" : "");
}

static void add_margin(struct making *m)
{
    const struct nuclei_tile *tile = &m->slide->tiles[m->tile];
    const struct raster *raster = &m->slide->raster;
    int64_t margin = m->slide->margin_px;
    int64_t right = tile->x + tile->width + margin, bottom = tile->y + tile->height + margin;
    m->left = tile->x > margin ? tile->x - margin : 0;
    m->top = tile->y > margin ? tile->y - margin : 0;
    m->width = (right < raster->width ? right : raster->width) - m->left;
    m->height = (bottom < raster->height ? bottom : raster->height) - m->top;
}

static bool find_nuclei(struct making *m, int worker, struct err *err)
{
    const struct nuclei_slide *s = m->slide;
    const struct nuclei_finder *finder = s->options->finder;
    double step = s->raster.downsample;
    if (s->source)
        return nuclei_source_window(s->source, (double)m->left * step, (double)m->top * step, step,
                                    m->width, m->height, &m->labels, &m->sources, err);
    if (finder)
        return finder->find(finder->arg, &m->rgb, s->raster.mpp, worker, &m->labels, err);
    return nuclei_find(&m->rgb, s->raster.mpp, &s->options->settings, &m->labels, err);
}

/* Level-0 px of a position on the raster. */
static double to_l0(const struct making *m, double px)
{
    return px * m->slide->raster.downsample;
}

static bool is_tissue(const struct making *m, double x_px, double y_px)
{
    const struct tissue_mask *mask = &m->slide->mask;
    int64_t x = (int64_t)(to_l0(m, x_px) / mask->l0_per_px_x);
    int64_t y = (int64_t)(to_l0(m, y_px) / mask->l0_per_px_y);
    x = x < mask->mask.width ? x : mask->mask.width - 1;
    y = y < mask->mask.height ? y : mask->mask.height - 1;
    return *image_at(&mask->mask, x, y) != 0;
}

/* Of the centres of pixels. */
static double mean_of(int64_t sum, int64_t n)
{
    return (double)(2 * sum + n) / (double)(2 * n);
}

/* Whether the nucleus with this centroid, in px of the raster, is this tile's. */
static bool is_ours(const struct making *m, const struct centroid *c)
{
    const struct nuclei_tile *tile = &m->slide->tiles[m->tile];
    if (c->n == 0)
        return false;
    double x = mean_of(c->x, c->n), y = mean_of(c->y, c->n);
    return x >= (double)tile->x && y >= (double)tile->y && x < (double)(tile->x + tile->width) &&
           y < (double)(tile->y + tile->height) && is_tissue(m, x, y);
}

static bool find_centroids(struct making *m, struct err *err)
{
    const struct nuclei_labels *labels = &m->labels;
    m->centroids = calloc((size_t)labels->n + 1, sizeof *m->centroids);
    if (!m->centroids)
        return err_memory(err, "the nuclei of a tile");
    for (int64_t y = 0; y < labels->height; y++)
        for (int64_t x = 0; x < labels->width; x++) {
            struct centroid *c = &m->centroids[labels->labels[y * labels->width + x]];
            c->x += m->left + x, c->y += m->top + y, c->n++;
        }
    return true;
}

/* Clears the nuclei of other tiles and of glass before anything else is measured. */
static bool keep_ours(struct making *m, struct err *err)
{
    struct nuclei_labels *labels = &m->labels;
    int32_t *now = calloc((size_t)labels->n + 1, sizeof *now), kept = 0;
    bool ok = (now || err_memory(err, "the nuclei of a tile")) && find_centroids(m, err);
    for (int32_t k = 1; ok && k <= labels->n; k++)
        if (is_ours(m, &m->centroids[k])) {
            now[k] = ++kept;
            m->centroids[kept] = m->centroids[k];
            if (m->sources)
                m->sources[kept - 1] = m->sources[k - 1];
        }
    for (int64_t i = 0; ok && i < labels->width * labels->height; i++)
        labels->labels[i] = now[labels->labels[i]];
    labels->n = ok ? kept : labels->n;
    free(now);
    return ok;
}

static const char *kind_of(const struct making *m, const struct nucleus *n)
{
    return m->sources ? nuclei_source_kind(m->slide->source, m->sources[n->label - 1]) : "";
}

static void write_row(const struct making *m, const struct nucleus *n, FILE *stream)
{
    const struct centroid *c = &m->centroids[n->label];
    double x = to_l0(m, mean_of(c->x, c->n)), y = to_l0(m, mean_of(c->y, c->n));
    double mpp = m->slide->mpp_l0;
    fprintf(stream, "%.2f,%.2f,%.3f,%.3f", x, y, x * mpp, y * mpp);
    for (int f = 0; f < NUCLEUS_FEATURES; f++) {
        if (isfinite(n->features[f]))
            fprintf(stream, ",%.9g", n->features[f]);
        else
            fputc(',', stream);
    }
    fprintf(stream, ",%d", n->touches_border);
    if (m->slide->source) {
        fputc(',', stream);
        csv_write_cell(stream, kind_of(m, n));
    }
    fputc('\n', stream);
}

static void write_ring(const struct making *m, const struct nucleus *n,
                       const struct outline *outline, const struct outline_ring *ring,
                       struct json_out *json)
{
    geojson_ring(json);
    for (int64_t i = 0; i <= ring->n; i++) {
        const struct outline_point *p = &outline->points[ring->first + i % ring->n];
        geojson_point(json, to_l0(m, (double)(m->left + n->left + p->x)),
                      to_l0(m, (double)(m->top + n->top + p->y)));
    }
    geojson_close_ring(json);
}

/* A nucleus whose pixels touch only at corners is several polygons. */
static void write_shape(const struct making *m, const struct nucleus *n,
                        const struct outline *outline, struct json_out *json)
{
    uint64_t name = rng_hash(m->slide->entry->name);
    uint64_t number = (uint64_t)m->tile << 32 | (uint64_t)n->label;
    bool many = outline->n_pieces > 1;
    if (many)
        geojson_feature_of_many(json, name, number);
    else
        geojson_feature(json, name, number);
    for (int64_t r = 0; r < outline->n_rings; r++) {
        const struct outline_ring *ring = &outline->rings[r];
        if (many && !ring->hole && r > 0)
            geojson_close_polygon(json);
        if (many && !ring->hole)
            geojson_polygon(json);
        write_ring(m, n, outline, ring, json);
    }
    if (many)
        geojson_close_polygon(json);
}

static bool write_feature(const struct making *m, const struct nucleus *n, struct json_out *json,
                          struct err *err)
{
    static const uint8_t colour[3] = { 60, 90, 220 };
    struct image mask;
    struct outline outline = { 0 };
    if (!image_new(&mask, n->right - n->left, n->bottom - n->top, 1, err))
        return false;
    for (int64_t y = 0; y < mask.height; y++)
        for (int64_t x = 0; x < mask.width; x++)
            *image_at(&mask, x, y) =
                m->labels.labels[(n->top + y) * m->labels.width + n->left + x] == n->label;
    bool ok = outline_trace(&mask, &outline, err);
    image_free(&mask);
    if (ok) {
        write_shape(m, n, &outline, json);
        geojson_properties(json, "detection");
        if (*kind_of(m, n))
            geojson_classification(json, kind_of(m, n), colour);
        geojson_measurements(json);
        for (int f = 0; f < NUCLEUS_FEATURES; f++)
            geojson_measurement(json, nucleus_features[f].column, n->features[f]);
        geojson_close_measurements(json);
        geojson_close_feature(json);
    }
    outline_free(&outline);
    return ok;
}

/* The beginning of the collection, which is the same for every tile, is cut off again. */
static bool write_features(const struct making *m, struct nuclei_tile_text *out, struct err *err)
{
    FILE *stream = open_memstream(&out->geojson, &out->geojson_bytes);
    struct json_out json;
    bool ok = stream || err_memory(err, "the nuclei of a tile");
    if (!ok)
        return false;
    geojson_begin(&json, stream);
    fflush(stream);
    size_t begin = out->geojson_bytes;
    for (int32_t i = 0; ok && i < m->labels.n; i++)
        ok = write_feature(m, &m->nuclei[i], &json, err);
    bool written = fclose(stream) == 0;
    if (ok && !written)
        ok = err_memory(err, "the nuclei of a tile");
    if (ok) {
        out->geojson_bytes -= begin;
        memmove(out->geojson, out->geojson + begin, out->geojson_bytes);
    }
    return ok;
}

static bool write_table(const struct making *m, struct nuclei_tile_text *out, struct err *err)
{
    FILE *stream = open_memstream(&out->csv, &out->csv_bytes);
    if (!stream)
        return err_memory(err, "the nuclei of a tile");
    for (int32_t i = 0; i < m->labels.n; i++)
        write_row(m, &m->nuclei[i], stream);
    return fclose(stream) == 0 || err_memory(err, "the nuclei of a tile");
}

bool nuclei_tile_make(const struct nuclei_slide *slide, int64_t tile, int worker,
                      struct nuclei_tile_text *out, struct err *err)
{
    struct making m = { .slide = slide, .tile = tile };
    *out = (struct nuclei_tile_text){ 0 };
    add_margin(&m);
    bool ok = raster_read(&slide->raster, m.left, m.top, m.width, m.height, &m.rgb, err) &&
              find_nuclei(&m, worker, err) && keep_ours(&m, err) &&
              nuclei_measure(&m.rgb, slide->raster.mpp, &m.labels, &m.nuclei, err) &&
              write_table(&m, out, err) && write_features(&m, out, err);
    out->n = ok ? m.labels.n : 0;
    if (ok && slide->labelled) {
        out->labels = m.labels, out->left = m.left, out->top = m.top;
        m.labels = (struct nuclei_labels){ 0 };
    }
    image_free(&m.rgb);
    nuclei_labels_free(&m.labels);
    free(m.centroids), free(m.sources), free(m.nuclei);
    if (!ok)
        nuclei_tile_free(out);
    return ok;
}
