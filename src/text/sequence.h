/* sequence.h: a text -> the inputs of a network: so many ids of tokens, with those that begin and
 * end a sequence, and a mask that is 0 for padding. */
#ifndef TEXT_SEQUENCE_H
#define TEXT_SEQUENCE_H
#include "text/tokenizer.h"

/* What is kept of a text that is too long: its beginning, its beginning and its end, half each, or
 * nothing: it is an error. */
enum sequence_rule { SEQUENCE_TRUNCATE, SEQUENCE_HEAD_TAIL, SEQUENCE_REFUSE };
extern const char *const sequence_rule_names[]; /* NULL-terminated */

struct sequence {
    const struct tokenizer *tokenizer; /* must outlive this */
    int64_t tokens;                    /* of a sequence */
    enum sequence_rule rule;
};

/* Is there room for a token between those that begin and end a sequence? */
bool sequence_check(const struct sequence *sequence, struct err *err);
/* ids and mask [tokens]. A text without any token is an error. Thread-safe. */
bool sequence_fill(const struct sequence *sequence, const char *text, float *ids, float *mask,
                   struct err *err);
#endif
