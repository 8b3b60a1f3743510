/* sequence.h: a text -> the inputs of a network: so many ids of tokens, with those that begin and
 * end a sequence, and a mask that is 0 for padding. */
#ifndef TEXT_SEQUENCE_H
#define TEXT_SEQUENCE_H
#include "text/tokenizer.h"

/* What is kept of a text that is too long: its beginning, its beginning and its end, half each,
 * nothing: it is an error, or all of it, as windows that overlap: each is a sequence. */
enum sequence_rule { SEQUENCE_TRUNCATE, SEQUENCE_HEAD_TAIL, SEQUENCE_REFUSE, SEQUENCE_WINDOWS };
extern const char *const sequence_rule_names[]; /* NULL-terminated */

struct sequence {
    const struct tokenizer *tokenizer; /* must outlive this */
    int64_t tokens;                    /* of a sequence */
    enum sequence_rule rule;
    double overlap; /* of windows: the part of one that the next one has too, below 1 */
};

/* Is there room for a token between those that begin and end a sequence? */
bool sequence_check(const struct sequence *sequence, struct err *err);
/* ids and mask [tokens]; of windows, the first. A text without any token is an error. Thread-safe.
 */
bool sequence_fill(const struct sequence *sequence, const char *text, float *ids, float *mask,
                   struct err *err);

/* Sequences that a text of n tokens, without those that begin and end it, becomes: 1, unless it is
 * too long for one and there are windows. All windows are full: the last one ends with the text. */
int64_t sequence_count(const struct sequence *sequence, int64_t n);
/* One of them, from the ids of the text (tokenizer_encode without frame). */
bool sequence_fill_ids(const struct sequence *sequence, const struct token_ids *body,
                       int64_t window, float *ids, float *mask, struct err *err);
/* Which token of the text is at a place [0, tokens) of one of them; -1: none, or one that begins or
 * ends the text. */
int64_t sequence_source(const struct sequence *sequence, int64_t n, int64_t window, int64_t place);
#endif
