/* layers.h: the shapes of a drawing's classes, one above the other: where they overlap, the upper
 * one counts. A point is in at most one class, exactly: precedence is decided at the point, and
 * shapes are not cut where they overlap. */
#ifndef ANNOTATION_LAYERS_H
#define ANNOTATION_LAYERS_H
#include "annotation/drawing.h"
#include "annotation/geometry.h"
#include "annotation/scan.h"

#define LAYER_NONE 255     /* in no shape */
#define LAYER_EXCLUDED 254 /* in an excluded area */

struct layer {
    uint8_t label; /* the class's place, or LAYER_EXCLUDED */
    struct merged_region shape;
    struct scan scan;
};

struct layers {
    struct layer *items; /* [n], the uppermost first */
    int n;
    int64_t repaired;
};

/* The shapes that the map asks for: in a plain map tumour minus exclusions; otherwise the excluded
 * area, and below it one shape for each class that was drawn. Free with layers_free. */
bool layers_new(struct layers *layers, const struct drawing *drawing, struct err *err);
void layers_free(struct layers *layers);

/* All three agree with each other and are thread-safe. */
uint8_t layers_at(const struct layers *layers, double x_l0, double y_l0);
/* Pixel centres of each class to counts [n_classes], which are 0. Returns those that are excluded.
 */
int64_t layers_count(const struct layers *layers, const struct window *window, int n_classes,
                     int64_t *counts);
void layers_fill(const struct layers *layers, const struct window *window,
                 uint8_t *labels /* [height, width] */);
#endif
