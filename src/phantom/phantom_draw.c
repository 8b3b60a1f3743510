/* phantom_draw.c: see phantom_draw.h. Tissue is laid down as amounts of hematoxylin and eosin and
 * turned into light by the Beer-Lambert law; ink and dust then absorb some of it. */
#include "phantom/phantom_draw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "phantom/phantom_cells.h"
#include "phantom/phantom_edges.h"

enum {
    BLUR_RADIUS_PX = 4,
    BLUR_MARGIN_PX = 3 * BLUR_RADIUS_PX, /* three passes */
    AMOUNT_STEPS = 256,                  /* of one unit of stain */
    AMOUNTS = 4 * AMOUNT_STEPS,
    FAT_PITCH_PX = 210,
    DUST_PITCH_PX = 900
};

struct scratch {
    struct phantom_lattice lattice;
    float planes[6][RECT_SIDE_MAX * RECT_SIDE_MAX];
    float rows[N_FIELDS][RECT_SIDE_MAX];
};

struct phantom_painter {
    const struct phantom_scene *scene;
    struct phantom_textures textures;
    float light_h[AMOUNTS][3], light_e[AMOUNTS][3];   /* transmission; light_h includes the glass */
    uint8_t glass[TEXTURE_SIDE][2 * TEXTURE_SIDE][3]; /* wide enough to begin anywhere */
    int workers;
    struct scratch scratch[];
};

bool phantom_painter_new(int workers, struct phantom_painter **out, struct err *err)
{
    struct phantom_painter *p = calloc(1, sizeof *p + (size_t)workers * sizeof p->scratch[0]);
    if (!p)
        return err_memory(err, "phantom");
    p->workers = workers;
    phantom_textures_fill(&p->textures);
    *out = p;
    return true;
}

void phantom_painter_free(struct phantom_painter *painter)
{
    free(painter);
}

static uint8_t to_grey(float value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value + 0.5f);
}

void phantom_painter_use(struct phantom_painter *p, const struct phantom_scene *scene)
{
    p->scene = scene;
    const struct phantom_stain *stain = &scene->stain;
    for (int i = 0; i < AMOUNTS; i++)
        for (int c = 0; c < 3; c++) {
            float amount = (float)i / AMOUNT_STEPS;
            p->light_h[i][c] = stain->glass[c] * expf(-amount * stain->hematoxylin[c]);
            p->light_e[i][c] = expf(-amount * stain->eosin[c]);
        }
    for (int y = 0; y < TEXTURE_SIDE; y++)
        for (int x = 0; x < 2 * TEXTURE_SIDE; x++)
            for (int c = 0; c < 3; c++) {
                int grain =
                    p->textures
                        .grain[((y + 83 * c) % TEXTURE_SIDE) * TEXTURE_SIDE + x % TEXTURE_SIDE];
                p->glass[y][x][c] = to_grey(stain->glass[c] + (float)grain);
            }
}

int64_t phantom_painter_size(const struct phantom_painter *painter)
{
    return painter->scene->size_px;
}

const float *phantom_painter_glass(const struct phantom_painter *painter)
{
    return painter->scene->stain.glass;
}

/* Centres of the fat cells around one square of their jittered grid. */
struct fat_cells {
    bool known;
    int32_t column, row;
    float x[9], y[9];
};

static void find_fat_cells(const struct phantom_scene *scene, int32_t column, int32_t row,
                           struct fat_cells *out)
{
    *out = (struct fat_cells){ .known = true, .column = column, .row = row };
    for (int k = 0; k < 9; k++) {
        int32_t i = column + k % 3 - 1, j = row + k / 3 - 1;
        float wander_x = phantom_hash(scene->key ^ 0xFA7u, i, j);
        float wander_y = phantom_hash(scene->key ^ 0xFA8u, i, j);
        out->x[k] = ((float)i + 0.5f + 0.38f * wander_x) * FAT_PITCH_PX;
        out->y[k] = ((float)j + 0.5f + 0.38f * wander_y) * FAT_PITCH_PX;
    }
}

/* The walls lie between the two nearest centres. */
static float fat_wall(const struct phantom_scene *scene, int32_t x, int32_t y,
                      struct fat_cells *cells)
{
    int32_t column = x / FAT_PITCH_PX, row = y / FAT_PITCH_PX;
    if (!cells->known || cells->column != column || cells->row != row)
        find_fat_cells(scene, column, row, cells);
    float nearest = 1e9f, second = 1e9f;
    for (int k = 0; k < 9; k++) {
        float dx = cells->x[k] - (float)x, dy = cells->y[k] - (float)y;
        float d = dx * dx + dy * dy;
        float farther = d > nearest ? d : nearest;
        second = second < farther ? second : farther;
        nearest = nearest < d ? nearest : d;
    }
    float from_centre = sqrtf(nearest);
    return smoothstep(7, 3, sqrtf(second) - from_centre) + 0.5f * smoothstep(120, 160, from_centre);
}

/* Amounts of the two stains between the nuclei at one pixel. */
struct ground {
    float hematoxylin, eosin;
};

static struct ground ground_at(const struct phantom_textures *t, float rows[][RECT_SIDE_MAX], int i,
                               int32_t x, int32_t y)
{
    float u = rows[FIELD_FIBRE_U][i], v = rows[FIELD_FIBRE_V][i], stroma = rows[FIELD_STROMA][i];
    float fine = texture_at(t->clumps, x, y), coarse = texture_at(t->blobs, x + 31, y + 77);
    float reticular = texture_at(t->blobs, 2 * x + 90, 2 * y + 11);
    struct ground g;
    /* Between lymphocytes: a pale net with gaps. */
    g.eosin =
        0.30f + 0.06f * fine + 0.07f * coarse + 0.10f * reticular + 0.05f * rows[FIELD_PALE][i];
    g.hematoxylin = 0.09f + 0.02f * fine + 0.05f * rows[FIELD_PALE][i];
    if (stroma > 0.01f) {
        float fibre = texture_at(t->fibres, (int32_t)floorf(u * 0.33f), (int32_t)floorf(v));
        float wave =
            texture_at(t->fibres, (int32_t)floorf(u * 0.1f) + 99, (int32_t)floorf(v * 0.3f));
        float eosin = 0.66f + 0.15f * fibre + 0.12f * wave + 0.03f * fine;
        eosin *= smoothstep(-2.6f, -1.3f, fibre + 0.9f * wave); /* slits between the fibres */
        g.eosin += stroma * (eosin - g.eosin);
        g.hematoxylin += stroma * (0.10f - g.hematoxylin);
    }
    return g;
}

static void tumor_ground(const struct phantom_canvas *canvas, size_t at, float within, float stroma,
                         float fine, float coarse, struct ground *g)
{
    float gap = canvas->second[at] - canvas->nearest[at];
    float border = smoothstep(5, 1, gap) * smoothstep(66, 50, canvas->nearest[at]);
    float eosin = 0.44f + 0.05f * fine + 0.05f * coarse + 0.16f * border;
    eosin *=
        1 - 0.45f * smoothstep(38, 62, canvas->nearest[at]); /* loose where cells are missing */
    float hematoxylin = 0.17f + 0.03f * fine;
    float share = within * (1 - stroma);
    g->eosin += share * (eosin - g->eosin);
    g->hematoxylin += share * (hematoxylin - g->hematoxylin);
}

static void draw_ground(const struct phantom_painter *p, struct scratch *s,
                        struct phantom_canvas *canvas)
{
    static const enum phantom_field needed[] = { FIELD_STROMA,  FIELD_PALE,  FIELD_FIBRE_U,
                                                 FIELD_FIBRE_V, FIELD_TUMOR, FIELD_FAT };
    const struct phantom_textures *t = &p->textures;
    struct fat_cells fat_cells = { 0 };
    bool tumor = phantom_tumor_distances(p->scene, &s->lattice, canvas);
    for (int j = 0; j < canvas->rect.height; j++) {
        int32_t y = (int32_t)(canvas->rect.y + j);
        for (size_t f = 0; f < sizeof needed / sizeof *needed; f++)
            phantom_lattice_row(&s->lattice, needed[f], canvas->rect.x, y, canvas->rect.width,
                                s->rows[needed[f]]);
        for (int i = 0; i < canvas->rect.width; i++) {
            int32_t x = (int32_t)(canvas->rect.x + i);
            size_t at = (size_t)(j * canvas->rect.width + i);
            struct ground g = ground_at(t, s->rows, i, x, y);
            float within = tumor ? smoothstep(-12, 4, s->rows[FIELD_TUMOR][i]) : 0;
            if (within > 0)
                tumor_ground(canvas, at, within, s->rows[FIELD_STROMA][i],
                             texture_at(t->clumps, x, y), texture_at(t->blobs, x, y), &g);
            float fat = s->rows[FIELD_FAT][i];
            if (fat > 0) {
                float wall = fat_wall(p->scene, x, y, &fat_cells);
                g.eosin += fat * (0.55f * wall - g.eosin);
                g.hematoxylin += fat * (0.06f * wall - g.hematoxylin);
            }
            canvas->eosin[at] = g.eosin > 0 ? g.eosin : 0;
            canvas->hematoxylin[at] = g.hematoxylin > 0 ? g.hematoxylin : 0;
        }
    }
}

static void cut_edges(const struct phantom_painter *p, struct scratch *s,
                      struct phantom_canvas *canvas)
{
    float *keep = s->rows[FIELD_TISSUE], *depth = s->rows[FIELD_DEPTH];
    for (int j = 0; j < canvas->rect.height; j++) {
        int64_t y = canvas->rect.y + j;
        phantom_edges_row(&s->lattice, &p->textures, canvas->rect.x, y, canvas->rect.width, keep);
        phantom_lattice_row(&s->lattice, FIELD_DEPTH, canvas->rect.x, y, canvas->rect.width, depth);
        for (int i = 0; i < canvas->rect.width; i++) {
            size_t at = (size_t)(j * canvas->rect.width + i);
            canvas->hematoxylin[at] *= keep[i] * depth[i];
            canvas->eosin[at] *= keep[i] * depth[i];
        }
    }
}

/* Running mean over 2r+1 values, n values `stride` apart; the ends keep what they had. */
static void box_line(const float *from, float *to, int n, int stride)
{
    const int r = BLUR_RADIUS_PX;
    float sum = 0;
    for (int i = 0; i < 2 * r + 1; i++)
        sum += from[i * stride];
    for (int i = r; i < n - r; i++) {
        to[i * stride] = sum / (float)(2 * r + 1);
        if (i + r + 1 < n)
            sum += from[(i + r + 1) * stride] - from[(i - r) * stride];
    }
    for (int i = 0; i < r; i++)
        to[i * stride] = from[i * stride], to[(n - 1 - i) * stride] = from[(n - 1 - i) * stride];
}

/* plane -> blurred, with `room` as intermediate; the outermost BLUR_MARGIN_PX are not valid. */
static void blur_plane(const float *plane, float *blurred, float *room, int width, int height)
{
    memcpy(blurred, plane, (size_t)(width * height) * sizeof *plane);
    for (int pass = 0; pass < 3; pass++) {
        for (int j = 0; j < height; j++)
            box_line(blurred + j * width, room + j * width, width, 1);
        for (int i = 0; i < width; i++)
            box_line(room + i, blurred + i, height, width);
    }
}

static void blur(struct scratch *s, struct phantom_canvas *c)
{
    float *planes[2] = { c->hematoxylin, c->eosin };
    for (int k = 0; k < 2; k++) {
        blur_plane(planes[k], c->spare_eosin, c->spare_hematoxylin, c->rect.width, c->rect.height);
        for (int j = 0; j < c->rect.height; j++) {
            phantom_lattice_row(&s->lattice, FIELD_BLUR, c->rect.x, c->rect.y + j, c->rect.width,
                                s->rows[FIELD_BLUR]);
            for (int i = 0; i < c->rect.width; i++) {
                size_t at = (size_t)(j * c->rect.width + i);
                planes[k][at] += s->rows[FIELD_BLUR][i] * (c->spare_eosin[at] - planes[k][at]);
            }
        }
    }
}

static bool is_blurred(const struct phantom_lattice *lattice)
{
    for (int i = 0; i < lattice->across * lattice->down; i++)
        if (lattice->nodes[FIELD_BLUR][i] > 0)
            return true;
    return false;
}

static int amount_index(float amount)
{
    int i = (int)(amount * AMOUNT_STEPS + 0.5f);
    return i < 0 ? 0 : i >= AMOUNTS ? AMOUNTS - 1 : i;
}

static void develop(const struct phantom_painter *p, const struct phantom_canvas *c, int margin,
                    int width, int height, uint8_t *px, int64_t stride_bytes)
{
    for (int j = 0; j < height; j++) {
        uint8_t *to = px + j * stride_bytes;
        const int8_t *grain =
            p->textures.grain + ((c->rect.y + j) & (TEXTURE_SIDE - 1)) * TEXTURE_SIDE;
        for (int i = 0; i < width; i++, to += 3) {
            size_t at = (size_t)((j + margin) * c->rect.width + i + margin);
            const float *h = p->light_h[amount_index(c->hematoxylin[at])];
            const float *e = p->light_e[amount_index(c->eosin[at])];
            for (int k = 0; k < 3; k++)
                to[k] = to_grey(h[k] * e[k] + (float)grain[(i + 83 * k) & (TEXTURE_SIDE - 1)]);
        }
    }
}

static void paint_tissue(const struct phantom_painter *p, struct scratch *s, int64_t x, int64_t y,
                         int width, int height, uint8_t *px, int64_t stride_bytes)
{
    phantom_lattice_fill(p->scene, x, y, width, height, &s->lattice);
    int margin = 0;
    if (is_blurred(&s->lattice)) { /* blur looks beyond the rectangle */
        margin = BLUR_MARGIN_PX;
        phantom_lattice_fill(p->scene, x - margin, y - margin, width + 2 * margin,
                             height + 2 * margin, &s->lattice);
    }
    struct phantom_canvas canvas = { .rect = { .x = x - margin,
                                               .y = y - margin,
                                               .width = width + 2 * margin,
                                               .height = height + 2 * margin },
                                     .hematoxylin = s->planes[0],
                                     .eosin = s->planes[1],
                                     .nearest = s->planes[2],
                                     .second = s->planes[3],
                                     .spare_hematoxylin = s->planes[4],
                                     .spare_eosin = s->planes[5] };
    draw_ground(p, s, &canvas);
    phantom_draw_nuclei(p->scene, &s->lattice, &p->textures, &canvas);
    cut_edges(p, s, &canvas);
    if (margin)
        blur(s, &canvas);
    develop(p, &canvas, margin, width, height, px, stride_bytes);
}

static void paint_glass(const struct phantom_painter *p, int64_t x, int64_t y, int64_t width,
                        int64_t height, uint8_t *px, int64_t stride_bytes)
{
    struct rng rng = rng_new(p->scene->seed, p->scene->key, (uint64_t)y << 32 | (uint64_t)x);
    uint32_t start = rng_u32(&rng);
    for (int64_t j = 0; j < height; j++)
        memcpy(px + j * stride_bytes,
               p->glass[((start >> 16) + (uint32_t)j) % TEXTURE_SIDE][start % TEXTURE_SIDE],
               (size_t)width * 3);
}

/* Squared px from a place to the stroke from point i to the next. */
static float distance_to_stroke(const struct phantom_pen *pen, int i, float x, float y)
{
    float dx = pen->x[i + 1] - pen->x[i], dy = pen->y[i + 1] - pen->y[i];
    float ax = x - pen->x[i], ay = y - pen->y[i];
    float along = (ax * dx + ay * dy) / (dx * dx + dy * dy + 1e-6f);
    along = along < 0 ? 0 : along > 1 ? 1 : along;
    float rx = ax - along * dx, ry = ay - along * dy;
    return rx * rx + ry * ry;
}

static void paint_pen(const struct phantom_painter *p, int64_t x, int64_t y, int64_t width,
                      int64_t height, uint8_t *px, int64_t stride_bytes)
{
    const struct phantom_pen *pen = &p->scene->pen;
    int near[MAX_PEN_POINTS], n_near = 0;
    float reach = pen->half_width * 1.3f + 0.75f * PHANTOM_TILE_PX;
    for (int i = 0; i + 1 < pen->n_points; i++)
        if (!pen->lifted[i] && distance_to_stroke(pen, i, (float)(x + width / 2),
                                                  (float)(y + height / 2)) < reach * reach)
            near[n_near++] = i;
    if (n_near == 0)
        return;
    for (int64_t j = 0; j < height; j++)
        for (int64_t i = 0; i < width; i++) {
            float nearest = 1e12f;
            for (int k = 0; k < n_near; k++) {
                float d = distance_to_stroke(pen, near[k], (float)(x + i), (float)(y + j));
                nearest = d < nearest ? d : nearest;
            }
            float from_middle = sqrtf(nearest) / pen->half_width;
            float streak =
                texture_at(p->textures.blobs, (int32_t)(x + i) / 4, (int32_t)(y + j) / 4);
            float ink = smoothstep(1.1f, 0.9f, from_middle + 0.03f * streak);
            ink *= 0.85f + 0.15f * from_middle + 0.04f * streak;
            uint8_t *to = px + j * stride_bytes + i * 3;
            for (int c = 0; c < 3 && ink > 0; c++)
                to[c] = to_grey((float)to[c] * (1 - ink * (1 - pen->transmission[c])));
        }
}

struct speck {
    float x, y, half_long, half_short, cosine, sine, dark;
};

static void paint_speck(const struct phantom_painter *p, const struct speck *s, int64_t x,
                        int64_t y, int64_t width, int64_t height, uint8_t *px, int64_t stride_bytes)
{
    for (int64_t j = 0; j < height; j++)
        for (int64_t i = 0; i < width; i++) {
            float dx = (float)(x + i) - s->x, dy = (float)(y + j) - s->y;
            float u = (dx * s->cosine + dy * s->sine) / s->half_long;
            float v = (dy * s->cosine - dx * s->sine) / s->half_short;
            float q = u * u + v * v;
            if (q > 2)
                continue;
            q += 0.3f * texture_at(p->textures.blobs, (int32_t)(x + i), (int32_t)(y + j));
            float dark = s->dark * smoothstep(1.2f, 0.3f, q);
            uint8_t *to = px + j * stride_bytes + i * 3;
            for (int c = 0; c < 3; c++)
                to[c] = to_grey((float)to[c] * (1 - dark));
        }
}

/* One speck or lint for some of the squares of a wide grid. */
static void paint_dust(const struct phantom_painter *p, int64_t x, int64_t y, int64_t width,
                       int64_t height, uint8_t *px, int64_t stride_bytes)
{
    const float reach = 90;
    uint64_t stream = p->scene->key ^ rng_hash("phantom dust");
    int64_t pitch = DUST_PITCH_PX;
    for (int64_t row = y / pitch - 1; row <= (y + height) / pitch + 1; row++)
        for (int64_t column = x / pitch - 1; column <= (x + width) / pitch + 1; column++) {
            struct rng rng =
                rng_new(p->scene->seed, stream, (uint64_t)row << 32 | (uint64_t)(uint32_t)column);
            if (rng_uniform(&rng) > 0.12)
                continue;
            struct speck s = { .x = (float)(((double)column + rng_uniform(&rng)) * (double)pitch),
                               .y = (float)(((double)row + rng_uniform(&rng)) * (double)pitch) };
            bool lint = rng_uniform(&rng) < 0.3;
            float angle = (float)rng_between(&rng, 0, 3.14159265);
            s.half_long = (float)(lint ? rng_between(&rng, 30, 60) : rng_between(&rng, 4, 14));
            s.half_short = lint ? 3 : s.half_long * (float)rng_between(&rng, 0.6, 1);
            s.cosine = cosf(angle), s.sine = sinf(angle);
            s.dark = (float)rng_between(&rng, 0.4, 0.8);
            if (s.x > (float)x - reach && s.x < (float)(x + width) + reach &&
                s.y > (float)y - reach && s.y < (float)(y + height) + reach)
                paint_speck(p, &s, x, y, width, height, px, stride_bytes);
        }
}

void phantom_paint(struct phantom_painter *p, int64_t x, int64_t y, int64_t width, int64_t height,
                   uint8_t *px, int64_t stride_bytes, int worker)
{
    if (phantom_is_tissue(p->scene, x, y, width, height))
        paint_tissue(p, &p->scratch[worker], x, y, (int)width, (int)height, px, stride_bytes);
    else
        paint_glass(p, x, y, width, height, px, stride_bytes);
    paint_pen(p, x, y, width, height, px, stride_bytes);
    paint_dust(p, x, y, width, height, px, stride_bytes);
}
