/* tangle.h: a guard before geometry: a drawing whose lines cross each other again and again. */
#ifndef ANNOTATION_TANGLE_H
#define ANNOTATION_TANGLE_H
#include "annotation/drawing.h"

/* Refuses a drawing with so many crossings (of lines of one region or of several) that merging it
 * would take minutes and gigabytes: n lines can cross n * n / 2 times. The limit grows with the
 * number of lines and is far above what a hand or a program that outlines draws. */
bool tangle_check(const struct drawing *drawing, struct err *err);
#endif
