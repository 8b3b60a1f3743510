/* tokenizer.c: see tokenizer.h: reading a vocab.txt, and what both kinds share: tokens that are
 * found in the text itself, such as [SEP], and what begins and ends a sequence. */
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/file.h"
#include "base/utf8.h"
#include "text/tokenizer_parts.h"
#include "text/unicode.h"

#define MOST_FILE_BYTES ((size_t)256 << 20)

bool token_put(struct token_ids *to, int32_t id, struct err *err)
{
    if (!array_grow(&to->ids, &to->room, to->n + 1, sizeof *to->ids, "tokens", err))
        return false;
    to->ids[to->n++] = id;
    return true;
}

void token_ids_free(struct token_ids *ids)
{
    free(ids->ids);
    *ids = (struct token_ids){ 0 };
}

bool added_put(struct tokenizer *t, const struct added_token *token, struct err *err)
{
    if (!array_grow(&t->added, &t->room_added, t->n_added + 1, sizeof *t->added, "tokens", err))
        return false;
    struct added_token *to = &t->added[t->n_added];
    *to = *token;
    to->size = strlen(token->text);
    if (!(to->text = strdup(token->text)))
        return err_memory(err, "tokens");
    t->n_added++;
    return true;
}

void tokenizer_free(struct tokenizer *t)
{
    if (!t)
        return;
    for (int64_t i = 0; i < t->n_added; i++)
        free(t->added[i].text);
    free(t->added);
    free(t->prefix);
    free(t->merges);
    vocabulary_free(&t->vocabulary);
    free(t);
}

/* --- vocab.txt --- */

/* One token a line; its number is its id. A token that occurs twice has the first one. */
static bool read_lines(const char *text, size_t size, struct vocabulary *out, struct err *err)
{
    const char *end = text + size;
    int32_t id = 0;
    for (const char *line = text; line < end; id++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop ? stop : end;
        size_t length = (size_t)(stop - line);
        length -= length > 0 && line[length - 1] == '\r';
        char *token = strndup(line, length);
        bool ok = token ? vocabulary_add(out, token, id, err) : err_memory(err, "a vocabulary");
        free(token);
        if (!ok)
            return false;
        line = stop + 1;
    }
    return true;
}

static bool parse_lines(const char *text, size_t size, const struct tokenizer_options *options,
                        struct tokenizer *t, struct err *err)
{
    static const char *const special[] = { "[UNK]", "[SEP]", "[CLS]", "[PAD]", "[MASK]" };
    t->clean = t->apart = true;
    t->lower = !options || !options->keep_case;
    t->strip = t->lower && !(options && options->keep_accents);
    t->most_characters = 100;
    if (!(t->prefix = strdup("##")))
        return err_memory(err, "tokens");
    if (!read_lines(text, size, &t->vocabulary, err))
        return false;
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
        struct added_token token = { .text = (char *)special[i],
                                     .id = tokenizer_id(t, special[i]) };
        if (token.id < 0 && i < 3)
            return err_set(err, ERR_FORMAT,
                           "not a vocabulary of BERT: no line is %s; it has one token a line",
                           special[i]);
        if (token.id >= 0 && !added_put(t, &token, err))
            return false;
    }
    t->unknown = t->added[0].id;
    t->back[t->n_back++] = t->added[1].id;
    t->front[t->n_front++] = t->added[2].id;
    return true;
}

bool tokenizer_parse(const char *text, size_t size, const char *path,
                     const struct tokenizer_options *options, struct tokenizer **out,
                     struct err *err)
{
    struct tokenizer *t = calloc(1, sizeof *t);
    if (!t)
        return err_memory(err, path);
    t->unknown = -1;
    bool json = strcmp(file_extension(path), ".json") == 0;
    if (!(json ? tokenizer_parse_json(text, size, t, err)
               : parse_lines(text, size, options, t, err))) {
        tokenizer_free(t);
        return err_prefix(err, path);
    }
    *out = t;
    return true;
}

bool tokenizer_open(const char *path, const struct tokenizer_options *options,
                    struct tokenizer **out, struct err *err)
{
    char *text = NULL;
    size_t size = 0;
    if (!file_read(path, MOST_FILE_BYTES, &text, &size, err))
        return false;
    bool ok = tokenizer_parse(text, size, path, options, out, err);
    free(text);
    return ok;
}

/* --- encoding --- */

static bool is_word(uint32_t code)
{
    enum unicode_class kind = unicode_class(code);
    return kind == UNICODE_LETTER || kind == UNICODE_NUMBER || kind == UNICODE_MARK || code == '_';
}

/* The character before `at`; 0 at the beginning. */
static uint32_t code_before(const char *begin, const char *at)
{
    uint32_t code = 0;
    if (at == begin)
        return 0;
    do
        at--;
    while (at > begin && ((unsigned char)*at & 0xC0) == 0x80);
    utf8_length((const unsigned char *)at, &code);
    return code;
}

/* The longest added token at this place; NULL: none. */
static const struct added_token *added_at(const struct tokenizer *t, bool late, const char *begin,
                                          const char *at, const char *end)
{
    const struct added_token *best = NULL;
    for (int64_t i = 0; i < t->n_added; i++) {
        const struct added_token *token = &t->added[i];
        uint32_t after = 0;
        if (token->late != late || token->size > (size_t)(end - at) || token->size == 0 ||
            (best && best->size >= token->size) || memcmp(at, token->text, token->size) != 0)
            continue;
        if (at + token->size < end)
            utf8_length((const unsigned char *)at + token->size, &after);
        if (!token->word || (!is_word(code_before(begin, at)) && !is_word(after)))
            best = token;
    }
    return best;
}

/* Text without added tokens of this kind. */
static bool encode_rest(const struct tokenizer *t, const char *text, size_t size, bool late,
                        struct token_ids *to, struct err *err);

static bool encode_part(const struct tokenizer *t, const char *begin, const char *end, bool late,
                        struct token_ids *to, struct err *err)
{
    const char *done = begin;
    for (const char *at = begin; at < end;) {
        uint32_t code = 0;
        const struct added_token *token = added_at(t, late, begin, at, end);
        if (!token) {
            at++;
            continue;
        }
        const char *stop = at, *next = at + token->size;
        while (token->left && stop > done && unicode_space(code_before(begin, stop)))
            do
                stop--;
            while (((unsigned char)*stop & 0xC0) == 0x80);
        for (int n; token->right && next < end &&
                    (n = utf8_length((const unsigned char *)next, &code)) > 0 &&
                    unicode_space(code);)
            next += n;
        if (!encode_rest(t, done, (size_t)(stop - done), late, to, err) ||
            !token_put(to, token->id, err))
            return false;
        done = at = next;
    }
    return encode_rest(t, done, (size_t)(end - done), late, to, err);
}

static bool encode_rest(const struct tokenizer *t, const char *text, size_t size, bool late,
                        struct token_ids *to, struct err *err)
{
    if (size == 0)
        return true;
    if (!late)
        return encode_part(t, text, text + size, true, to, err);
    return t->bpe ? bpe_encode(t, text, size, to, err) : wordpiece_encode(t, text, size, to, err);
}

bool tokenizer_encode(const struct tokenizer *t, const char *text, bool frame, struct token_ids *to,
                      struct err *err)
{
    const char *end = text;
    for (uint32_t code; *end;) {
        int n = utf8_length((const unsigned char *)end, &code);
        if (n == 0)
            return err_set(err, ERR_FORMAT, "not UTF-8 at byte %zu; convert it, e.g. with iconv",
                           (size_t)(end - text));
        end += n;
    }
    for (int i = 0; frame && i < t->n_front; i++)
        if (!token_put(to, t->front[i], err))
            return false;
    if (!encode_part(t, text, end, false, to, err))
        return false;
    for (int i = 0; frame && i < t->n_back; i++)
        if (!token_put(to, t->back[i], err))
            return false;
    return true;
}

int64_t tokenizer_size(const struct tokenizer *t)
{
    int64_t size = t->vocabulary.n;
    for (int64_t i = 0; i < t->n_added; i++)
        size = t->added[i].id >= size ? t->added[i].id + 1 : size;
    return size;
}

int32_t tokenizer_id(const struct tokenizer *t, const char *token)
{
    for (int64_t i = 0; i < t->n_added; i++)
        if (strcmp(t->added[i].text, token) == 0)
            return t->added[i].id;
    return vocabulary_find(&t->vocabulary, token, strlen(token));
}

void tokenizer_frame(const struct tokenizer *t, int *front, int *back)
{
    *front = t->n_front;
    *back = t->n_back;
}
