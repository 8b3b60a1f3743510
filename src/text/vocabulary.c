/* vocabulary.c: see vocabulary.h. */
#include "text/vocabulary.h"

#include <stdlib.h>
#include <string.h>
#include "base/array.h"

static uint64_t hash_of(const char *token, size_t size)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)token[i]) * 0x100000001b3u;
    return hash ^ hash >> 29;
}

/* The slot of a token, or the free one where it belongs. */
static int64_t slot_of(const struct vocabulary *v, const char *token, size_t size)
{
    int64_t at = (int64_t)(hash_of(token, size) % (uint64_t)v->n_slots);
    while (v->slots[at] >= 0) {
        const char *there = v->tokens[v->slots[at]];
        if (strlen(there) == size && memcmp(there, token, size) == 0)
            break;
        at = at + 1 == v->n_slots ? 0 : at + 1;
    }
    return at;
}

static bool grow_slots(struct vocabulary *v, struct err *err)
{
    int64_t n = v->n_slots ? 2 * v->n_slots : 1024;
    int32_t *slots = malloc((size_t)n * sizeof *slots);
    if (!slots)
        return err_memory(err, "a vocabulary");
    for (int64_t i = 0; i < n; i++)
        slots[i] = -1;
    free(v->slots);
    v->slots = slots;
    v->n_slots = n;
    for (int32_t id = 0; id < v->n; id++) {
        if (!v->tokens[id])
            continue;
        int64_t at = slot_of(v, v->tokens[id], strlen(v->tokens[id]));
        if (slots[at] < 0)
            slots[at] = id;
    }
    return true;
}

bool vocabulary_add(struct vocabulary *v, const char *token, int32_t id, struct err *err)
{
    size_t size = strlen(token);
    if (id < 0 || id >= VOCABULARY_MOST)
        return err_set(err, ERR_FORMAT, "the id %d of a token is not between 0 and %d", id,
                       VOCABULARY_MOST - 1);
    if (id < v->n && v->tokens[id])
        return err_set(err, ERR_FORMAT, "'%.60s' and '%.60s' have the same id, %d", v->tokens[id],
                       token, id);
    int64_t before = v->n;
    if (!array_grow(&v->tokens, &v->room, (int64_t)id + 1, sizeof *v->tokens, "a vocabulary", err))
        return false;
    for (int64_t i = before; i <= id; i++)
        v->tokens[i] = NULL;
    v->n = id >= v->n ? id + 1 : v->n;
    while (2 * (v->n + 1) > v->n_slots)
        if (!grow_slots(v, err))
            return false;
    int64_t at = slot_of(v, token, size);
    if (v->slots[at] >= 0)
        return true;
    if (!(v->tokens[id] = strdup(token)))
        return err_memory(err, "a vocabulary");
    v->slots[at] = id;
    v->longest = size > v->longest ? size : v->longest;
    return true;
}

int32_t vocabulary_find(const struct vocabulary *v, const char *token, size_t size)
{
    return v->n_slots && size <= v->longest ? v->slots[slot_of(v, token, size)] : -1;
}

void vocabulary_free(struct vocabulary *v)
{
    for (int64_t i = 0; i < v->n; i++)
        free(v->tokens[i]);
    free(v->tokens);
    free(v->slots);
    *v = (struct vocabulary){ 0 };
}
