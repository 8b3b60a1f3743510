/* raster_shape.c: see raster_shape.h. */
#include "annotation/raster_shape.h"

#include <math.h>

/* Would a slide of `slide_px` shrunk by `scale` have `px` pixels, give or take one? */
static bool agree(int64_t slide_px, double scale, int64_t px)
{
    return fabs((double)slide_px / scale - (double)px) <= 1;
}

bool raster_scale(const char *path, int64_t width, int64_t height,
                  const struct annotation_slide *slide, double *out, struct err *err)
{
    *out = 1;
    if (slide->width_l0 <= 0 || slide->height_l0 <= 0)
        return true;
    double ratio = (double)slide->width_l0 / (double)width, whole = round(ratio);
    if (whole >= 1 && agree(slide->width_l0, whole, width) &&
        agree(slide->height_l0, whole, height))
        *out = whole;
    else if (agree(slide->height_l0, ratio, height))
        *out = ratio;
    else
        return err_set(err, ERR_FORMAT,
                       "%s: is %lld x %lld px, but the slide is %lld x %lld px, of other "
                       "proportions; does it belong to this slide?",
                       path, (long long)width, (long long)height, (long long)slide->width_l0,
                       (long long)slide->height_l0);
    return true;
}

bool raster_shape_take(void *arg, const struct outline_piece *piece, struct err *err)
{
    const struct raster_shape *shape = arg;
    struct drawing *drawing = shape->drawing;
    if ((int64_t)drawing->n_points + piece->n_points > RASTER_MOST_POINTS)
        return drawing_refuse(drawing->path, shape->place, err,
                              "the outlines of all pixels have more than %d corners; smooth the "
                              "image or make it smaller",
                              RASTER_MOST_POINTS);
    if (!drawing_region(drawing, shape->meaning, shape->place, err))
        return false;
    for (int64_t r = 0; r < piece->n_rings; r++) {
        const struct outline_ring *ring = &piece->rings[r];
        if (!drawing_ring(drawing, err))
            return false;
        for (int64_t i = ring->first; i < ring->first + ring->n; i++) {
            int32_t x = piece->points[i].x, y = piece->points[i].y;
            double column = (double)(shape->x0 + (shape->transposed ? y : x));
            double row = (double)(shape->y0 + (shape->transposed ? x : y));
            if (!drawing_point(drawing, column * shape->scale, row * shape->scale, err))
                return false;
        }
    }
    return true;
}
