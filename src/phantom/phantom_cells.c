/* phantom_cells.c: see phantom_cells.h. Cells of a class are on a jittered grid that is fixed to
 * the slide; every grid position has one candidate whose random numbers are derived from the
 * position, so each rectangle gets the same cells. */
#include "phantom/phantom_cells.h"

#include <math.h>
#include "base/rng.h"

static const float cell_pitch_px[PHANTOM_CELLS] = { 28, 54, 46, 50 };

static const float tau = 6.2831853f;

struct place {
    enum phantom_cell class;
    int32_t column, row; /* of the class's grid */
    float x, y;
    struct rng rng;
};

static float between(struct rng *rng, double low, double high)
{
    return (float)rng_between(rng, low, high);
}

static struct place find_place(const struct phantom_scene *scene, enum phantom_cell class,
                               int64_t i, int64_t j)
{
    struct place place = { .class = class, .column = (int32_t)i, .row = (int32_t)j };
    uint64_t stream = ((uint64_t)scene->key << 8 | (uint64_t) class) ^ rng_hash("phantom cell");
    place.rng = rng_new(scene->seed, stream, (uint64_t)j << 32 | (uint64_t)(uint32_t)i);
    double wander = class == CELL_LYMPHOCYTE ? 0.30 : 0.34;
    double shift = (j & 1) ? 0.5 : 0;
    float pitch = cell_pitch_px[class];
    place.x = (float)((double)i + shift + rng_between(&place.rng, -wander, wander)) * pitch;
    place.y = (float)((double)j + rng_between(&place.rng, -wander, wander)) * pitch;
    return place;
}

static const struct phantom_lesion *lesion_at(const struct phantom_scene *scene, float x, float y)
{
    const struct phantom_lesion *best = &scene->lesions[0];
    float best_depth = -1e9f;
    for (int i = 0; i < scene->n_lesions; i++) {
        float depth = phantom_curve_depth(&scene->lesions[i].outline, x, y);
        if (depth > best_depth)
            best_depth = depth, best = &scene->lesions[i];
    }
    return best;
}

/* The chance that a candidate is there, from the tissue around it. */
static float chance(const struct phantom_scene *scene, const struct phantom_lattice *lattice,
                    const struct place *p)
{
    float tissue = phantom_lattice_at(lattice, FIELD_TISSUE, p->x, p->y);
    float tumor = phantom_lattice_at(lattice, FIELD_TUMOR, p->x, p->y);
    float stroma = phantom_lattice_at(lattice, FIELD_STROMA, p->x, p->y);
    float fat = phantom_lattice_at(lattice, FIELD_FAT, p->x, p->y);
    float pale = phantom_lattice_at(lattice, FIELD_PALE, p->x, p->y);
    bool cleft = fabsf(phantom_lattice_at(lattice, FIELD_TEAR, p->x, p->y)) < 0.035f &&
                 phantom_lattice_at(lattice, FIELD_TORN, p->x, p->y) > 0.3f;
    bool hollow = phantom_lattice_at(lattice, FIELD_LUMEN, p->x, p->y) > 0.93f;
    if (tissue < 6 || fat > 0.3f || cleft || hollow)
        return 0;
    bool in_tumor = tumor > 0;
    switch (p->class) {
    case CELL_LYMPHOCYTE:
        if (in_tumor)
            return 0.02f + 0.22f * stroma;
        return tumor > -14 ? 0 : 0.03f + (1 - stroma) * (0.90f - 0.52f * pale);
    case CELL_LARGE:
        return in_tumor || tumor > -20 ? 0 : (1 - stroma) * (0.03f + 0.40f * pale);
    case CELL_SPINDLE:
        return 0.62f * stroma;
    default:
        return in_tumor && stroma < 0.55f ? lesion_at(scene, p->x, p->y)->cellularity : 0;
    }
}

static void turn(struct phantom_nucleus *n, float angle)
{
    n->cosine = cosf(angle), n->sine = sinf(angle);
}

static void make_normal_nucleus(const struct phantom_lattice *lattice, struct place *p,
                                struct phantom_nucleus *n)
{
    struct rng *rng = &p->rng;
    if (p->class == CELL_LYMPHOCYTE) {
        n->half_long = between(rng, 11.5, 15.5);
        n->half_short = n->half_long * between(rng, 0.82, 1);
        turn(n, between(rng, 0, tau));
        n->irregular = 0.10f;
        n->hematoxylin = between(rng, 1.15, 1.75);
        n->hollow = 0.16f, n->clumping = between(rng, 0.2, 0.38), n->eosin = 0.30f;
    } else if (p->class == CELL_LARGE) {
        n->half_long = between(rng, 15, 20);
        n->half_short = n->half_long * between(rng, 0.7, 0.9);
        turn(n, between(rng, 0, tau));
        n->irregular = 0.07f;
        n->hematoxylin = between(rng, 0.8, 1.3);
        n->hollow = 0.40f, n->clumping = 0.22f, n->eosin = 0.30f;
    } else {
        n->half_long = between(rng, 17, 28);
        n->half_short = between(rng, 4.2, 6.5);
        float dx = phantom_lattice_at(lattice, FIELD_FIBRE_V, p->x + 8, p->y) -
                   phantom_lattice_at(lattice, FIELD_FIBRE_V, p->x - 8, p->y);
        float dy = phantom_lattice_at(lattice, FIELD_FIBRE_V, p->x, p->y + 8) -
                   phantom_lattice_at(lattice, FIELD_FIBRE_V, p->x, p->y - 8);
        turn(n, atan2f(-dx, dy) + between(rng, -0.25, 0.25));
        n->irregular = 0.12f;
        n->hematoxylin = between(rng, 0.9, 1.5);
        n->hollow = 0.1f, n->clumping = 0.15f, n->eosin = 0.45f;
    }
}

/* Large, of many shapes, crowded; the chromatin is open, with a dark rim and nucleoli. */
static void make_tumor_nucleus(const struct phantom_scene *scene, struct place *p,
                               struct phantom_nucleus *n)
{
    struct rng *rng = &p->rng;
    const struct phantom_lesion *lesion = lesion_at(scene, p->x, p->y);
    float giant = rng_uniform(rng) < 0.06 ? 1.3f : 1;
    n->half_long = giant * between(rng, 19, 30);
    n->half_short = n->half_long * between(rng, 0.6, 0.95);
    turn(n, between(rng, 0, tau));
    n->irregular = between(rng, 0.12, 0.34);
    float pallor = lesion->pallor + between(rng, -0.35, 0.35);
    pallor = pallor < 0 ? 0 : pallor > 1 ? 1 : pallor;
    n->hematoxylin = 1.5f - 0.30f * pallor + between(rng, -0.15, 0.15);
    n->hollow = 0.22f + 0.38f * pallor;
    n->clumping = 0.22f + 0.10f * pallor;
    n->eosin = 0.34f;
    n->n_nucleoli = (int)rng_below(rng, 3) + (pallor > 0.5f);
    n->nucleolus_radius = between(rng, 3, 5);
    for (int i = 0; i < n->n_nucleoli; i++) {
        float angle = between(rng, 0, tau), out = between(rng, 0, 0.5) * n->half_short;
        n->nucleolus_x[i] = p->x + out * cosf(angle);
        n->nucleolus_y[i] = p->y + out * sinf(angle);
    }
}

static float nucleolus_darkness(const struct phantom_nucleus *n, float x, float y)
{
    float dark = 0;
    for (int i = 0; i < n->n_nucleoli; i++) {
        float dx = x - n->nucleolus_x[i], dy = y - n->nucleolus_y[i];
        float q = (dx * dx + dy * dy) / (n->nucleolus_radius * n->nucleolus_radius);
        dark = q < 1 ? dark + 0.75f * (1 - q * q) : dark;
    }
    return dark;
}

static int clamp_int(float x, int low, int high)
{
    return x < (float)low ? low : x > (float)high ? high : (int)x;
}

/* One pixel of a nucleus, dx and dy from its centre. */
struct spot {
    float q;        /* 0 in the middle, 1 at the outline */
    int32_t tx, ty; /* in the textures */
    float alpha;    /* how much of the nucleus's stain is there, 0 to 1 */
};

/* edge, limit: edge_of and limit_of, once for a nucleus. */
static inline struct spot spot_at(const struct phantom_nucleus *n,
                                  const struct phantom_textures *textures, float dx, float dy,
                                  float edge, float limit)
{
    struct spot spot = { 0 };
    float u = (dx * n->cosine + dy * n->sine) / n->half_long;
    float v = (dy * n->cosine - dx * n->sine) / n->half_short;
    float q = u * u + v * v;
    if (q > limit)
        return spot;
    /* dx and dy are above -256: truncation then goes one way. */
    spot.tx = (int32_t)(dx + 256) + n->texture_x, spot.ty = (int32_t)(dy + 256) + n->texture_y;
    q += n->irregular * texture_at(textures->shapes, spot.tx, spot.ty);
    if (q >= 1)
        return spot;
    float alpha = (1 - q) * edge;
    spot.q = q, spot.alpha = alpha > 1 ? 1 : alpha;
    return spot;
}

/* The outline fades over 1.3 px. */
static float edge_of(const struct phantom_nucleus *n)
{
    return 0.5f * n->half_short / 1.3f;
}

static float limit_of(const struct phantom_nucleus *n)
{
    return 1 + 2 * n->irregular;
}

/* The part of a canvas that a nucleus may touch. */
struct box {
    float cx, cy; /* the centre of the nucleus */
    int left, top, right, bottom;
};

static struct box box_of(const struct phantom_nucleus *n, const struct phantom_rect *rect)
{
    float reach = n->half_long * sqrtf(1 + 2 * n->irregular) + 1;
    float cx = n->x - (float)rect->x, cy = n->y - (float)rect->y;
    return (struct box){ .cx = cx,
                         .cy = cy,
                         .left = clamp_int(cx - reach, 0, rect->width),
                         .top = clamp_int(cy - reach, 0, rect->height),
                         .right = clamp_int(cx + reach + 1, 0, rect->width),
                         .bottom = clamp_int(cy + reach + 1, 0, rect->height) };
}

static void paint_nucleus(const struct phantom_nucleus *n, const struct phantom_textures *textures,
                          struct phantom_canvas *canvas)
{
    struct box box = box_of(n, &canvas->rect);
    float edge = edge_of(n), limit = limit_of(n);
    for (int j = box.top; j < box.bottom; j++)
        for (int i = box.left; i < box.right; i++) {
            float dx = (float)i - box.cx, dy = (float)j - box.cy;
            struct spot spot = spot_at(n, textures, dx, dy, edge, limit);
            if (spot.alpha <= 0)
                continue;
            float middle = spot.q < 0 ? 1 : 1 - spot.q * spot.q;
            float amount = n->hematoxylin * (1 - n->hollow * middle) *
                           (1 + n->clumping * texture_at(textures->clumps, spot.tx, spot.ty));
            if (n->n_nucleoli)
                amount += nucleolus_darkness(n, n->x + dx, n->y + dy);
            size_t at = (size_t)(j * canvas->rect.width + i);
            canvas->hematoxylin[at] += spot.alpha * (amount - canvas->hematoxylin[at]);
            canvas->eosin[at] += spot.alpha * (n->eosin - canvas->eosin[at]);
        }
}

int64_t phantom_nucleus_claim(const struct phantom_nucleus *n,
                              const struct phantom_textures *textures,
                              const struct phantom_rect *rect, int32_t owner, int32_t *owners)
{
    struct box box = box_of(n, rect);
    float edge = edge_of(n), limit = limit_of(n);
    int64_t claimed = 0;
    for (int j = box.top; j < box.bottom; j++)
        for (int i = box.left; i < box.right; i++)
            if (spot_at(n, textures, (float)i - box.cx, (float)j - box.cy, edge, limit).alpha >=
                0.5f) {
                owners[j * rect->width + i] = owner;
                claimed++;
            }
    return claimed;
}

struct cell_visit {
    const struct phantom_scene *scene;
    const struct phantom_lattice *lattice;
    const struct phantom_textures *textures;
    struct phantom_canvas *canvas;
    phantom_take_nucleus take;
    void *arg;
};

/* Calls visit for every cell of a class that may touch the rectangle, in the order of the grid. */
static void each_cell(const struct cell_visit *with, const struct phantom_rect *r,
                      enum phantom_cell class,
                      void (*visit)(const struct cell_visit *, struct place *))
{
    const int margin = LATTICE_MARGIN - LATTICE_STEP;
    float pitch = cell_pitch_px[class];
    int64_t first_j = (int64_t)floorf((float)(r->y - margin) / pitch);
    int64_t last_j = (int64_t)ceilf((float)(r->y + r->height + margin) / pitch);
    int64_t first_i = (int64_t)floorf((float)(r->x - margin) / pitch) - 1;
    int64_t last_i = (int64_t)ceilf((float)(r->x + r->width + margin) / pitch);
    for (int64_t j = first_j; j <= last_j; j++)
        for (int64_t i = first_i; i <= last_i; i++) {
            struct place place = find_place(with->scene, class, i, j);
            if (place.x < (float)(r->x - margin) || place.y < (float)(r->y - margin) ||
                place.x > (float)(r->x + r->width + margin) ||
                place.y > (float)(r->y + r->height + margin))
                continue;
            float p = chance(with->scene, with->lattice, &place);
            if (p > 0 && rng_uniform(&place.rng) < p)
                visit(with, &place);
        }
}

static struct phantom_nucleus make_nucleus(const struct cell_visit *with, struct place *place)
{
    struct phantom_nucleus n = { .x = place->x, .y = place->y, .cell = place->class };
    n.id = 1 + ((int32_t)place->class << 26 | (place->row + 8) << 13 | (place->column + 8));
    n.texture_x = (int32_t)rng_below(&place->rng, TEXTURE_SIDE);
    n.texture_y = (int32_t)rng_below(&place->rng, TEXTURE_SIDE);
    if (place->class == CELL_TUMOR)
        make_tumor_nucleus(with->scene, place, &n);
    else
        make_normal_nucleus(with->lattice, place, &n);
    return n;
}

static void visit_nucleus(const struct cell_visit *with, struct place *place)
{
    struct phantom_nucleus n = make_nucleus(with, place);
    paint_nucleus(&n, with->textures, with->canvas);
}

static void visit_taker(const struct cell_visit *with, struct place *place)
{
    struct phantom_nucleus n = make_nucleus(with, place);
    with->take(with->arg, &n);
}

static void visit_distance(const struct cell_visit *with, struct place *place)
{
    const float reach = 70;
    struct phantom_canvas *c = with->canvas;
    const struct phantom_rect *r = &c->rect;
    float cx = place->x - (float)r->x, cy = place->y - (float)r->y;
    int left = clamp_int(cx - reach, 0, r->width), right = clamp_int(cx + reach, 0, r->width);
    int top = clamp_int(cy - reach, 0, r->height), bottom = clamp_int(cy + reach, 0, r->height);
    for (int j = top; j < bottom; j++)
        for (int i = left; i < right; i++) {
            float dx = (float)i - cx, dy = (float)j - cy;
            float d = sqrtf(dx * dx + dy * dy);
            size_t at = (size_t)(j * r->width + i);
            float second = c->second[at] < d ? c->second[at] : d;
            c->second[at] = second > c->nearest[at] ? second : c->nearest[at];
            c->nearest[at] = c->nearest[at] < d ? c->nearest[at] : d;
        }
}

bool phantom_tumor_distances(const struct phantom_scene *scene,
                             const struct phantom_lattice *lattice, struct phantom_canvas *canvas)
{
    float deepest = -1e9f;
    for (int i = 0; i < lattice->across * lattice->down; i++)
        deepest = fmaxf(deepest, lattice->nodes[FIELD_TUMOR][i]);
    if (deepest <= 0)
        return false;
    for (int i = 0; i < canvas->rect.width * canvas->rect.height; i++)
        canvas->nearest[i] = canvas->second[i] = 70;
    struct cell_visit with = { .scene = scene, .lattice = lattice, .canvas = canvas };
    each_cell(&with, &canvas->rect, CELL_TUMOR, visit_distance);
    return true;
}

/* In the order in which they are painted. */
static void each_nucleus(const struct cell_visit *with, const struct phantom_rect *rect,
                         void (*visit)(const struct cell_visit *, struct place *))
{
    for (int class = 0; class < PHANTOM_CELLS; class ++)
        if (class != CELL_TUMOR || with->scene->n_lesions > 0)
            each_cell(with, rect, (enum phantom_cell) class, visit);
}

void phantom_draw_nuclei(const struct phantom_scene *scene, const struct phantom_lattice *lattice,
                         const struct phantom_textures *textures, struct phantom_canvas *canvas)
{
    struct cell_visit with = {
        .scene = scene, .lattice = lattice, .textures = textures, .canvas = canvas
    };
    each_nucleus(&with, &canvas->rect, visit_nucleus);
}

void phantom_each_nucleus(const struct phantom_scene *scene, const struct phantom_lattice *lattice,
                          const struct phantom_rect *rect, phantom_take_nucleus take, void *arg)
{
    struct cell_visit with = { .scene = scene, .lattice = lattice, .take = take, .arg = arg };
    each_nucleus(&with, rect, visit_taker);
}
