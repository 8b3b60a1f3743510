/* words.c: see words.h. */
#include "text/words.h"
#include <stdlib.h>
#include <string.h>
#include "base/utf8.h"
#include "text/tokenizer_parts.h"
#include "text/unicode.h"

enum { MOST_JOINED = 8 }; /* words, until the rest of the text is taken as one */

enum character { BLANK, LETTER, SIGN, END };

/* What the character at `at` is, and its bytes. */
static enum character look(const struct tokenizer *t, const char *at, int *length)
{
    uint32_t code = 0;
    *length = utf8_length((const unsigned char *)at, &code);
    if (*length == 0 || code == 0)
        return END;
    if (unicode_space(code))
        return BLANK;
    bool ascii = code > 0x20 && code < 0x7F;
    bool plain = (code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') ||
                 (code >= 'a' && code <= 'z');
    bool sign = (ascii && !plain) || unicode_class(code) == UNICODE_PUNCTUATION;
    return sign && !t->bpe ? SIGN : LETTER;
}

/* The piece that begins at `begin`; its end is its begin where there is none. */
static struct text_word next_piece(const struct tokenizer *t, const char *text, int64_t begin)
{
    struct text_word piece = { .begin = begin, .core = begin };
    int length;
    while (look(t, text + piece.core, &length) == BLANK)
        piece.core += length;
    enum character kind = look(t, text + piece.core, &length);
    for (piece.end = piece.core; kind != END && look(t, text + piece.end, &length) == kind;)
        piece.end += length;
    if (piece.end == piece.core)
        piece.end = begin;
    return piece;
}

/* Are these bytes the tokens from `first` on? *n: how many. */
static bool matches(const struct tokenizer *t, const char *bytes, const struct token_ids *ids,
                    int64_t first, int64_t *n, bool *same, struct err *err)
{
    struct token_ids own = { 0 };
    bool ok = tokenizer_encode(t, bytes, false, &own, err);
    *n = own.n;
    *same = ok && first + own.n <= ids->n &&
            (own.n == 0 || memcmp(own.ids, ids->ids + first, (size_t)own.n * sizeof *own.ids) == 0);
    token_ids_free(&own);
    return ok;
}

/* The word that begins at `begin`, with the tokens from `first` on. copy: room for the text. */
static bool next_word(const struct tokenizer *t, const char *text, const struct token_ids *ids,
                      struct text_word *word, char *copy, struct err *err)
{
    struct text_word piece = next_piece(t, text, word->begin);
    int64_t all = (int64_t)strlen(text);
    bool same = false;
    word->core = piece.core;
    for (int joined = 1; !same && joined <= MOST_JOINED && piece.end > piece.begin; joined++) {
        size_t size = (size_t)(piece.end - word->begin);
        memcpy(copy, text + word->begin, size);
        copy[size] = 0;
        word->end = piece.end;
        if (!matches(t, copy, ids, word->first, &word->n, &same, err))
            return false;
        piece = next_piece(t, text, piece.end);
    }
    if (!same) {
        word->end = all;
        word->n = ids->n - word->first;
    }
    return true;
}

bool text_words(const struct tokenizer *t, const char *text, const struct token_ids *ids,
                struct text_word **out, int64_t *n, struct err *err)
{
    int64_t room = 0, first = 0, begin = 0;
    struct text_word *words = NULL;
    char *copy = malloc(strlen(text) + 1);
    bool ok = copy || err_memory(err, "words");
    *n = 0;
    for (struct text_word piece; ok; *n += 1) {
        piece = next_piece(t, text, begin);
        if (piece.end == piece.begin)
            break;
        if (*n == room) {
            room = room > 0 ? 2 * room : 64;
            struct text_word *more = realloc(words, (size_t)room * sizeof *more);
            words = more ? more : words;
            ok = more || err_memory(err, "words");
        }
        struct text_word word = { .begin = begin, .first = first };
        ok = ok && next_word(t, text, ids, &word, copy, err);
        if (!ok)
            break;
        words[*n] = word;
        begin = word.end;
        first += word.n;
    }
    if (ok && *n > 0)
        words[*n - 1].n += ids->n - first; /* spaces at the end */
    free(copy);
    if (!ok)
        free(words);
    *out = ok ? words : NULL;
    return ok;
}
