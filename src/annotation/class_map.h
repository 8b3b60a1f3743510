/* class_map.h: the internals of a class map: what it consists of, and the draft it is made from. */
#ifndef ANNOTATION_CLASS_MAP_H
#define ANNOTATION_CLASS_MAP_H
#include <stddef.h>
#include "annotation/classes.h"

struct map_entry {
    char *name;  /* as drawn; "": regions without a class */
    int meaning; /* a place, REGION_EXCLUSION or REGION_IGNORED */
};

struct class_map {
    struct map_entry *entries; /* [n], by name */
    size_t n;
    char *classes[CLASS_MOST];
    int n_classes;
    int precedence[CLASS_MOST]; /* the first wins */
    int unlabelled;
    bool plain;
    bool listed; /* its classes are, in order: there are no others */
    char *text;
};

/* The meaning of exactly this name, ignoring case; REGION_UNKNOWN if it is not in the map. map may
 * be NULL. */
int class_map_find(const struct class_map *map, const char *name, size_t length);

/* The name as it is written in a map, with escapes. out has room for twice the name. */
void class_map_escape(const char *name, char *out);

/* Words as they were written, before they are checked. */
struct map_word {
    char *name; /* a drawn name; NULL in lists of classes */
    char *word; /* a class, or what else may be written in its place */
    size_t line;
};

struct map_words {
    struct map_word *items;
    size_t n;
    int64_t room;
};

struct map_draft {
    const char *source; /* "--class-map", or the name of a file */
    bool lines;         /* messages have line numbers */
    struct map_words names, classes, precedence, unlabelled;
};

bool map_words_add(struct map_words *words, const char *name, const char *word, size_t line,
                   struct err *err);
void map_draft_free(struct map_draft *draft);
/* "source: ", or "source:12: " + the rest, as ERR_USAGE. Returns false. */
bool map_draft_refuse(const struct map_draft *draft, size_t line, struct err *err,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Checks the draft and makes a map of it. The caller owns *out. */
bool class_map_build(const struct map_draft *draft, struct class_map **out, struct err *err);
#endif
