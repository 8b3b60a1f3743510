/* learn.c: see learn.h. */
#include "text/learn.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/utf8.h"
#include "text/tokenizer_parts.h"

#define SPECIAL "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"
#define CONTINUES "##"
#define MOST_CHARACTER 5 /* bytes, with the final 0 */

struct learner {
    struct tokenizer *plain; /* for its normaliser */
    struct vocabulary words; /* all that occur */
    int64_t *counts;         /* of the words */
    int64_t room;
};

/* How often two tokens stand side by side. */
struct pair {
    int32_t left, right; /* left -1: free */
    int64_t count;
};

/* Words as tokens that become longer. */
struct merging {
    struct vocabulary tokens;
    int32_t *symbols; /* of all words, one after another */
    int64_t n_symbols, room;
    int64_t *first;     /* [words + 1] in symbols */
    int64_t *length;    /* [words]: symbols that are left */
    struct pair *pairs; /* hash table */
    int64_t n_slots, n_pairs;
};

bool learner_new(struct learner **out, struct err *err)
{
    struct learner *learner = calloc(1, sizeof *learner);
    if (!learner)
        return err_memory(err, "a vocabulary");
    if (!tokenizer_parse(SPECIAL, strlen(SPECIAL), "vocab.txt", NULL, &learner->plain, err)) {
        learner_free(learner);
        return false;
    }
    *out = learner;
    return true;
}

void learner_free(struct learner *learner)
{
    if (!learner)
        return;
    tokenizer_free(learner->plain);
    vocabulary_free(&learner->words);
    free(learner->counts);
    free(learner);
}

static bool count_word(void *arg, const char *word, size_t size, struct err *err)
{
    struct learner *learner = arg;
    int32_t id = vocabulary_find(&learner->words, word, size);
    if (id < 0) {
        id = (int32_t)learner->words.n;
        char *copy = strndup(word, size);
        bool ok = copy ? array_grow(&learner->counts, &learner->room, id + 1,
                                    sizeof *learner->counts, "words", err) &&
                             vocabulary_add(&learner->words, copy, id, err)
                       : err_memory(err, "words");
        free(copy);
        if (!ok)
            return false;
        learner->counts[id] = 0;
    }
    learner->counts[id]++;
    return true;
}

bool learner_add(struct learner *learner, const char *text, struct err *err)
{
    const char *end = text;
    for (uint32_t code; *end;) {
        int n = utf8_length((const unsigned char *)end, &code);
        if (n == 0)
            return err_set(err, ERR_FORMAT, "not UTF-8 at byte %zu; convert it, e.g. with iconv",
                           (size_t)(end - text));
        end += n;
    }
    return wordpiece_words(learner->plain, text, (size_t)(end - text), count_word, learner, err);
}

/* --- pairs --- */

static int64_t slot_of(const struct merging *m, int32_t left, int32_t right)
{
    uint64_t hash = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15u;
    int64_t slot = (int64_t)(hash >> 20) & (m->n_slots - 1);
    while (m->pairs[slot].left >= 0 &&
           (m->pairs[slot].left != left || m->pairs[slot].right != right))
        slot = (slot + 1) & (m->n_slots - 1);
    return slot;
}

static bool grow_pairs(struct merging *m, struct err *err)
{
    struct merging larger = *m;
    larger.n_slots = m->n_slots ? 2 * m->n_slots : 1 << 12;
    larger.pairs = calloc((size_t)larger.n_slots, sizeof *larger.pairs);
    if (!larger.pairs)
        return err_memory(err, "a vocabulary");
    for (int64_t i = 0; i < larger.n_slots; i++)
        larger.pairs[i].left = -1;
    for (int64_t i = 0; i < m->n_slots; i++)
        if (m->pairs[i].left >= 0)
            larger.pairs[slot_of(&larger, m->pairs[i].left, m->pairs[i].right)] = m->pairs[i];
    free(m->pairs);
    *m = larger;
    return true;
}

/* Adds `by` to the counts of all pairs of a word. */
static bool count_pairs(struct merging *m, const int32_t *symbols, int64_t n, int64_t by,
                        struct err *err)
{
    for (int64_t i = 0; i + 1 < n; i++) {
        if (2 * m->n_pairs >= m->n_slots && !grow_pairs(m, err))
            return false;
        struct pair *pair = &m->pairs[slot_of(m, symbols[i], symbols[i + 1])];
        m->n_pairs += pair->left < 0;
        pair->left = symbols[i], pair->right = symbols[i + 1];
        pair->count += by;
    }
    return true;
}

/* The most frequent; of several, that of the first tokens. NULL: none occurs twice. */
static const struct pair *best_pair(const struct merging *m)
{
    const struct pair *best = NULL;
    for (int64_t i = 0; i < m->n_slots; i++) {
        const struct pair *pair = &m->pairs[i];
        if (pair->left < 0 || pair->count < 2 || (best && pair->count < best->count))
            continue;
        if (!best || pair->count > best->count || pair->left < best->left ||
            (pair->left == best->left && pair->right < best->right))
            best = pair;
    }
    return best;
}

/* --- tokens --- */

/* A token by its text, new or known; -1 with an error. */
static int32_t token_of(struct merging *m, const char *text, struct err *err)
{
    int32_t id = vocabulary_find(&m->tokens, text, strlen(text));
    if (id >= 0)
        return id;
    id = (int32_t)m->tokens.n;
    return vocabulary_add(&m->tokens, text, id, err) ? id : -1;
}

static bool add_word(struct merging *m, const char *word, struct err *err)
{
    for (const char *at = word; *at;) {
        uint32_t code;
        int n = utf8_length((const unsigned char *)at, &code);
        char text[sizeof CONTINUES + MOST_CHARACTER];
        snprintf(text, sizeof text, "%s%.*s", at == word ? "" : CONTINUES, n, at);
        int32_t id = token_of(m, text, err);
        if (id < 0 ||
            !array_grow(&m->symbols, &m->room, m->n_symbols + 1, sizeof *m->symbols, "words", err))
            return false;
        m->symbols[m->n_symbols++] = id;
        at += n;
    }
    return true;
}

/* All words as characters, with the counts of pairs. */
static bool begin(const struct learner *learner, struct merging *m, struct err *err)
{
    size_t n = (size_t)learner->words.n;
    for (const char *line = SPECIAL; *line; line = strchr(line, '\n') + 1) {
        char text[16];
        snprintf(text, sizeof text, "%.*s", (int)strcspn(line, "\n"), line);
        if (token_of(m, text, err) < 0)
            return false;
    }
    m->first = calloc(n + 1, sizeof *m->first);
    m->length = calloc(n + 1, sizeof *m->length);
    if (!m->first || !m->length)
        return err_memory(err, "words");
    for (size_t i = 0; i < n; i++) {
        m->first[i] = m->n_symbols;
        if (!add_word(m, learner->words.tokens[i], err))
            return false;
        m->length[i] = m->n_symbols - m->first[i];
        if (!count_pairs(m, m->symbols + m->first[i], m->length[i], learner->counts[i], err))
            return false;
    }
    return true;
}

static bool has_pair(const int32_t *symbols, int64_t n, const struct pair *pair)
{
    for (int64_t i = 0; i + 1 < n; i++)
        if (symbols[i] == pair->left && symbols[i + 1] == pair->right)
            return true;
    return false;
}

/* In all words that have it, the pair becomes one token. */
static bool merge(const struct learner *learner, struct merging *m, struct pair pair, int32_t id,
                  struct err *err)
{
    for (int64_t w = 0; w < learner->words.n; w++) {
        int32_t *symbols = m->symbols + m->first[w];
        int64_t n = m->length[w], left = 0;
        if (!has_pair(symbols, n, &pair))
            continue;
        if (!count_pairs(m, symbols, n, -learner->counts[w], err))
            return false;
        for (int64_t i = 0; i < n; left++) {
            bool both = i + 1 < n && symbols[i] == pair.left && symbols[i + 1] == pair.right;
            symbols[left] = both ? id : symbols[i];
            i += both ? 2 : 1;
        }
        m->length[w] = left;
        if (!count_pairs(m, symbols, left, learner->counts[w], err))
            return false;
    }
    return true;
}

static bool merge_all(const struct learner *learner, struct merging *m, int64_t size,
                      struct err *err)
{
    const struct pair *best;
    while (m->tokens.n < size && (best = best_pair(m))) {
        const char *left = m->tokens.tokens[best->left], *right = m->tokens.tokens[best->right];
        size_t room = strlen(left) + strlen(right) + 1;
        char *text = malloc(room);
        if (!text)
            return err_memory(err, "a token");
        snprintf(text, room, "%s%s", left, right + strlen(CONTINUES));
        int32_t id = token_of(m, text, err);
        free(text);
        if (id < 0 || !merge(learner, m, *best, id, err))
            return false;
    }
    return true;
}

static bool write_lines(const struct vocabulary *tokens, char **out, struct err *err)
{
    size_t size = 0;
    FILE *stream = open_memstream(out, &size);
    if (!stream)
        return err_memory(err, "a vocabulary");
    for (int64_t i = 0; i < tokens->n; i++)
        fprintf(stream, "%s\n", tokens->tokens[i]);
    return fclose(stream) == 0 || err_memory(err, "a vocabulary");
}

bool learner_vocabulary(struct learner *learner, int64_t size, char **out, struct err *err)
{
    struct merging m = { 0 };
    bool ok = begin(learner, &m, err);
    if (ok && learner->words.n == 0)
        ok = err_set(err, ERR_MISSING, "no words to learn a vocabulary from");
    else if (ok && m.tokens.n > size)
        ok = err_set(err, ERR_USAGE,
                     "a vocabulary of %lld tokens has no room for the %lld characters of the "
                     "texts; use a larger one",
                     (long long)size, (long long)m.tokens.n);
    ok = ok && merge_all(learner, &m, size, err) && write_lines(&m.tokens, out, err);
    vocabulary_free(&m.tokens);
    free(m.symbols);
    free(m.first);
    free(m.length);
    free(m.pairs);
    return ok;
}
