/* drawings.h: texts of annotations and class maps -> the parsed ones, or a failed test. */
#ifndef TESTS_DRAWINGS_H
#define TESTS_DRAWINGS_H
#include "annotation/annotation.h"

/* GeoJSON: a closed ring, a feature of a class, its properties. */
#define SQUARE "[[0,0],[10,0],[10,10],[0,10],[0,0]]"
#define FEATURE(class, ring)                                                                       \
    "{\"type\":\"Feature\",\"geometry\":{\"type\":\"Polygon\",\"coordinates\":[" ring "]},"        \
    "\"properties\":{" class "}}"
#define NAMED(name) "\"classification\":{\"name\":\"" name "\",\"color\":[200,0,0]}"

/* The caller's. map_text NULL: no class map. */
struct annotation *must_parse(const char *text, const char *map_text);
struct class_map *must_map(const char *text);

/* Refused, with this in the message. */
void must_refuse_bytes(const char *text, size_t size, const char *message);
void must_refuse(const char *text, const char *message);
#endif
