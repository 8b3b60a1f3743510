/* class_map.h: the inside of a class map, for classes.c. */
#ifndef ANNOTATION_CLASS_MAP_H
#define ANNOTATION_CLASS_MAP_H
#include <stddef.h>
#include "annotation/classes.h"

/* The meaning of exactly this name, whatever its capitals; REGION_UNKNOWN if the map does not have
 * it. map may be NULL. */
enum region_class class_map_find(const struct class_map *map, const char *name, size_t length);

/* The name as a map spells it. out has room for twice the name. */
void class_map_escape(const char *name, char *out);
#endif
