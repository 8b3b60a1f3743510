/* tangle.h: guards geometry against drawings whose lines cross each other again and again. */
#ifndef ANNOTATION_TANGLE_H
#define ANNOTATION_TANGLE_H
#include "annotation/drawing.h"

/* Rejects a drawing with so many crossings (within a region or between regions) that merging it
 * would take minutes and gigabytes: n lines can cross n * n / 2 times. The limit grows with the
 * number of lines and is far above what people or outlining programs draw. */
bool tangle_check(const struct drawing *drawing, struct err *err);
#endif
