/* classes.h: what the name of a group, layer or class means: as the user's class map says, and
 * otherwise as the table in classes.c does. */
#ifndef ANNOTATION_CLASSES_H
#define ANNOTATION_CLASSES_H
#include <stdint.h>
#include "base/err.h"

enum region_class {
    REGION_TUMOUR,
    REGION_EXCLUSION, /* a hole in every tumour region */
    REGION_IGNORED,   /* as if it had not been drawn; only a class map says so */
    REGION_UNKNOWN,   /* neither the map nor the table knows the name */
};

/* A class map, "Invasive carcinoma=tumor,DCIS=tumor,Stroma=ignore": names with their meaning, tumor
 * (tumour), exclusion (normal) or ignore. A backslash takes the meaning from a comma, an equals
 * sign and a backslash. The empty name is that of regions without a class. Not changed once it is
 * made, so that threads may share it. */
struct class_map;

/* text NULL gives NULL, which is an empty map. *out is the caller's; free with class_map_free. */
bool class_map_parse(const char *text, struct class_map **out, struct err *err);
void class_map_free(struct class_map *map);

/* The map in one spelling, whatever order and blanks it was typed with; "" for NULL. Lives as long
 * as the map. */
const char *class_map_text(const struct class_map *map);

/* Capitals and outer blanks do not matter. The map is asked first, for the whole name and then for
 * the first part of a derived class of QuPath ("Tumor: Positive"); the table then for its first
 * part. NULL, "" and ASAP's "None" are no class: tumour. */
enum region_class class_meaning(const struct class_map *map, const char *name);

/* Is it the name of no class? And does the map say what regions without a class are? */
bool class_is_none(const char *name);
bool class_map_has_none(const struct class_map *map);

#define CLASS_NAME 128      /* bytes kept of a name, with its end */
#define CLASS_MOST_NAMES 32 /* that are listed; others are counted */

/* Classes that were met and have no meaning. */
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
/* The refusal: where, the classes, and the option that gives them a meaning. Returns false. */
bool unknown_classes_refuse(const struct unknown_classes *unknown, const char *where,
                            struct err *err);
#endif
