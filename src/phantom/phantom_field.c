/* phantom_field.c: see phantom_field.h. */
#include "phantom/phantom_field.h"

#include <math.h>
#include "base/divide.h"
#include "phantom/phantom_layout.h"
#include "phantom/phantom_noise.h"

/* Structures have the size that biology gives them, unless the slide is too small for that. */
static float wavelength(const struct phantom_scene *scene, float px)
{
    return fminf(px, 0.15f * (float)scene->size_px);
}

static float noise_at(const struct phantom_scene *scene, uint32_t which, float x, float y, float px,
                      int octaves)
{
    return phantom_fractal(scene->key + which * 0x9E3779B9u, x / px, y / px, octaves);
}

static float tumor_depth(const struct phantom_scene *scene, float x, float y)
{
    float depth = -(float)scene->size_px;
    for (int i = 0; i < scene->n_lesions; i++) {
        const struct phantom_lesion *lesion = &scene->lesions[i];
        float inside = phantom_curve_depth(&lesion->outline, x, y);
        if (lesion->has_hole && inside > 0)
            inside = fminf(inside, -phantom_curve_depth(&lesion->hole, x, y));
        depth = fmaxf(depth, inside);
    }
    return depth;
}

/* As tumor_depth, holes included. */
static float lesion_depth(const struct phantom_scene *scene, float x, float y)
{
    float depth = -(float)scene->size_px;
    for (int i = 0; i < scene->n_lesions; i++)
        depth = fmaxf(depth, phantom_curve_depth(&scene->lesions[i].outline, x, y));
    return depth;
}

/* Tissue reaches beyond every lesion, so that what is annotated is there. */
static float tissue_depth(const struct phantom_scene *scene, float x, float y)
{
    return fmaxf(phantom_scene_tissue(scene, x, y), lesion_depth(scene, x, y) + 60);
}

bool phantom_is_tissue(const struct phantom_scene *scene, int64_t x, int64_t y, int64_t width,
                       int64_t height)
{
    const int64_t step = 64;
    for (int64_t j = y; j < y + height + step; j += step)
        for (int64_t i = x; i < x + width + step; i += step)
            if (tissue_depth(scene, (float)i, (float)j) > -150)
                return true;
    return false;
}

struct node {
    float values[N_FIELDS];
};

static void normal_fields(const struct phantom_scene *scene, float x, float y, float *v)
{
    float inside = v[FIELD_TISSUE];
    float fat = noise_at(scene, 1, x, y, wavelength(scene, 2000), 3);
    fat += 0.35f * smoothstep(900, 100, inside);
    v[FIELD_FAT] = smoothstep(0.50f, 0.56f, fat);
    if (v[FIELD_FAT] > 0) /* none in a lesion or its hole */
        v[FIELD_FAT] *= smoothstep(-20, -60, lesion_depth(scene, x, y));
    float ridge = fabsf(noise_at(scene, 2, x, y, wavelength(scene, 1100), 2));
    float broad = noise_at(scene, 3, x, y, wavelength(scene, 1300), 3);
    float stroma = fmaxf(smoothstep(0.055f, 0.02f, ridge), smoothstep(0.12f, 0.25f, broad));
    v[FIELD_STROMA] = fmaxf(stroma, smoothstep(150, 70, inside));
    v[FIELD_PALE] = smoothstep(0.20f, 0.34f, noise_at(scene, 4, x, y, wavelength(scene, 900), 3));
    v[FIELD_TORN] = smoothstep(0.15f, 0.35f, noise_at(scene, 5, x, y, 800, 1));
    v[FIELD_TEAR] = noise_at(scene, 6, x, y, 420, 2);
    v[FIELD_LUMEN] = 0;
}

static void tumor_fields(const struct phantom_scene *scene, float x, float y, float *v)
{
    float within = smoothstep(-12, 12, v[FIELD_TUMOR]);
    float septa = smoothstep(0.13f, 0.07f, fabsf(noise_at(scene, 7, x, y, 330, 2)));
    septa *= smoothstep(-0.3f, 0.1f, noise_at(scene, 8, x, y, 1200, 2));
    v[FIELD_STROMA] += within * (septa - v[FIELD_STROMA]);
    v[FIELD_PALE] *= 1 - within;
    v[FIELD_TORN] *= 1 - within;
    v[FIELD_LUMEN] = within * (1 - septa) * noise_at(scene, 9, x, y, 230, 2) / 0.72f;
}

static void cord_fields(const struct phantom_scene *scene, float x, float y, float *v)
{
    float edge = smoothstep(150, 70, v[FIELD_TISSUE]);
    v[FIELD_STROMA] = fmaxf(1 - phantom_layout_cord(scene, x, y), edge);
    v[FIELD_FAT] = v[FIELD_PALE] = v[FIELD_TORN] = 0;
}

static struct node evaluate(const struct phantom_scene *scene, float x, float y)
{
    struct node node = { 0 };
    float *v = node.values;
    v[FIELD_TISSUE] = tissue_depth(scene, x, y) + 14 * noise_at(scene, 10, x, y, 90, 2);
    v[FIELD_TUMOR] = tumor_depth(scene, x, y);
    normal_fields(scene, x, y, v);
    if (scene->layout == LAYOUT_CORDS)
        cord_fields(scene, x, y, v);
    if (v[FIELD_TUMOR] > -80)
        tumor_fields(scene, x, y, v);
    v[FIELD_DEPTH] = 1 + 0.16f * noise_at(scene, 11, x, y, 1500, 3);
    float along = x * scene->fibre_cosine + y * scene->fibre_sine;
    float across = y * scene->fibre_cosine - x * scene->fibre_sine;
    v[FIELD_FIBRE_U] = along;
    v[FIELD_FIBRE_V] =
        across + 330 * noise_at(scene, 12, x, y, 900, 2) + 12 * noise_at(scene, 13, x, y, 130, 1);
    for (int i = 0; i < scene->n_blurs; i++) {
        const struct phantom_blur *b = &scene->blurs[i];
        float distance = hypotf(x - b->x, y - b->y) / b->radius;
        v[FIELD_BLUR] = fmaxf(v[FIELD_BLUR], smoothstep(1, 0.6f, distance));
    }
    return node;
}

enum phantom_kind phantom_kind_at(const struct phantom_scene *scene, float x, float y,
                                  float border_px)
{
    if (tissue_depth(scene, x, y) < -60)
        return KIND_NONE;
    struct node node = evaluate(scene, x, y);
    const float *v = node.values;
    if (v[FIELD_TUMOR] > 0)
        return KIND_TUMOR;
    if (v[FIELD_TISSUE] < 8 || v[FIELD_TUMOR] > -border_px)
        return KIND_NONE;
    if (v[FIELD_FAT] > 0.2f)
        return KIND_FAT;
    return v[FIELD_STROMA] > 0.5f ? KIND_STROMA : KIND_LYMPHOID;
}

static int64_t floor_to_step(int64_t px)
{
    int64_t node = px >= 0 ? px / LATTICE_STEP : -ceil_div(-px, LATTICE_STEP);
    return node * LATTICE_STEP;
}

void phantom_lattice_fill(const struct phantom_scene *scene, int64_t x, int64_t y, int64_t width,
                          int64_t height, struct phantom_lattice *out)
{
    out->x0 = floor_to_step(x - LATTICE_MARGIN);
    out->y0 = floor_to_step(y - LATTICE_MARGIN);
    out->across = (int)((x + width + LATTICE_MARGIN - out->x0) / LATTICE_STEP) + 2;
    out->down = (int)((y + height + LATTICE_MARGIN - out->y0) / LATTICE_STEP) + 2;
    out->across = out->across > LATTICE_NODES_MAX ? LATTICE_NODES_MAX : out->across;
    out->down = out->down > LATTICE_NODES_MAX ? LATTICE_NODES_MAX : out->down;
    for (int j = 0; j < out->down; j++)
        for (int i = 0; i < out->across; i++) {
            struct node node = evaluate(scene, (float)(out->x0 + i * LATTICE_STEP),
                                        (float)(out->y0 + j * LATTICE_STEP));
            for (int f = 0; f < N_FIELDS; f++)
                out->nodes[f][j * out->across + i] = node.values[f];
        }
}

float phantom_lattice_at(const struct phantom_lattice *lattice, enum phantom_field field, float x,
                         float y)
{
    float u = (x - (float)lattice->x0) / LATTICE_STEP, v = (y - (float)lattice->y0) / LATTICE_STEP;
    int i = (int)u, j = (int)v;
    i = i < 0 ? 0 : i > lattice->across - 2 ? lattice->across - 2 : i;
    j = j < 0 ? 0 : j > lattice->down - 2 ? lattice->down - 2 : j;
    u -= (float)i, v -= (float)j;
    const float *upper = lattice->nodes[field] + j * lattice->across + i;
    const float *lower = upper + lattice->across;
    float a = upper[0] + u * (upper[1] - upper[0]), b = lower[0] + u * (lower[1] - lower[0]);
    return a + v * (b - a);
}

void phantom_lattice_row(const struct phantom_lattice *lattice, enum phantom_field field, int64_t x,
                         int64_t y, int n, float *out)
{
    int j = (int)((y - lattice->y0) / LATTICE_STEP);
    float v = (float)(y - lattice->y0 - j * LATTICE_STEP) / LATTICE_STEP;
    const float *upper = lattice->nodes[field] + j * lattice->across;
    const float *lower = upper + lattice->across;
    int at = 0;
    while (at < n) {
        int64_t from_first = x + at - lattice->x0;
        int i = (int)(from_first / LATTICE_STEP), inside = (int)(from_first % LATTICE_STEP);
        float a = upper[i] + v * (lower[i] - upper[i]);
        float b = upper[i + 1] + v * (lower[i + 1] - upper[i + 1]);
        float slope = (b - a) / LATTICE_STEP;
        for (; inside < LATTICE_STEP && at < n; inside++, at++)
            out[at] = a + slope * (float)inside;
    }
}
