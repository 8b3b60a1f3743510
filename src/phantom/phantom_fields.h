/* phantom_fields.h: a scene -> fields of view with the truth of their nuclei, to train and to judge
 * segmentation: <slide>_<x>_<y>.png and its label image <slide>_<x>_<y>_labels.png, where x, y is
 * the corner in level-0 px. Fields lie in tissue; on slides with metastases every other one is
 * centred in one. */
#ifndef PHANTOM_PHANTOM_FIELDS_H
#define PHANTOM_PHANTOM_FIELDS_H
#include "phantom/phantom_draw.h"

#define PHANTOM_FIELD_MPP 0.5
enum { PHANTOM_FIELD_PX = 256 }; /* of a field at that resolution */

/* Writes up to n fields of the slide that the painter draws, fewer if there is too little tissue;
 * those that exist are kept. Uses the painter's first worker. */
bool phantom_fields_write(const char *folder, struct phantom_painter *painter,
                          const struct phantom_scene *scene, int64_t n, struct err *err);
#endif
