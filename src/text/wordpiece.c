/* wordpiece.c: text -> BERT's normaliser and words -> the longest tokens that make up each word
 * (tokenizer.h). */
#include <stdlib.h>
#include <string.h>
#include "base/utf8.h"
#include "text/tokenizer_parts.h"
#include "text/unicode.h"

/* Bytes that one byte of text can become: a space on both sides, three characters of three bytes,
 * from a character of two. */
#define MOST_GROWTH 8

struct words {
    const struct tokenizer *tokenizer;
    char *word; /* the one that is being collected, after room for the prefix */
    size_t size;
    int64_t characters;
    struct token_ids *to;
    word_fn each; /* takes the words instead of `to`; NULL: none does */
    void *arg;
};

/* Greedy, from the front; one token for all of a word that cannot be made up. */
static bool end_word(struct words *w, struct err *err)
{
    const struct tokenizer *t = w->tokenizer;
    size_t prefix = strlen(t->prefix), begin = 0, size = w->size;
    int64_t first = w->to ? w->to->n : 0;
    bool known = w->characters <= t->most_characters;
    w->size = 0;
    w->characters = 0;
    if (w->each)
        return size == 0 || !known || w->each(w->arg, w->word, size, err);
    while (known && begin < size) {
        int32_t id = -1;
        size_t end = size;
        char *from = w->word + begin;
        if (begin > 0) {
            from -= prefix;
            memcpy(from, t->prefix, prefix); /* over what has been read */
        }
        while (end > begin &&
               (id = vocabulary_find(&t->vocabulary, from, (size_t)(w->word + end - from))) < 0)
            do
                end--;
            while (end > begin && ((unsigned char)w->word[end] & 0xC0) == 0x80);
        known = id >= 0;
        if (known && !token_put(w->to, id, err))
            return false;
        begin = end;
    }
    if (known || size == 0)
        return true;
    w->to->n = first;
    return t->unknown < 0 || token_put(w->to, t->unknown, err);
}

static bool is_punctuation(uint32_t code)
{
    bool ascii = code < 0x80 && code > 0x20 && code != 0x7F;
    bool alphanumeric = (code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') ||
                        (code >= 'a' && code <= 'z');
    return (ascii && !alphanumeric) || unicode_class(code) == UNICODE_PUNCTUATION;
}

/* A character after normalisation: spaces end words, punctuation is one of its own. */
static bool take(struct words *w, uint32_t code, struct err *err)
{
    bool alone = is_punctuation(code);
    if ((unicode_space(code) || alone) && !end_word(w, err))
        return false;
    if (unicode_space(code))
        return true;
    w->size += unicode_put(code, w->word + w->size);
    w->characters++;
    return !alone || end_word(w, err);
}

static bool take_lowered(struct words *w, uint32_t code, struct err *err)
{
    uint32_t small[UNICODE_MOST_BASES] = { code };
    int n = w->tokenizer->lower ? unicode_lower(code, small) : 1;
    for (int i = 0; i < n; i++)
        if (!take(w, small[i], err))
            return false;
    return true;
}

/* A character of the text. */
static bool normalise(struct words *w, uint32_t code, struct err *err)
{
    const struct tokenizer *t = w->tokenizer;
    uint32_t bases[UNICODE_MOST_BASES] = { code };
    bool blank = code == '\t' || code == '\n' || code == '\r';
    if (t->clean && !blank && (code == 0 || code == 0xFFFD || unicode_class(code) == UNICODE_OTHER))
        return true;
    bool alone = t->apart && unicode_ideograph(code);
    if (alone && !end_word(w, err))
        return false;
    int n = t->strip ? unicode_bases_of(code, bases) : 1;
    for (int i = 0; i < n; i++)
        if (!take_lowered(w, bases[i], err))
            return false;
    return !alone || end_word(w, err);
}

static bool read_words(struct words *words, const char *text, size_t size, struct err *err)
{
    size_t prefix = strlen(words->tokenizer->prefix);
    char *room = malloc(prefix + MOST_GROWTH * size + 16);
    bool ok = room || err_memory(err, "a text");
    words->word = room + prefix;
    for (const char *at = text; ok && at < text + size;) {
        uint32_t code = 0;
        at += utf8_length((const unsigned char *)at, &code);
        ok = normalise(words, code, err);
    }
    ok = ok && end_word(words, err);
    free(room);
    return ok;
}

bool wordpiece_encode(const struct tokenizer *t, const char *text, size_t size,
                      struct token_ids *to, struct err *err)
{
    struct words words = { .tokenizer = t, .to = to };
    return read_words(&words, text, size, err);
}

bool wordpiece_words(const struct tokenizer *t, const char *text, size_t size, word_fn each,
                     void *arg, struct err *err)
{
    struct words words = { .tokenizer = t, .each = each, .arg = arg };
    return read_words(&words, text, size, err);
}
