/* phantom_annotation.h: the lesions of a scene -> an ASAP XML file with CAMELYON16's groups: _0 and
 * _1 tumour, _2 exclusion. Polygons are the outlines as drawn. */
#ifndef PHANTOM_PHANTOM_ANNOTATION_H
#define PHANTOM_PHANTOM_ANNOTATION_H
#include "base/err.h"
#include "phantom/phantom_scene.h"

/* Written to a temporary file and renamed. */
bool phantom_annotation_write(const char *path, const struct phantom_scene *scene, struct err *err);
#endif
