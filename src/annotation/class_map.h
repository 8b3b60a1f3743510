/* class_map.h: the internals of a class map, for classes.c. */
#ifndef ANNOTATION_CLASS_MAP_H
#define ANNOTATION_CLASS_MAP_H
#include <stddef.h>
#include "annotation/classes.h"

/* The meaning of exactly this name, ignoring case; REGION_UNKNOWN if it is not in the map. map may
 * be NULL. */
enum region_class class_map_find(const struct class_map *map, const char *name, size_t length);

/* The name as it is written in a map, with escapes. out has room for twice the name. */
void class_map_escape(const char *name, char *out);
#endif
