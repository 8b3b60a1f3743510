/* phantom_layout.h: how the tissue of a slide is laid out at large. */
#ifndef PHANTOM_PHANTOM_LAYOUT_H
#define PHANTOM_PHANTOM_LAYOUT_H
#include "phantom/phantom_scene.h"

extern const char *const phantom_layout_names[]; /* of enum phantom_layout; NULL-terminated */

/* LAYOUT_NODE: as the scene was made. LAYOUT_CORDS: a sheet of collagen with short cords of
 * lymphocytes, no two of which touch, and no metastases. On slides with scene->tumor all cords run
 * one way, along or across the section, which differs from slide to slide; on the others each cord
 * runs one way or the other. Everything else is the same. So one cord says nothing, and a field of
 * view that shows several of them says all: they are PHANTOM_CORDS_APART_PX apart, or less on a
 * small slide. */
enum { PHANTOM_CORDS_APART_PX = 1040 };
void phantom_layout_apply(struct phantom_scene *scene, enum phantom_layout layout);

/* The slide's class in the slide list. */
const char *phantom_layout_label(const struct phantom_scene *scene);

/* 1 in a cord, 0 outside, smooth between; LAYOUT_CORDS only. */
float phantom_layout_cord(const struct phantom_scene *scene, float x, float y);
#endif
