/* vocabulary.h: tokens and their ids, 0, 1, ..: a table in both directions. */
#ifndef TEXT_VOCABULARY_H
#define TEXT_VOCABULARY_H
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

#define VOCABULARY_MOST (1 << 22)

struct vocabulary {
    char **tokens; /* [n]; NULL: no token has this id */
    int64_t n, room;
    int32_t *slots; /* [n_slots]: ids, -1 is free; open addressing */
    int64_t n_slots;
    size_t longest; /* bytes of a token */
};

/* Gives a token an id that no other has; a token that is known keeps its first id, and the new one
 * is left without a token. */
bool vocabulary_add(struct vocabulary *vocabulary, const char *token, int32_t id, struct err *err);
/* -1: none. */
int32_t vocabulary_find(const struct vocabulary *vocabulary, const char *token, size_t size);
void vocabulary_free(struct vocabulary *vocabulary); /* also fine on a zeroed struct */
#endif
