/* json_file.h: a JSON file as jansson's tree. (json.h writes.) */
#ifndef BASE_JSON_FILE_H
#define BASE_JSON_FILE_H
#include <jansson.h>
#include <stddef.h>
#include "base/err.h"

/* The object in a file of at most `limit` bytes; owned by the caller, json_decref. NULL with an
 * error (err may be NULL) if the file cannot be read, is not JSON, is not an object, or has a
 * duplicate key. */
json_t *json_file_read(const char *path, size_t limit, struct err *err);
#endif
