/* phantom_cells.c: see phantom_cells.h. Cells of a class are on a jittered grid that is fixed to
 * the slide; every grid position has one candidate whose random numbers are derived from the
 * position, so each rectangle gets the same cells. */
#include "phantom/phantom_cells.h"

#include <math.h>
#include "base/rng.h"

enum cell_class { CELL_LYMPHOCYTE, CELL_LARGE, CELL_SPINDLE, CELL_TUMOR, N_CELL_CLASSES };

static const float cell_pitch_px[N_CELL_CLASSES] = { 28, 54, 46, 50 };

static const float tau = 6.2831853f;

struct nucleus {
    float x, y, half_long, half_short, cosine, sine;
    float irregular;   /* how much noise bends the outline; 0: an ellipse */
    float hematoxylin; /* amount at the rim */
    float hollow;      /* how much paler the middle is, 0 to 1 */
    float clumping;    /* contrast of the chromatin */
    float eosin;
    int n_nucleoli;
    float nucleolus_x[3], nucleolus_y[3], nucleolus_radius;
    int32_t texture_x, texture_y;
};

struct place {
    enum cell_class class;
    float x, y;
    struct rng rng;
};

static float between(struct rng *rng, double low, double high)
{
    return (float)rng_between(rng, low, high);
}

static struct place find_place(const struct phantom_scene *scene, enum cell_class class, int64_t i,
                               int64_t j)
{
    struct place place = { .class = class };
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

static void turn(struct nucleus *n, float angle)
{
    n->cosine = cosf(angle), n->sine = sinf(angle);
}

static void make_normal_nucleus(const struct phantom_lattice *lattice, struct place *p,
                                struct nucleus *n)
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
                               struct nucleus *n)
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

static float nucleolus_darkness(const struct nucleus *n, float x, float y)
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

static void paint_nucleus(const struct nucleus *n, const struct phantom_textures *textures,
                          struct phantom_canvas *canvas)
{
    float reach = n->half_long * sqrtf(1 + 2 * n->irregular) + 1;
    float cx = n->x - (float)canvas->x, cy = n->y - (float)canvas->y;
    int left = clamp_int(cx - reach, 0, canvas->width),
        right = clamp_int(cx + reach + 1, 0, canvas->width);
    int top = clamp_int(cy - reach, 0, canvas->height),
        bottom = clamp_int(cy + reach + 1, 0, canvas->height);
    float edge = 0.5f * n->half_short / 1.3f; /* the outline fades over 1.3 px */
    float limit = 1 + 2 * n->irregular;
    for (int j = top; j < bottom; j++)
        for (int i = left; i < right; i++) {
            float dx = (float)i - cx, dy = (float)j - cy;
            float u = (dx * n->cosine + dy * n->sine) / n->half_long;
            float v = (dy * n->cosine - dx * n->sine) / n->half_short;
            float q = u * u + v * v;
            if (q > limit)
                continue;
            /* dx and dy are above -256: truncation then goes one way. */
            int32_t tx = (int32_t)(dx + 256) + n->texture_x,
                    ty = (int32_t)(dy + 256) + n->texture_y;
            q += n->irregular * texture_at(textures->shapes, tx, ty);
            if (q >= 1)
                continue;
            float alpha = (1 - q) * edge;
            alpha = alpha > 1 ? 1 : alpha;
            float middle = q < 0 ? 1 : 1 - q * q;
            float amount = n->hematoxylin * (1 - n->hollow * middle) *
                           (1 + n->clumping * texture_at(textures->clumps, tx, ty));
            if (n->n_nucleoli)
                amount += nucleolus_darkness(n, n->x + dx, n->y + dy);
            size_t at = (size_t)(j * canvas->width + i);
            canvas->hematoxylin[at] += alpha * (amount - canvas->hematoxylin[at]);
            canvas->eosin[at] += alpha * (n->eosin - canvas->eosin[at]);
        }
}

/* Calls visit for every cell of a class that may touch the canvas, in the order of the grid. */
struct cell_visit {
    const struct phantom_scene *scene;
    const struct phantom_lattice *lattice;
    const struct phantom_textures *textures;
    struct phantom_canvas *canvas;
};

static void each_cell(const struct cell_visit *with, enum cell_class class,
                      void (*visit)(const struct cell_visit *, struct place *))
{
    const struct phantom_canvas *c = with->canvas;
    const int margin = LATTICE_MARGIN - LATTICE_STEP;
    float pitch = cell_pitch_px[class];
    int64_t first_j = (int64_t)floorf((float)(c->y - margin) / pitch);
    int64_t last_j = (int64_t)ceilf((float)(c->y + c->height + margin) / pitch);
    int64_t first_i = (int64_t)floorf((float)(c->x - margin) / pitch) - 1;
    int64_t last_i = (int64_t)ceilf((float)(c->x + c->width + margin) / pitch);
    for (int64_t j = first_j; j <= last_j; j++)
        for (int64_t i = first_i; i <= last_i; i++) {
            struct place place = find_place(with->scene, class, i, j);
            if (place.x < (float)(c->x - margin) || place.y < (float)(c->y - margin) ||
                place.x > (float)(c->x + c->width + margin) ||
                place.y > (float)(c->y + c->height + margin))
                continue;
            float p = chance(with->scene, with->lattice, &place);
            if (p > 0 && rng_uniform(&place.rng) < p)
                visit(with, &place);
        }
}

static void visit_nucleus(const struct cell_visit *with, struct place *place)
{
    struct nucleus n = { .x = place->x, .y = place->y };
    n.texture_x = (int32_t)rng_below(&place->rng, TEXTURE_SIDE);
    n.texture_y = (int32_t)rng_below(&place->rng, TEXTURE_SIDE);
    if (place->class == CELL_TUMOR)
        make_tumor_nucleus(with->scene, place, &n);
    else
        make_normal_nucleus(with->lattice, place, &n);
    paint_nucleus(&n, with->textures, with->canvas);
}

static void visit_distance(const struct cell_visit *with, struct place *place)
{
    const float reach = 70;
    struct phantom_canvas *c = with->canvas;
    float cx = place->x - (float)c->x, cy = place->y - (float)c->y;
    int left = clamp_int(cx - reach, 0, c->width), right = clamp_int(cx + reach, 0, c->width);
    int top = clamp_int(cy - reach, 0, c->height), bottom = clamp_int(cy + reach, 0, c->height);
    for (int j = top; j < bottom; j++)
        for (int i = left; i < right; i++) {
            float dx = (float)i - cx, dy = (float)j - cy;
            float d = sqrtf(dx * dx + dy * dy);
            size_t at = (size_t)(j * c->width + i);
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
    for (int i = 0; i < canvas->width * canvas->height; i++)
        canvas->nearest[i] = canvas->second[i] = 70;
    struct cell_visit with = { scene, lattice, NULL, canvas };
    each_cell(&with, CELL_TUMOR, visit_distance);
    return true;
}

void phantom_draw_nuclei(const struct phantom_scene *scene, const struct phantom_lattice *lattice,
                         const struct phantom_textures *textures, struct phantom_canvas *canvas)
{
    struct cell_visit with = { scene, lattice, textures, canvas };
    for (int class = 0; class < N_CELL_CLASSES; class ++)
        if (class != CELL_TUMOR || scene->n_lesions > 0)
            each_cell(&with, (enum cell_class) class, visit_nucleus);
}
