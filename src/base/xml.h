/* xml.h: walks through an XML text element by element. Nothing is fetched, no tree is built, and a
 * document type (the only place where entities can be declared) is rejected. */
#ifndef BASE_XML_H
#define BASE_XML_H
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

struct xml_element {
    const char *path; /* of the file, for messages */
    const char *name; /* without its namespace */
    int64_t line;
    const unsigned char **attributes; /* as libxml2 gives them: 5 pointers each */
    int n_attributes;
};

/* start and end return false to stop the walk, with *err set. text receives what is between the
 * tags, possibly in several pieces. end and text may be NULL. */
struct xml_walker {
    bool (*start)(void *user, const struct xml_element *element, struct err *err);
    bool (*end)(void *user, const char *name, struct err *err);
    void (*text)(void *user, const char *text, size_t size);
};

/* Errors name the path and the line. */
bool xml_walk(const char *text, size_t size, const char *path, const struct xml_walker *walker,
              void *user, struct err *err);

/* Name of the root element, truncated to `room`. */
bool xml_root(const char *text, size_t size, const char *path, char *out, size_t room,
              struct err *err);

/* The attribute's text, truncated to `room`; "" if absent. True if present. */
bool xml_text(const struct xml_element *element, const char *attribute, char *out, size_t room);

/* The attribute as a finite number. If absent, *out is left unchanged, or, if `required`, it is an
 * error. */
bool xml_number(const struct xml_element *element, const char *attribute, bool required,
                double *out, struct err *err);
#endif
