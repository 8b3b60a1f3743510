/* orient.h: on which side of a line a point is, without rounding. */
#ifndef ANNOTATION_ORIENT_H
#define ANNOTATION_ORIENT_H

/* The sign (-1, 0, 1) of (bx - ax) * (py - ay) - (by - ay) * (px - ax), exact as long as no
 * product of two differences leaves the range of a double. For ay < by: negative if p is to the
 * right of the line a-b (greater x), 0 if on it. */
int orient(double ax, double ay, double bx, double by, double px, double py);
#endif
