/* drawings.c: see drawings.h. */
#include "tests/unit/support/drawings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

struct class_map *must_map(const char *text)
{
    struct class_map *map = NULL;
    struct err err = { 0 };
    if (!class_map_parse(text, &map, &err))
        fail_msg("%s", err.text);
    return map;
}

struct annotation *must_parse(const char *text, const char *map_text)
{
    struct class_map *map = must_map(map_text);
    struct annotation *annotation = NULL;
    struct err err = { 0 };
    if (!annotation_parse(text, strlen(text), "drawing", NULL, map, &annotation, &err))
        fail_msg("%s", err.text);
    class_map_free(map); /* the annotation does not need it */
    return annotation;
}

void must_refuse_bytes(const char *text, size_t size, const char *message)
{
    struct annotation *annotation = NULL;
    struct err err = { 0 };
    if (annotation_parse(text, size, "drawing", NULL, NULL, &annotation, &err)) {
        annotation_free(annotation);
        fail_msg("accepted; expected: %s", message);
    }
    if (!strstr(err.text, message))
        fail_msg("expected \"%s\" in \"%s\"", message, err.text);
}

void must_refuse(const char *text, const char *message)
{
    must_refuse_bytes(text, strlen(text), message);
}
