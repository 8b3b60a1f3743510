/* json_text.c: see json_text.h. */
#include "annotation/json_text.h"

#include <stdlib.h>
#include <string.h>

#define MAX_JSON_BYTES ((size_t)64 << 20) /* JSON needs about ten times its size in memory */

/* The length of a word at `at` that is a number in JavaScript but not in JSON; 0 if none. */
static size_t not_a_number(const char *at, const char *end)
{
    static const char *const words[] = { "NaN", "Infinity", "-Infinity" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i]);
        if ((size_t)(end - at) >= length && !memcmp(at, words[i], length))
            return length;
    }
    return 0;
}

/* A copy in which such words, outside strings, are "null"; each is replaced in its place, so lines
 * stay the same. NULL if there is none or no memory. The caller's, *size bytes. */
static char *with_null(const char *text, size_t *size)
{
    const char *end = text + *size;
    char *copy = NULL, *to = NULL;
    bool string = false;
    for (const char *at = text; at < end; at++) {
        size_t length = string ? 0 : not_a_number(at, end);
        if (length > 0 && !copy) {
            copy = malloc(*size + *size / 3 + 1); /* "NaN" grows by a byte */
            if (!copy)
                return NULL;
            to = copy + (at - text);
            memcpy(copy, text, (size_t)(at - text));
        }
        if (length > 0) {
            memcpy(to, "null", 4);
            to += 4;
            at += length - 1;
            continue;
        }
        if (*at == '"')
            string = !string;
        if (to)
            *to++ = *at;
        if (string && *at == '\\' && at + 1 < end) {
            at++;
            if (to)
                *to++ = *at;
        }
    }
    if (copy)
        *size = (size_t)(to - copy);
    return copy;
}

bool json_text_parse(const char *text, size_t size, const char *path, json_t **out, struct err *err)
{
    json_error_t why;
    if (size > MAX_JSON_BYTES)
        return err_set(err, ERR_FORMAT, "%s: larger than the limit of %zu MB for such a file", path,
                       MAX_JSON_BYTES >> 20);
    *out = json_loadb(text, size, 0, &why);
    if (!*out) {
        size_t changed = size;
        char *copy = with_null(text, &changed);
        if (copy)
            *out = json_loadb(copy, changed, 0, &why);
        free(copy);
    }
    return *out || err_set(err, ERR_FORMAT, "%s:%d: not JSON: %s", path, why.line, why.text);
}

const char *json_text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}
