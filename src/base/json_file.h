/* json_file.h: a JSON file as jansson's tree. (json.h writes.) */
#ifndef BASE_JSON_FILE_H
#define BASE_JSON_FILE_H
#include <jansson.h>
#include <stddef.h>
#include "base/err.h"

/* The object that a file of at most `limit` bytes holds; the caller's, json_decref. NULL with an
 * error (err may be NULL) if the file cannot be read, is not JSON, or holds no object, or a key
 * twice. */
json_t *json_file_read(const char *path, size_t limit, struct err *err);
#endif
