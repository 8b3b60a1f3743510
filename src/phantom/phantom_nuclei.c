/* phantom_nuclei.c: see phantom_nuclei.h. The slide is a grid of squares; a nucleus is that of the
 * square with its centre. Around a square is enough room for its nuclei and all that hide them, so
 * squares are made independently of each other. */
#include "phantom/phantom_nuclei.h"

#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/divide.h"
#include "base/file.h"
#include "base/geojson.h"
#include "base/outline.h"
#include "base/pool.h"
#include "base/rng.h"
#include "phantom/phantom_edges.h"

enum {
    TILE = PHANTOM_NUCLEI_TILE_PX,
    MARGIN = 56, /* more than the reach of a nucleus */
    SIDE = TILE + 2 * MARGIN,
    BOX = 2 * PHANTOM_NUCLEUS_REACH_PX + 2,
    MAX_NEAR = 2048 /* nuclei that can be near a square; there is no room for half of them */
};

const char *const phantom_cell_names[PHANTOM_CELLS] = { "lymphocyte", "large", "stroma", "tumor" };

/* A nucleus within its box. */
struct shape {
    int32_t id;
    int64_t left, top; /* level-0 px */
    int width, height;
    uint8_t mask[BOX * BOX]; /* [height, width] */
};

struct square {
    const struct phantom_scene *scene;
    struct phantom_textures textures;
    struct phantom_lattice lattice;
    struct phantom_rect rect; /* with the margin */
    struct phantom_nucleus near[MAX_NEAR];
    int64_t claimed[MAX_NEAR]; /* px, hidden or not */
    int n;
    int32_t owners[SIDE * SIDE]; /* an index + 1 */
    int32_t pieces[BOX * BOX];
    int32_t queue[BOX * BOX];
    struct shape shape;
};

/* The shape belongs to the square, until the next call. */
typedef bool (*take_shape)(void *arg, const struct shape *shape, struct err *err);

enum phantom_cell phantom_nucleus_cell(int32_t id)
{
    return (enum phantom_cell)((id - 1) >> 26);
}

static struct square *square_new(const struct phantom_scene *scene, struct err *err)
{
    struct square *s = calloc(1, sizeof *s);
    if (!s) {
        err_memory(err, "the nuclei of a phantom");
        return NULL;
    }
    s->scene = scene;
    phantom_textures_fill(&s->textures);
    return s;
}

static void keep_nucleus(void *arg, const struct phantom_nucleus *nucleus)
{
    struct square *s = arg;
    if (s->n < MAX_NEAR)
        s->near[s->n++] = *nucleus;
}

static void cut(struct square *s)
{
    float keep[SIDE];
    int64_t size = s->scene->size_px;
    for (int j = 0; j < SIDE; j++) {
        int64_t y = s->rect.y + j;
        phantom_edges_row(&s->lattice, &s->textures, s->rect.x, y, SIDE, keep);
        for (int i = 0; i < SIDE; i++) {
            int64_t x = s->rect.x + i;
            if (keep[i] < 0.5f || x < 0 || y < 0 || x >= size || y >= size)
                s->owners[j * SIDE + i] = 0;
        }
    }
}

/* Marks the piece of the box that holds `start` with a number; returns its px. */
static int64_t fill_piece(struct square *s, int32_t start, int32_t number)
{
    int width = s->shape.width, height = s->shape.height;
    int64_t n = 0, done = 0;
    s->pieces[start] = number, s->queue[n++] = start;
    while (done < n) {
        int32_t at = s->queue[done++], x = at % width, y = at / width;
        const int32_t next[4] = { x > 0 ? at - 1 : -1, x + 1 < width ? at + 1 : -1,
                                  y > 0 ? at - width : -1, y + 1 < height ? at + width : -1 };
        for (int k = 0; k < 4; k++)
            if (next[k] >= 0 && s->shape.mask[next[k]] && s->pieces[next[k]] == 0)
                s->pieces[next[k]] = number, s->queue[n++] = next[k];
    }
    return n;
}

/* Reduces the shape to its largest piece, the first of equal ones; returns its px. */
static int64_t largest_piece(struct square *s)
{
    struct shape *shape = &s->shape;
    int32_t n_px = shape->width * shape->height, number = 0, best = 0;
    int64_t most = 0;
    memset(s->pieces, 0, (size_t)n_px * sizeof *s->pieces);
    for (int32_t i = 0; i < n_px; i++)
        if (shape->mask[i] && s->pieces[i] == 0) {
            int64_t px = fill_piece(s, i, ++number);
            if (px > most)
                most = px, best = number;
        }
    for (int32_t i = 0; i < n_px; i++)
        shape->mask[i] = most > 0 && s->pieces[i] == best;
    return most;
}

/* Makes the shape of nucleus k; false if too little of it is seen. */
static bool make_shape(struct square *s, int k)
{
    const struct phantom_nucleus *n = &s->near[k];
    struct shape *shape = &s->shape;
    int left = (int)(n->x - (float)s->rect.x) - PHANTOM_NUCLEUS_REACH_PX;
    int top = (int)(n->y - (float)s->rect.y) - PHANTOM_NUCLEUS_REACH_PX;
    left = left < 0 ? 0 : left, top = top < 0 ? 0 : top;
    shape->id = n->id;
    shape->left = s->rect.x + left, shape->top = s->rect.y + top;
    shape->width = left + BOX > SIDE ? SIDE - left : BOX;
    shape->height = top + BOX > SIDE ? SIDE - top : BOX;
    for (int j = 0; j < shape->height; j++)
        for (int i = 0; i < shape->width; i++)
            shape->mask[j * shape->width + i] =
                s->owners[(top + j) * SIDE + left + i] == (int32_t)(k + 1);
    int64_t seen = largest_piece(s);
    return seen > 0 && 4 * seen >= s->claimed[k];
}

/* Is the nucleus that of the square at column, row? One whose centre is beyond the slide belongs to
 * the nearest square. */
static bool is_here(const struct square *s, const struct phantom_nucleus *n, int64_t column,
                    int64_t row)
{
    float last = (float)(s->scene->size_px - 1);
    float x = n->x < 0      ? 0
              : n->x > last ? last
                            : n->x,
          y = n->y < 0      ? 0
              : n->y > last ? last
                            : n->y;
    return (int64_t)x / TILE == column && (int64_t)y / TILE == row;
}

static bool each_shape(struct square *s, int64_t column, int64_t row, take_shape take, void *arg,
                       struct err *err)
{
    s->rect = (struct phantom_rect){ column * TILE - MARGIN, row * TILE - MARGIN, SIDE, SIDE };
    if (!phantom_is_tissue(s->scene, s->rect.x, s->rect.y, SIDE, SIDE))
        return true;
    phantom_lattice_fill(s->scene, s->rect.x, s->rect.y, SIDE, SIDE, &s->lattice);
    memset(s->owners, 0, sizeof s->owners);
    s->n = 0;
    phantom_each_nucleus(s->scene, &s->lattice, &s->rect, keep_nucleus, s);
    for (int k = 0; k < s->n; k++)
        s->claimed[k] =
            phantom_nucleus_claim(&s->near[k], &s->textures, &s->rect, k + 1, s->owners);
    cut(s);
    for (int k = 0; k < s->n; k++)
        if (is_here(s, &s->near[k], column, row) && make_shape(s, k) && !take(arg, &s->shape, err))
            return false;
    return true;
}

struct label_rect {
    int64_t x, y, width, height;
    int32_t *labels;
};

static bool draw_label(void *arg, const struct shape *shape, struct err *err)
{
    (void)err;
    const struct label_rect *r = arg;
    for (int j = 0; j < shape->height; j++)
        for (int i = 0; i < shape->width; i++) {
            int64_t x = shape->left + i - r->x, y = shape->top + j - r->y;
            if (shape->mask[j * shape->width + i] && x >= 0 && y >= 0 && x < r->width &&
                y < r->height)
                r->labels[y * r->width + x] = shape->id;
        }
    return true;
}

bool phantom_nuclei_labels(const struct phantom_scene *scene, int64_t x, int64_t y, int64_t width,
                           int64_t height, int32_t *labels, struct err *err)
{
    struct label_rect rect = { x, y, width, height, labels };
    struct square *s = square_new(scene, err);
    int64_t last = (scene->size_px - 1) / TILE;
    int64_t first_column = x < MARGIN ? 0 : (x - MARGIN) / TILE;
    int64_t first_row = y < MARGIN ? 0 : (y - MARGIN) / TILE;
    int64_t end_column = (x + width + MARGIN) / TILE, end_row = (y + height + MARGIN) / TILE;
    memset(labels, 0, (size_t)(width * height) * sizeof *labels);
    bool ok = s != NULL;
    for (int64_t row = first_row; ok && row <= end_row && row <= last; row++)
        for (int64_t column = first_column; ok && column <= end_column && column <= last; column++)
            ok = each_shape(s, column, row, draw_label, &rect, err);
    free(s);
    return ok;
}

/* The nuclei of one square as text, until its row is written. */
struct strip {
    const struct phantom_scene *scene;
    struct square **squares; /* [workers], made when needed */
    int64_t row;
    struct found *found; /* [columns] */
};

struct found {
    struct outline *outlines; /* [n] */
    struct shape_place {
        int32_t id;
        int64_t left, top;
    } * places;
    int64_t n, room, places_room;
};

static bool trace_shape(void *arg, const struct shape *shape, struct err *err)
{
    struct found *found = arg;
    struct image mask = { (uint8_t *)shape->mask, shape->width, shape->height, 1 };
    if (!array_grow(&found->outlines, &found->room, found->n + 1, sizeof *found->outlines,
                    "the nuclei", err) ||
        !array_grow(&found->places, &found->places_room, found->n + 1, sizeof *found->places,
                    "the nuclei", err))
        return false;
    found->places[found->n] = (struct shape_place){ shape->id, shape->left, shape->top };
    if (!outline_trace(&mask, &found->outlines[found->n], err))
        return false;
    found->n++;
    return true;
}

static bool trace_square(void *arg, int64_t index, int worker, struct err *err)
{
    struct strip *strip = arg;
    if (!strip->squares[worker])
        strip->squares[worker] = square_new(strip->scene, err);
    return strip->squares[worker] && each_shape(strip->squares[worker], index, strip->row,
                                                trace_shape, &strip->found[index], err);
}

static void write_nucleus(struct json_out *json, const struct phantom_scene *scene,
                          const struct outline *outline, const struct shape_place *place)
{
    static const uint8_t colours[PHANTOM_CELLS][3] = {
        { 60, 90, 220 }, { 60, 190, 220 }, { 150, 200, 150 }, { 200, 0, 0 }
    };
    enum phantom_cell cell = phantom_nucleus_cell(place->id);
    geojson_feature(json, rng_hash(scene->name), (uint64_t)place->id);
    for (int64_t r = 0; r < outline->n_rings; r++) {
        const struct outline_ring *ring = &outline->rings[r];
        geojson_ring(json);
        for (int64_t i = 0; i <= ring->n; i++) {
            const struct outline_point *p = &outline->points[ring->first + i % ring->n];
            geojson_point(json, (double)(place->left + p->x), (double)(place->top + p->y));
        }
        geojson_close_ring(json);
    }
    geojson_properties(json, "detection");
    geojson_classification(json, phantom_cell_names[cell], colours[cell]);
    geojson_close_feature(json);
}

static void write_found(struct json_out *json, const struct phantom_scene *scene,
                        struct found *found)
{
    for (int64_t i = 0; i < found->n; i++) {
        write_nucleus(json, scene, &found->outlines[i], &found->places[i]);
        outline_free(&found->outlines[i]);
    }
    found->n = 0;
}

static bool write_rows(struct strip *strip, FILE *stream, const struct ctx *ctx, struct err *err)
{
    int64_t n = ceil_div(strip->scene->size_px, TILE);
    struct json_out json;
    bool ok = true;
    geojson_begin(&json, stream);
    for (strip->row = 0; ok && strip->row < n; strip->row++) {
        ok = pool_for(ctx->pool, n, trace_square, strip, ctx->stop, err);
        for (int64_t i = 0; i < n; i++)
            write_found(&json, strip->scene, &strip->found[i]);
    }
    geojson_end(&json);
    return ok;
}

bool phantom_nuclei_write(const char *path, const struct phantom_scene *scene,
                          const struct ctx *ctx, struct err *err)
{
    int workers = pool_workers(ctx->pool);
    int64_t n = ceil_div(scene->size_px, TILE);
    struct strip strip = { .scene = scene,
                           .squares = calloc((size_t)workers, sizeof *strip.squares),
                           .found = calloc((size_t)n, sizeof *strip.found) };
    struct file_out out;
    bool ok = (strip.squares && strip.found) || err_memory(err, path);
    if (ok && file_out_open(&out, path, err)) {
        ok = write_rows(&strip, out.stream, ctx, err);
        if (ok)
            ok = file_out_commit(&out, err);
        else
            file_out_discard(&out);
    } else {
        ok = false;
    }
    for (int i = 0; strip.squares && i < workers; i++)
        free(strip.squares[i]);
    for (int64_t i = 0; strip.found && i < n; i++)
        free(strip.found[i].outlines), free(strip.found[i].places);
    free(strip.squares), free(strip.found);
    return ok;
}
