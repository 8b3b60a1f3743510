/* classes.h: the meaning of the name of a group, layer or class: taken from the user's class map,
 * otherwise from the table in classes.c. */
#ifndef ANNOTATION_CLASSES_H
#define ANNOTATION_CLASSES_H
#include <stdint.h>
#include "base/err.h"

enum region_class {
    REGION_TUMOUR,
    REGION_EXCLUSION, /* a hole in every tumour region */
    REGION_IGNORED,   /* as if it had not been drawn; only from a class map */
    REGION_UNKNOWN,   /* neither in the map nor in the table */
};

/* A class map, "Invasive carcinoma=tumor,DCIS=tumor,Stroma=ignore": names with their meaning, tumor
 * (tumour), exclusion (normal) or ignore. A backslash escapes a comma, an equals sign or a
 * backslash. The empty name stands for regions without a class. Immutable once created, so threads
 * may share it. */
struct class_map;

/* text NULL gives NULL, which is an empty map. The caller owns *out; free with class_map_free. */
bool class_map_parse(const char *text, struct class_map **out, struct err *err);
void class_map_free(struct class_map *map);

/* The map in canonical form, independent of the order and blanks it was typed with; "" for NULL.
 * Valid as long as the map. */
const char *class_map_text(const struct class_map *map);

/* Case and surrounding blanks do not matter. The map is searched first, for the whole name and then
 * for the first part of a derived QuPath class ("Tumor: Positive"); then the table, for the first
 * part. NULL, "" and ASAP's "None" mean no class: tumour. */
enum region_class class_meaning(const struct class_map *map, const char *name);

/* Does the name mean "no class"? Does the map define regions without a class? */
bool class_is_none(const char *name);
bool class_map_has_none(const struct class_map *map);

#define CLASS_NAME 128      /* bytes kept of a name, with its end */
#define CLASS_MOST_NAMES 32 /* names listed; others are only counted */

/* Classes found that have no known meaning. */
struct unknown_classes {
    struct {
        char name[CLASS_NAME];
        int64_t regions;
    } items[CLASS_MOST_NAMES];
    size_t n;
    int64_t more; /* regions of further classes */
};

void unknown_classes_add(struct unknown_classes *unknown, const char *name, int64_t regions);
void unknown_classes_join(struct unknown_classes *all, const struct unknown_classes *one);
/* Sets the error: where, the classes, and the option that defines them. Returns false. */
bool unknown_classes_refuse(const struct unknown_classes *unknown, const char *where,
                            struct err *err);
#endif
