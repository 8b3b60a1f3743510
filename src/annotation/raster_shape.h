/* raster_shape.h: pixels of an image with its own size -> regions of a drawing, along the edges of
 * the pixels, in level-0 pixels of the slide. */
#ifndef ANNOTATION_RASTER_SHAPE_H
#define ANNOTATION_RASTER_SHAPE_H
#include "annotation/annotation.h"
#include "annotation/drawing.h"
#include "base/outline.h"

/* Corners that a drawing may have in all, and that one tracer may keep at a time: 300 MB. */
#define RASTER_MOST_POINTS 4000000

/* Level-0 pixels per pixel of an image of the slide: the whole number that both sides agree with to
 * a pixel, else the ratio of the widths if the heights then agree to a pixel. Otherwise an error
 * with both sizes. 1 if the slide's size is unknown. */
bool raster_scale(const char *path, int64_t width, int64_t height,
                  const struct annotation_slide *slide, double *out, struct err *err);

/* Takes the pieces of an outline_tracer: (x, y) of the tracer is column x0 + x and row y0 + y, or
 * the other way round if columns were passed as rows. */
struct raster_shape {
    struct drawing *drawing;
    int meaning;
    struct file_place place;
    double scale;
    int64_t x0, y0;
    bool transposed;
};

/* An outline_take; arg is a struct raster_shape. */
bool raster_shape_take(void *arg, const struct outline_piece *piece, struct err *err);
#endif
