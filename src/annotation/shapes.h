/* shapes.h: rectangles and ellipses that are given by their corners -> polygons. */
#ifndef ANNOTATION_SHAPES_H
#define ANNOTATION_SHAPES_H
#include "annotation/drawing.h"

/* Replaces the points of the drawing's last ring by the rectangle around them, or by the ellipse
 * that fills it. A ring without points stays as it is. */
bool shape_rectangle(struct drawing *drawing, struct err *err);
bool shape_ellipse(struct drawing *drawing, struct err *err);
#endif
