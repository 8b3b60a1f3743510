/* phantom_pen.c: see phantom_pen.h. */
#include "phantom/phantom_pen.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum {
    STROKES_APART_PX = 180,
    LESION_POINTS = MAX_PEN_POINTS / MAX_LESIONS /* at most, of one lesion */
};

const char *const phantom_pen_names[] = { "some", "none", "tumor", NULL };

static float between(float x, float low, float high)
{
    return x < low ? low : x > high ? high : x;
}

/* A zigzag along the long axis of the lesion, from edge to edge. */
static void cross_lesion(const struct phantom_curve *c, struct phantom_pen *pen)
{
    int n = (int)between(2 * c->half_long / STROKES_APART_PX + 2, 3, LESION_POINTS);
    for (int i = 0; i < n; i++) {
        float along = 2 * (float)i / (float)(n - 1) - 1;
        float across = (i % 2 ? -1 : 1) * sqrtf(1 - 0.81f * along * along);
        float u = 0.9f * along * c->half_long, v = across * c->half_short;
        pen->x[pen->n_points] = c->x + u * c->cosine - v * c->sine;
        pen->y[pen->n_points] = c->y + u * c->sine + v * c->cosine;
        pen->lifted[pen->n_points++] = i == n - 1;
    }
}

void phantom_pen_apply(struct phantom_scene *scene, enum phantom_pen_rule rule)
{
    static const float blue[3] = { 0.22f, 0.34f, 0.78f };
    struct phantom_pen *pen = &scene->pen;
    if (rule == PEN_SOME)
        return;
    *pen = (struct phantom_pen){ .half_width = between(0.006f * (float)scene->size_px, 16, 140) };
    memcpy(pen->transmission, blue, sizeof pen->transmission);
    for (int i = 0; rule == PEN_TUMOR && i < scene->n_lesions; i++)
        cross_lesion(&scene->lesions[i].outline, pen);
}
