/* fuzz_class_map.c: any bytes as a class map, in YAML and in pairs: refused, or a map whose text
 * gives the same map again. */
#include <stdlib.h>
#include <string.h>
#include "annotation/classes.h"
#include "tests/fuzz/fuzz.h"

static void check(const struct class_map *map)
{
    struct class_map *again = NULL;
    if (!class_map_parse(class_map_text(map), &again, NULL))
        abort();
    if (strcmp(class_map_text(map), class_map_text(again)) != 0 ||
        class_map_n(map) != class_map_n(again) ||
        class_map_unlabelled(map) != class_map_unlabelled(again))
        abort();
    for (int i = 0; i < class_map_n(map); i++)
        if (strcmp(class_map_class(map, i), class_map_class(again, i)) != 0 ||
            class_map_precedence(map, i) != class_map_precedence(again, i) ||
            class_map_place(map, class_map_class(map, i)) != i)
            abort();
    class_map_free(again);
}

static void try_map(bool taken, struct class_map *map, const struct err *err)
{
    if (taken)
        fuzz_taken++, check(map);
    else if (map || err->kind == ERR_NONE)
        abort(); /* refused without a word */
    class_map_free(map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct class_map *map = NULL;
    struct err err = { .kind = ERR_NONE };
    bool taken = class_map_parse_yaml((const char *)data, size, "fuzz", &map, &err);
    try_map(taken, map, &err);
    char *text = strndup((const char *)data, size);
    if (!text || strstr(text, ".y")) { /* could be the name of a file */
        free(text);
        return 0;
    }
    err.kind = ERR_NONE, map = NULL;
    taken = class_map_parse(text, &map, &err);
    try_map(taken, map, &err);
    free(text);
    return 0;
}
