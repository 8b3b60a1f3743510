/* classes.h: the classes of a drawing, and the meaning of the name of a group, layer or class:
 * taken from the user's class map, otherwise from the table in classes.c.
 *
 * A class is a name; its label is its place in the map's list of classes. Without a map, and with
 * one whose only words are tumor, normal, exclusion and ignore, there are two: normal (0) and tumor
 * (1), only tumor is drawn, and an exclusion is a hole in it, that is, normal. In any other map an
 * excluded area has no label. */
#ifndef ANNOTATION_CLASSES_H
#define ANNOTATION_CLASSES_H
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

/* The meaning of a region is the place of its class, or one of these. */
enum region_meaning {
    REGION_EXCLUSION = -1,
    REGION_IGNORED = -2, /* as if it had not been drawn; only from a class map */
    REGION_UNKNOWN = -3, /* neither in the map nor in the table */
};

/* Is a region of this meaning part of the drawing? Others need not be read further. */
static inline bool region_counts(int meaning)
{
    return meaning >= REGION_EXCLUSION;
}

#define CLASS_NAME 128      /* bytes kept of a name, with its end */
#define CLASS_MOST 120      /* classes of a map */
#define CLASS_MOST_NAMES 32 /* unknown names listed; others are only counted */

/* A class map, in one of three forms:
 * - "Invasive carcinoma=tumor,DCIS=tumor,Stroma=stroma,Fold=exclusion,Ink=ignore": drawn names,
 * each with its class, exclusion or ignore. A backslash escapes a comma, an equals sign or a
 * backslash. The empty name stands for regions without a class. Labels are in the order in which
 * the classes are first named, normal before and tumor after all others.
 * - the name of a YAML file (.yaml, .yml), with the keys classes, names, precedence and unlabelled,
 *   all of them optional (docs/annotations.md);
 * - the same YAML itself, if the text begins with "{".
 * Immutable once created, so threads may share it. */
struct class_map;

/* text NULL gives NULL, which is an empty map. The caller owns *out; free with class_map_free. */
bool class_map_parse(const char *text, struct class_map **out, struct err *err);
/* YAML from memory; source is used in messages, with line numbers. */
bool class_map_parse_yaml(const char *text, size_t size, const char *source, struct class_map **out,
                          struct err *err);
void class_map_free(struct class_map *map);

/* The map in canonical form, independent of the order and blanks it was typed with; "" for NULL.
 * class_map_parse reads it again. Valid as long as the map. */
const char *class_map_text(const struct class_map *map);

/* All of these take NULL for the map: normal and tumor. */
int class_map_n(const struct class_map *map);
const char *class_map_class(const struct class_map *map, int place);
/* The place of a class; -1 if the map has none of that name. Case does not matter. */
int class_map_place(const struct class_map *map, const char *name);
/* The class that wins over all but `rank` others where regions overlap. */
int class_map_precedence(const struct class_map *map, int rank);
/* The class of tissue that nobody drew on; -1: it has none. */
int class_map_unlabelled(const struct class_map *map);
/* The class that two-class questions are about: tumor; if there is none, the last one. */
int class_map_positive(const struct class_map *map);
/* Only normal and tumor, where normal is what is not drawn as tumor. */
bool class_map_is_plain(const struct class_map *map);
/* ["normal", "tumor"]: JSON, one line; the caller's; NULL if out of memory. */
char *class_map_json(const struct class_map *map);

/* Case and surrounding blanks do not matter. The map is searched first, for the whole name and then
 * for the first part of a derived QuPath class ("Tumor: Positive"); then its classes in the same
 * way; then the table, for the first part. In a plain map NULL, "" and ASAP's "None" mean no class:
 * tumour. */
int class_meaning(const struct class_map *map, const char *name);

/* Does the name mean "no class"? Does the map define regions without a class? */
bool class_is_none(const char *name);
bool class_map_has_none(const struct class_map *map);

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
bool unknown_classes_refuse(const struct unknown_classes *unknown, const struct class_map *map,
                            const char *where, struct err *err);
#endif
