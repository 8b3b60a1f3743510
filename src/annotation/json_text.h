/* json_text.h: the JSON of an annotation file, also as QuPath writes it. */
#ifndef ANNOTATION_JSON_TEXT_H
#define ANNOTATION_JSON_TEXT_H
#include <jansson.h>
#include <stddef.h>
#include "base/err.h"

/* QuPath writes measurements that have no value as NaN, Infinity or -Infinity, which JSON does not
 * have; they are read as null. Errors name the path and the line. *out is the caller's. */
bool json_text_parse(const char *text, size_t size, const char *path, json_t **out,
                     struct err *err);

/* The text of a key; "" if the object has no such text. */
const char *json_text_of(const json_t *object, const char *key);
#endif
