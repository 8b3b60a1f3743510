/* bpe.c: text -> pieces as GPT-2 cuts them -> bytes -> merged pair by pair, the lowest rank first
 * (tokenizer.h). */
#include <stdlib.h>
#include <string.h>
#include "base/utf8.h"
#include "text/tokenizer_parts.h"
#include "text/unicode.h"

uint32_t bpe_character(int byte)
{
    uint32_t hidden = 0;
    for (int i = 0; i <= byte; i++) {
        bool shown = (i >= '!' && i <= '~') || (i >= 0xA1 && i <= 0xAC) || i >= 0xAE;
        if (i == byte)
            return shown ? (uint32_t)i : 0x100 + hidden;
        hidden += !shown;
    }
    return 0;
}

const struct merge *bpe_find(const struct tokenizer *t, int32_t left, int32_t right)
{
    uint64_t key = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15u;
    int64_t at = (int64_t)((key ^ key >> 32) % (uint64_t)t->n_slots);
    while (t->merges[at].id >= 0 && (t->merges[at].left != left || t->merges[at].right != right))
        at = at + 1 == t->n_slots ? 0 : at + 1;
    return &t->merges[at];
}

/* --- merging --- */

/* A token of a word, in a list; id -1: it has become a part of the one before. */
struct symbol {
    int32_t id;
    int64_t before, after; /* -1: none */
};

/* What may be merged: valid if the two still are what they were. */
struct candidate {
    int32_t rank, left, right, id;
    int64_t at;
};

struct merging {
    const struct tokenizer *tokenizer;
    struct symbol *symbols;
    struct candidate *heap; /* the first is the lowest rank, then the lowest place */
    int64_t n_heap;
};

static bool comes_first(const struct candidate *a, const struct candidate *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void swap(struct candidate *a, struct candidate *b)
{
    struct candidate c = *a;
    *a = *b;
    *b = c;
}

static void push(struct merging *m, int64_t at)
{
    const struct symbol *left = &m->symbols[at];
    if (at < 0 || left->after < 0 || m->tokenizer->n_slots == 0)
        return;
    int32_t right = m->symbols[left->after].id;
    const struct merge *merge = bpe_find(m->tokenizer, left->id, right);
    if (merge->id < 0)
        return;
    int64_t i = m->n_heap++;
    m->heap[i] = (struct candidate){ merge->rank, left->id, right, merge->id, at };
    for (; i > 0 && comes_first(&m->heap[i], &m->heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&m->heap[i], &m->heap[(i - 1) / 2]);
}

static struct candidate pop(struct merging *m)
{
    struct candidate top = m->heap[0];
    m->heap[0] = m->heap[--m->n_heap];
    for (int64_t i = 0;;) {
        int64_t child = 2 * i + 1;
        if (child >= m->n_heap)
            return top;
        child += child + 1 < m->n_heap && comes_first(&m->heap[child + 1], &m->heap[child]);
        if (!comes_first(&m->heap[child], &m->heap[i]))
            return top;
        swap(&m->heap[i], &m->heap[child]);
        i = child;
    }
}

static void merge_all(struct merging *m, int64_t n)
{
    for (int64_t i = 0; i + 1 < n; i++)
        push(m, i);
    while (m->n_heap > 0) {
        struct candidate best = pop(m);
        struct symbol *left = &m->symbols[best.at];
        if (left->id != best.left || left->after < 0 || m->symbols[left->after].id != best.right)
            continue;
        struct symbol *right = &m->symbols[left->after];
        left->id = best.id;
        right->id = -1;
        left->after = right->after;
        if (left->after >= 0)
            m->symbols[left->after].before = best.at;
        push(m, best.at);
        if (left->before >= 0)
            push(m, left->before);
    }
}

static bool encode_piece(struct merging *m, const char *piece, size_t size, struct token_ids *to,
                         struct err *err)
{
    const struct tokenizer *t = m->tokenizer;
    int64_t n = 0;
    for (size_t i = 0; i < size; i++) {
        int32_t id = t->byte_ids[(unsigned char)piece[i]];
        id = id < 0 ? t->unknown : id;
        if (id < 0)
            continue;
        m->symbols[n] = (struct symbol){ id, n - 1, n + 1 };
        n++;
    }
    if (n == 0)
        return true;
    m->symbols[n - 1].after = -1;
    merge_all(m, n);
    for (int64_t i = 0; i >= 0; i = m->symbols[i].after)
        if (!token_put(to, m->symbols[i].id, err))
            return false;
    return true;
}

/* --- pieces --- */

enum kind { LETTERS, NUMBERS, SPACES, OTHERS };

static enum kind kind_at(const char *at, int *length)
{
    uint32_t code = 0;
    *length = utf8_length((const unsigned char *)at, &code);
    enum unicode_class found = unicode_class(code);
    return unicode_space(code)       ? SPACES
           : found == UNICODE_LETTER ? LETTERS
           : found == UNICODE_NUMBER ? NUMBERS
                                     : OTHERS;
}

/* Bytes of the characters of one kind in a row. *last: of the last of them. */
static size_t run_length(const char *at, const char *end, enum kind kind, size_t *last)
{
    const char *from = at;
    int length = 0;
    while (at < end && kind_at(at, &length) == kind) {
        at += length;
        *last = (size_t)length;
    }
    return (size_t)(at - from);
}

/* The next match of 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
static size_t piece_length(const char *at, const char *end)
{
    static const char *const endings[] = { "'s", "'t", "'re", "'ve", "'m", "'ll", "'d" };
    size_t left = (size_t)(end - at), last = 0;
    int length = 0;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (strlen(endings[i]) <= left && memcmp(at, endings[i], strlen(endings[i])) == 0)
            return strlen(endings[i]);
    size_t space = *at == ' ' && left > 1 && kind_at(at + 1, &length) != SPACES;
    enum kind kind = kind_at(at + space, &length);
    if (kind != SPACES)
        return space + run_length(at + space, end, kind, &last);
    size_t run = run_length(at, end, SPACES, &last);
    return at + run < end && run > last ? run - last : run;
}

bool bpe_encode(const struct tokenizer *t, const char *text, size_t size, struct token_ids *to,
                struct err *err)
{
    bool add = t->prefix_space && text[0] != ' ';
    size_t n = size + add;
    char *copy = malloc(n + 1);
    struct merging m = { .tokenizer = t,
                         .symbols = malloc(n * sizeof *m.symbols),
                         .heap = malloc(3 * n * sizeof *m.heap) };
    bool ok = (copy && m.symbols && m.heap) || err_memory(err, "a text");
    if (ok) {
        copy[0] = ' ';
        memcpy(copy + add, text, size);
        copy[n] = 0;
    }
    for (const char *at = copy; ok && at < copy + n;) {
        size_t length = piece_length(at, copy + n);
        ok = encode_piece(&m, at, length, to, err);
        at += length;
    }
    free(m.symbols);
    free(m.heap);
    free(copy);
    return ok;
}
