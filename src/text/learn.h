/* learn.h: texts -> a vocabulary for WordPiece, as a vocab.txt: all characters, and then the pairs
 * of tokens that occur together most often, one after another (as Hugging Face's trainer of
 * WordPiece does it). The same texts in the same order give the same bytes. */
#ifndef TEXT_LEARN_H
#define TEXT_LEARN_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

struct learner;

/* *out is the caller's; free with learner_free. Letters become small and lose their accents, as
 * where the vocabulary is used. */
bool learner_new(struct learner **out, struct err *err);
void learner_free(struct learner *learner); /* NULL-safe */
/* Counts the words of a text, which must be UTF-8. */
bool learner_add(struct learner *learner, const char *text, struct err *err);
/* The lines of a vocab.txt with at most `size` tokens, the caller's; fewer if no two tokens occur
 * together twice. An error if the characters alone are more. */
bool learner_vocabulary(struct learner *learner, int64_t size, char **out, struct err *err);
#endif
