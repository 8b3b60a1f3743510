/* phantom_artefacts.c: see phantom_artefacts.h. The slide is painted as it is in the tiles around,
 * then light passes through what lies on top: a second layer of tissue, ink, air. */
#include "phantom/phantom_artefacts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/divide.h"
#include "base/rng.h"
#include "phantom/phantom_noise.h"

enum {
    ROOM_PX = PHANTOM_TILE_PX + 2 * ARTEFACT_MARGIN_PX,
    FOLD_SHIFT_PX = 200, /* how far the upper layer of a fold comes from */
    PLACES_TRIED = 4000
};

#define SIGMAS 3.0f          /* a Gaussian is cut off at this many */
#define BUBBLE_SIGMA_UM 3.0f /* tissue under a bubble is out of focus */
#define BUBBLE_RIM_UM 24.0f
#define BUBBLE_PALLOR 0.35f /* light that comes past the tissue */

struct phantom_artefact_painter {
    int workers;
    struct {
        uint8_t below[ROOM_PX * ROOM_PX * 3]; /* the slide without artefacts */
        float lines[3][ROOM_PX * PHANTOM_TILE_PX];
    } scratch[];
};

bool phantom_artefact_painter_new(int workers, struct phantom_artefact_painter **out,
                                  struct err *err)
{
    struct phantom_artefact_painter *p =
        calloc(1, sizeof *p + (size_t)workers * sizeof p->scratch[0]);
    if (!p)
        return err_memory(err, "phantom");
    p->workers = workers;
    *out = p;
    return true;
}

void phantom_artefact_painter_free(struct phantom_artefact_painter *painter)
{
    free(painter);
}

static float between(struct rng *rng, double low, double high)
{
    return (float)rng_between(rng, low, high);
}

static bool is_disc(const struct phantom_artefact *a)
{
    return a->kind == ARTEFACT_BLUR || a->kind == ARTEFACT_BUBBLE;
}

/* Distance from the middle: of a disc its centre, of a strip its middle line, which winds. */
static float from_middle(const struct phantom_artefact *a, float x, float y)
{
    float dx = x - a->x, dy = y - a->y;
    if (is_disc(a))
        return hypotf(dx, dy);
    float along = dx * a->cosine + dy * a->sine, across = dy * a->cosine - dx * a->sine;
    float over = fmaxf(fabsf(along) - a->half_long, 0);
    return hypotf(over, across + 0.5f * a->reach * sinf(along / (3 * a->reach)));
}

int phantom_artefact_at(const struct phantom_artefacts *artefacts, float x, float y)
{
    for (int i = 0; i < artefacts->n; i++)
        if (from_middle(&artefacts->items[i], x, y) < artefacts->items[i].reach)
            return (int)artefacts->items[i].kind;
    return 0;
}

static float extent(const struct phantom_artefact *a)
{
    return is_disc(a) ? a->reach : a->half_long + 1.5f * a->reach;
}

static bool is_apart(const struct phantom_artefacts *others, const struct phantom_artefact *a)
{
    for (int i = 0; i < others->n; i++) {
        const struct phantom_artefact *b = &others->items[i];
        if (hypotf(a->x - b->x, a->y - b->y) < extent(a) + extent(b) + 2 * ARTEFACT_MARGIN_PX)
            return false;
    }
    return true;
}

/* The middle in the tissue, a disc entirely; omitted if there is no room for it. */
static void place(const struct phantom_scene *scene, struct rng *rng, struct phantom_artefact a,
                  struct phantom_artefacts *out)
{
    float size = (float)scene->size_px, depth = is_disc(&a) ? 0.8f * a.reach : 2 * a.reach;
    for (int tries = 0; tries < PLACES_TRIED; tries++) {
        float angle = between(rng, 0, 3.14159265);
        a.cosine = cosf(angle), a.sine = sinf(angle);
        a.x = between(rng, 0.05, 0.95) * size, a.y = between(rng, 0.05, 0.95) * size;
        float reach = is_disc(&a) ? 0 : 0.7f * a.half_long, least = size;
        for (int end = -1; end <= 1; end++)
            least = fminf(least, phantom_scene_tissue(scene, a.x + (float)end * reach * a.cosine,
                                                      a.y + (float)end * reach * a.sine));
        if (least < depth || !is_apart(out, &a))
            continue;
        out->items[out->n++] = a;
        return;
    }
}

void phantom_artefacts_place(struct phantom_scene *scene, struct phantom_artefacts *out)
{
    static const float inks[4][3] = { { 0.22f, 0.34f, 0.78f },
                                      { 0.16f, 0.56f, 0.36f },
                                      { 0.20f, 0.20f, 0.23f },
                                      { 0.80f, 0.16f, 0.16f } };
    static const float sigmas_um[5] = { 1, 1.5f, 2, 3, 4 };
    struct rng rng = rng_new(scene->seed, rng_hash("phantom artefacts"), (uint64_t)scene->index);
    float size = (float)scene->size_px;
    *out = (struct phantom_artefacts){ 0 };
    scene->n_blurs = 0;
    scene->pen.n_points = 0;
    for (int round = 0; round < 2; round++) {
        struct phantom_artefact a = { .kind = ARTEFACT_BLUR };
        a.reach = fminf(fmaxf(0.05f * size, 500), 2400);
        a.sigma = sigmas_um[(2 * scene->index + round) % 5] / (float)PHANTOM_MPP;
        place(scene, &rng, a, out);
        a = (struct phantom_artefact){ .kind = ARTEFACT_BUBBLE };
        a.reach = fminf(fmaxf(between(&rng, 0.03, 0.05) * size, 400), 2000);
        a.sigma = BUBBLE_SIGMA_UM / (float)PHANTOM_MPP;
        place(scene, &rng, a, out);
        a = (struct phantom_artefact){ .kind = ARTEFACT_FOLD };
        a.reach = between(&rng, 100, 240);
        a.half_long = fmaxf(0.06f * size, 400);
        place(scene, &rng, a, out);
        a = (struct phantom_artefact){ .kind = ARTEFACT_PEN };
        a.reach = fminf(fmaxf(0.012f * size, 100), 600);
        a.half_long = fmaxf(0.08f * size, 400);
        memcpy(a.transmission, inks[(scene->index + round) % 4], sizeof a.transmission);
        place(scene, &rng, a, out);
    }
}

static uint8_t to_grey(float value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value + 0.5f);
}

/* Does the artefact touch this rectangle? */
static bool touches(const struct phantom_artefact *a, int64_t x, int64_t y, int64_t width,
                    int64_t height)
{
    float middle_x = (float)x + (float)width / 2, middle_y = (float)y + (float)height / 2;
    float around = hypotf((float)width, (float)height) / 2;
    return from_middle(a, middle_x, middle_y) < 1.5f * a->reach + around;
}

/* The slide without artefacts, with a margin, tile by tile as it would be without it. */
static void paint_below(struct phantom_painter *painter, int64_t x, int64_t y, uint8_t *below,
                        int64_t size_px, int worker)
{
    memset(below, 255, (size_t)ROOM_PX * ROOM_PX * 3);
    for (int64_t row = -1; row <= 1; row++)
        for (int64_t column = -1; column <= 1; column++) {
            int64_t left = x + column * PHANTOM_TILE_PX, top = y + row * PHANTOM_TILE_PX;
            int64_t width = size_px - left, height = size_px - top;
            if (left < 0 || top < 0 || width <= 0 || height <= 0)
                continue;
            width = width < PHANTOM_TILE_PX ? width : PHANTOM_TILE_PX;
            height = height < PHANTOM_TILE_PX ? height : PHANTOM_TILE_PX;
            uint8_t *to = below + ((row + 1) * ROOM_PX + column + 1) * PHANTOM_TILE_PX * 3;
            phantom_paint(painter, left, top, width, height, to, ROOM_PX * 3, worker);
        }
}

/* Gaussian blur of the tile in the middle of `below`, to lines[c][y * PHANTOM_TILE_PX + x]. */
static void blur_tile(const uint8_t *below, float sigma, float lines[3][ROOM_PX * PHANTOM_TILE_PX])
{
    float weights[ARTEFACT_MARGIN_PX + 1], sum = 0;
    int radius = (int)(SIGMAS * sigma);
    for (int k = 0; k <= radius; k++) {
        weights[k] = expf(-0.5f * (float)(k * k) / (sigma * sigma));
        sum += k ? 2 * weights[k] : weights[k];
    }
    for (int c = 0; c < 3; c++) {
        float *line = lines[c], column[ROOM_PX];
        for (int j = 0; j < ROOM_PX; j++)
            for (int i = 0; i < PHANTOM_TILE_PX; i++) {
                const uint8_t *from = below + (j * ROOM_PX + i + ARTEFACT_MARGIN_PX) * 3 + c;
                float value = weights[0] * (float)from[0];
                for (int k = 1; k <= radius; k++)
                    value += weights[k] * (float)(from[3 * k] + from[-3 * k]);
                line[j * PHANTOM_TILE_PX + i] = value / sum;
            }
        for (int i = 0; i < PHANTOM_TILE_PX; i++) {
            for (int j = 0; j < ROOM_PX; j++)
                column[j] = line[j * PHANTOM_TILE_PX + i];
            for (int j = 0; j < PHANTOM_TILE_PX; j++) {
                const float *from = column + j + ARTEFACT_MARGIN_PX;
                float value = weights[0] * from[0];
                for (int k = 1; k <= radius; k++)
                    value += weights[k] * (from[k] + from[-k]);
                line[j * PHANTOM_TILE_PX + i] = value / sum;
            }
        }
    }
}

/* What is seen of a bubble at a distance from its centre: a dark rim, within it a thin bright line,
 * and a pale, blurred interior. */
static float bubble_light(const struct phantom_artefact *a, float blurred, float distance)
{
    float rim = BUBBLE_RIM_UM / (float)PHANTOM_MPP, inside = a->reach - distance;
    float dark = smoothstep(0, 0.25f * rim, inside) * smoothstep(rim, 0.7f * rim, inside);
    float bright =
        smoothstep(rim, 1.15f * rim, inside) * smoothstep(1.4f * rim, 1.2f * rim, inside);
    float light = blurred + (BUBBLE_PALLOR + 0.4f * bright) * (240 - blurred);
    return light * (1 - 0.88f * dark);
}

static void paint_one(const struct phantom_artefact *a, const struct phantom_painter *painter,
                      const uint8_t *below, float lines[3][ROOM_PX * PHANTOM_TILE_PX], int64_t x,
                      int64_t y, int64_t width, int64_t height, uint8_t *px, int64_t stride_bytes)
{
    int shift = (int)((float)FOLD_SHIFT_PX * -a->sine), down = (int)(FOLD_SHIFT_PX * a->cosine);
    const float *glass = phantom_painter_glass(painter);
    for (int64_t j = 0; j < height; j++)
        for (int64_t i = 0; i < width; i++) {
            float distance = from_middle(a, (float)(x + i), (float)(y + j));
            if (distance >= a->reach)
                continue;
            int64_t at = (j + ARTEFACT_MARGIN_PX) * ROOM_PX + i + ARTEFACT_MARGIN_PX;
            const uint8_t *upper = below + (at + down * ROOM_PX + shift) * 3;
            float ink = 0.85f + 0.15f * distance / a->reach;
            uint8_t *to = px + j * stride_bytes + 3 * i;
            for (int c = 0; c < 3; c++) {
                float light = (float)to[c], blurred = lines[c][j * PHANTOM_TILE_PX + i];
                if (a->kind == ARTEFACT_FOLD)
                    light *= fminf((float)upper[c] / glass[c], 1);
                else if (a->kind == ARTEFACT_PEN)
                    light *= 1 - ink * (1 - a->transmission[c]);
                else
                    light = a->kind == ARTEFACT_BLUR ? blurred : bubble_light(a, blurred, distance);
                to[c] = to_grey(light);
            }
        }
}

void phantom_artefacts_paint(struct phantom_artefact_painter *room, struct phantom_painter *painter,
                             const struct phantom_artefacts *artefacts, int64_t x, int64_t y,
                             int64_t width, int64_t height, uint8_t *px, int64_t stride_bytes,
                             int worker)
{
    uint8_t *below = room->scratch[worker].below;
    bool painted = false;
    phantom_paint(painter, x, y, width, height, px, stride_bytes, worker);
    for (int k = 0; k < artefacts->n; k++) {
        const struct phantom_artefact *a = &artefacts->items[k];
        if (!touches(a, x, y, width, height))
            continue;
        if (!painted)
            paint_below(painter, x, y, below, phantom_painter_size(painter), worker);
        painted = true;
        if (a->sigma > 0)
            blur_tile(below, a->sigma, room->scratch[worker].lines);
        paint_one(a, painter, below, room->scratch[worker].lines, x, y, width, height, px,
                  stride_bytes);
    }
}

bool phantom_artefacts_write(const char *path, const struct phantom_artefacts *artefacts,
                             int64_t size_px, struct err *err)
{
    struct image mask;
    int64_t side = ceil_div(size_px, ARTEFACT_MASK_PX);
    if (!image_new(&mask, side, side, 1, err))
        return false;
    for (int64_t y = 0; y < side; y++)
        for (int64_t x = 0; x < side; x++)
            *image_at(&mask, x, y) =
                (uint8_t)phantom_artefact_at(artefacts, ((float)x + 0.5f) * ARTEFACT_MASK_PX,
                                             ((float)y + 0.5f) * ARTEFACT_MASK_PX);
    bool ok = image_write_png(path, &mask, err);
    image_free(&mask);
    return ok;
}
