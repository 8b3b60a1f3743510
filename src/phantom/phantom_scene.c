/* phantom_scene.c: see phantom_scene.h. */
#include "phantom/phantom_scene.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/rng.h"
#include "phantom/phantom_noise.h"

enum { NODES_PER_PATIENT = 2, AREA_SAMPLES = 128, RING_POINTS = 48 };

static const double tau = 6.283185307179586;

/* Scanners and laboratories: optical density of the two stains as (R, G, B), and the white. */
static const struct phantom_stain center_stains[PHANTOM_CENTERS] = {
    { { 0.62f, 0.72f, 0.36f }, { 0.14f, 0.82f, 0.34f }, { 244, 243, 245 } },
    { { 0.70f, 0.76f, 0.32f }, { 0.20f, 0.90f, 0.30f }, { 240, 238, 242 } },
    { { 0.54f, 0.74f, 0.44f }, { 0.10f, 0.74f, 0.42f }, { 246, 244, 240 } },
    { { 0.66f, 0.66f, 0.30f }, { 0.16f, 0.70f, 0.24f }, { 238, 241, 243 } },
    { { 0.58f, 0.82f, 0.46f }, { 0.18f, 0.98f, 0.50f }, { 245, 240, 243 } },
};

static float between(struct rng *rng, double low, double high)
{
    return (float)rng_between(rng, low, high);
}

static float clamp(float x, float low, float high)
{
    return x < low ? low : x > high ? high : x;
}

float phantom_curve_depth(const struct phantom_curve *c, float x, float y)
{
    float dx = x - c->x, dy = y - c->y;
    float u = (dx * c->cosine + dy * c->sine) / c->half_long;
    float v = (dy * c->cosine - dx * c->sine) / c->half_short;
    float from_centre = sqrtf(u * u + v * v);
    if (from_centre > 3)
        return (1.5f - from_centre) * c->half_short; /* no waves reach there */
    float angle = atan2f(v, u), radius = 1;
    for (int k = 0; k < CURVE_WAVES; k++)
        radius += c->amplitude[k] * cosf((float)(k + 2) * angle + c->phase[k]);
    return (radius - from_centre) * c->half_short;
}

void phantom_curve_point(const struct phantom_curve *c, double angle, double *x, double *y)
{
    double radius = 1;
    for (int k = 0; k < CURVE_WAVES; k++)
        radius += c->amplitude[k] * cos((k + 2) * angle + c->phase[k]);
    double u = radius * cos(angle) * c->half_long, v = radius * sin(angle) * c->half_short;
    *x = c->x + u * c->cosine - v * c->sine;
    *y = c->y + u * c->sine + v * c->cosine;
}

static struct phantom_curve make_curve(struct rng *rng, float x, float y, float half_long,
                                       float half_short, float angle, double wildness)
{
    struct phantom_curve c = { .x = x,
                               .y = y,
                               .half_long = half_long,
                               .half_short = half_short,
                               .cosine = cosf(angle),
                               .sine = sinf(angle) };
    for (int k = 0; k < CURVE_WAVES; k++) {
        c.amplitude[k] = between(rng, 0.3, 1) * (float)(wildness / (k + 2));
        c.phase[k] = between(rng, 0, tau);
    }
    return c;
}

/* The islands and their ragged outline, not yet cut at a level. */
static float tissue_field(const struct phantom_scene *scene, float x, float y)
{
    float size = (float)scene->size_px, best = -size;
    for (int i = 0; i < scene->n_islands; i++) {
        const struct phantom_island *s = &scene->islands[i];
        float u = ((x - s->x) * s->cosine + (y - s->y) * s->sine) / s->half_long;
        float v = ((y - s->y) * s->cosine - (x - s->x) * s->sine) / s->half_short;
        float inside = (1 - sqrtf(u * u + v * v)) * s->half_short;
        best = inside > best ? inside : best;
    }
    float wave = 0.11f * size;
    best += 0.055f * size * phantom_fractal(scene->key ^ 0x11u, x / wave, y / wave, 4);
    float margin = 0.025f * size; /* tissue keeps away from the edge of the glass */
    float to_edge = fminf(fminf(x, size - x), fminf(y, size - y));
    return fminf(best, 2 * (to_edge - margin));
}

float phantom_scene_tissue(const struct phantom_scene *scene, float x, float y)
{
    return tissue_field(scene, x, y) - scene->tissue_level;
}

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void place_islands(struct phantom_scene *scene, struct rng *rng)
{
    float size = (float)scene->size_px;
    scene->n_islands = 2 + (int)rng_below(rng, MAX_ISLANDS - 1);
    for (int i = 0; i < scene->n_islands; i++) {
        struct phantom_island *s = &scene->islands[i];
        float half_long = i ? between(rng, 0.08, 0.20) : between(rng, 0.31, 0.35);
        float angle = i ? between(rng, 0, tau / 2) : between(rng, -0.5, 0.5);
        float reach = i ? half_long : 0.3f;
        s->half_long = half_long * size;
        s->half_short = size * (i ? half_long * between(rng, 0.5, 0.9) : between(rng, 0.14, 0.18));
        s->x = between(rng, reach + 0.04, 0.96 - reach) * size;
        s->y = between(rng, fmin(reach, 0.25) + 0.04, 0.96 - fmin(reach, 0.25)) * size;
        s->cosine = cosf(angle), s->sine = sinf(angle);
    }
    /* Cut the field where the wanted share of the slide lies above. */
    float share = between(rng, 0.22, 0.32), samples[AREA_SAMPLES * AREA_SAMPLES];
    const int n = AREA_SAMPLES * AREA_SAMPLES;
    for (int i = 0; i < n; i++)
        samples[i] = tissue_field(scene, ((float)(i % AREA_SAMPLES) + 0.5f) * size / AREA_SAMPLES,
                                  ((float)(i / AREA_SAMPLES) + 0.5f) * size / AREA_SAMPLES);
    qsort(samples, (size_t)n, sizeof *samples, ascending);
    scene->tissue_level = samples[(int)((1 - share) * (float)n)];
}

static struct phantom_lesion *add_lesion(struct phantom_scene *scene, enum lesion_kind kind,
                                         struct rng *rng)
{
    struct phantom_lesion *lesion = &scene->lesions[scene->n_lesions++];
    *lesion = (struct phantom_lesion){ .kind = kind };
    lesion->pallor = between(rng, 0, 1);
    lesion->cellularity = between(rng, 0.7, 1);
    return lesion;
}

/* Along the largest island; longer than 2 mm where the slide has room for it. */
static void add_macro(struct phantom_scene *scene, struct rng *rng)
{
    const struct phantom_island *home = &scene->islands[0];
    float size = (float)scene->size_px;
    float half_long = fmaxf(fminf(0.26f * size, between(rng, 4300, 5600)), 0.13f * size);
    float half_short = half_long * between(rng, 0.3, 0.42);
    float angle = atan2f(home->sine, home->cosine);
    struct phantom_lesion *lesion = add_lesion(scene, LESION_MACRO, rng);
    lesion->outline = make_curve(rng, home->x, home->y, half_long, half_short, angle, 0.22);
    float hole = clamp(half_short * between(rng, 0.3, 0.45), 0, 900),
          along = between(rng, -0.4, 0.4);
    if (hole < 100)
        return;
    lesion->has_hole = true;
    lesion->hole = make_curve(rng, home->x + along * half_long * home->cosine,
                              home->y + along * half_long * home->sine, hole * 1.3f, hole,
                              between(rng, 0, tau), 0.2);
}

static bool is_free(const struct phantom_scene *scene, float x, float y, float radius)
{
    for (int i = 0; i < scene->n_lesions; i++)
        if (phantom_curve_depth(&scene->lesions[i].outline, x, y) > -radius - 200)
            return false;
    return true;
}

/* Somewhere in the tissue, the deeper the better for its size, apart from other lesions. */
static void add_small(struct phantom_scene *scene, enum lesion_kind kind, float radius,
                      struct rng *rng)
{
    float size = (float)scene->size_px, best = -size, best_x = size / 2, best_y = size / 2;
    for (int tries = 0; tries < 400 && best < radius + 60; tries++) {
        float x = between(rng, 0.05, 0.95) * size, y = between(rng, 0.05, 0.95) * size;
        float depth = phantom_scene_tissue(scene, x, y);
        if (depth > best && is_free(scene, x, y, radius))
            best = depth, best_x = x, best_y = y;
    }
    struct phantom_lesion *lesion = add_lesion(scene, kind, rng);
    float stretch = between(rng, 1, 1.5), angle = between(rng, 0, tau);
    lesion->outline = make_curve(rng, best_x, best_y, radius * stretch, radius, angle, 0.25);
}

static void add_lesions(struct phantom_scene *scene, enum lesion_kind worst, struct rng *rng)
{
    float size = (float)scene->size_px;
    int micro = worst == LESION_MACRO   ? (int)rng_below(rng, 3)
                : worst == LESION_MICRO ? 2 + (int)rng_below(rng, 2)
                                        : 0;
    int isolated = worst == LESION_ISOLATED ? 3 + (int)rng_below(rng, 3) : (int)rng_below(rng, 3);
    if (worst == LESION_MACRO)
        add_macro(scene, rng);
    for (int i = 0; i < micro; i++) /* 0.2 to 2 mm long */
        add_small(scene, LESION_MICRO, clamp(between(rng, 0.03, 0.07) * size, 150, 2400), rng);
    for (int i = 0; i < isolated; i++) /* below 0.2 mm */
        add_small(scene, LESION_ISOLATED, between(rng, 60, 150), rng);
}

static void mark_with_pen(struct phantom_scene *scene, struct rng *rng)
{
    static const float inks[3][3] = { { 0.22f, 0.34f, 0.78f },
                                      { 0.16f, 0.56f, 0.36f },
                                      { 0.20f, 0.20f, 0.23f } };
    if (rng_uniform(rng) > 0.4)
        return;
    struct phantom_pen *pen = &scene->pen;
    const struct phantom_island *s = &scene->islands[rng_below(rng, (uint64_t)scene->n_islands)];
    const float *ink = inks[rng_below(rng, 3)];
    for (int c = 0; c < 3; c++)
        pen->transmission[c] = ink[c];
    float size = (float)scene->size_px, turn = between(rng, 0.3, 1.05),
          start = between(rng, 0, tau);
    pen->n_points = RING_POINTS;
    pen->half_width = clamp(0.006f * size, 12, 140);
    struct phantom_curve c = make_curve(rng, s->x, s->y, s->half_long * 1.3f, s->half_short * 1.5f,
                                        atan2f(s->sine, s->cosine), 0.12);
    for (int i = 0; i < RING_POINTS; i++) {
        double x, y, angle = start + tau * turn * i / (RING_POINTS - 1);
        phantom_curve_point(&c, angle, &x, &y);
        pen->x[i] = (float)x + between(rng, -0.002, 0.002) * size;
        pen->y[i] = (float)y + between(rng, -0.002, 0.002) * size;
    }
}

static void choose_stain(struct phantom_scene *scene, struct rng *rng)
{
    scene->stain = center_stains[scene->center];
    float h = between(rng, 0.9, 1.12), e = between(rng, 0.88, 1.14);
    for (int c = 0; c < 3; c++) {
        scene->stain.hematoxylin[c] *= h * between(rng, 0.97, 1.03);
        scene->stain.eosin[c] *= e * between(rng, 0.97, 1.03);
    }
}

/* The centre of a patient: those that are chosen take turns. */
static int choose_center(unsigned centers, int64_t patient)
{
    int chosen[PHANTOM_CENTERS], n = 0;
    for (int c = 0; c < PHANTOM_CENTERS; c++)
        if (centers == 0 || (centers >> c & 1))
            chosen[n++] = c;
    return chosen[patient % n];
}

/* Two nodes a patient, one of them with a metastasis; every third patient is for testing. The kind
 * shifts by one every three patients, so that train and test see all kinds. */
static enum lesion_kind choose_patient(struct phantom_scene *scene, unsigned centers,
                                       struct rng *rng)
{
    int64_t patient = scene->index / NODES_PER_PATIENT;
    struct rng of_patient = rng_new(scene->seed, rng_hash("phantom patient"), (uint64_t)patient);
    int64_t tumor_node = (int64_t)rng_below(&of_patient, NODES_PER_PATIENT);
    scene->node = (int)(scene->index % NODES_PER_PATIENT);
    if (patient == 0)
        tumor_node = 0; /* a cohort of one slide has something to find */
    scene->tumor = scene->node == tumor_node;
    scene->test = patient % 3 == 1;
    scene->center = choose_center(centers, patient);
    scene->key = rng_u32(rng);
    snprintf(scene->patient, sizeof scene->patient, "patient_%03d", (int)patient);
    snprintf(scene->name, sizeof scene->name, "%s_node_%d", scene->patient, scene->node);
    return (enum lesion_kind)((patient + patient / 3) % 3);
}

void phantom_scene_make(uint64_t seed, int64_t index, int64_t size_px, unsigned centers,
                        struct phantom_scene *out)
{
    *out = (struct phantom_scene){ .index = index, .size_px = size_px, .seed = seed };
    struct rng rng = rng_new(seed, rng_hash("phantom slide"), (uint64_t)index);
    enum lesion_kind worst = choose_patient(out, centers, &rng);
    choose_stain(out, &rng);
    float fibre_angle = between(&rng, 0, tau);
    out->fibre_cosine = cosf(fibre_angle), out->fibre_sine = sinf(fibre_angle);
    place_islands(out, &rng);
    if (out->tumor)
        add_lesions(out, worst, &rng);
    mark_with_pen(out, &rng);
    out->n_blurs = (int)rng_below(&rng, MAX_BLURS + 1);
    for (int i = 0; i < out->n_blurs; i++)
        out->blurs[i] = (struct phantom_blur){ between(&rng, 0.1, 0.9) * (float)size_px,
                                               between(&rng, 0.1, 0.9) * (float)size_px,
                                               between(&rng, 0.03, 0.08) * (float)size_px };
}
