/* words.h: the words of a text as it is written, and the tokens that each became. */
#ifndef TEXT_WORDS_H
#define TEXT_WORDS_H
#include "text/tokenizer.h"

struct text_word {
    int64_t begin, core, end; /* bytes: spaces before it from `begin`, the word from `core` on */
    int64_t first, n;         /* its tokens among those of the text */
};

/* ids: all tokens of the text, without those that begin and end it. Words are what spaces divide
 * and, with WordPiece, punctuation. Where tokens go across that (a tokenizer may have them), words
 * are joined, at worst all that is left of the text; so every token belongs to one word, if there
 * is any, and so does every byte but spaces at the end. *out is the caller's, to free. */
bool text_words(const struct tokenizer *tokenizer, const char *text, const struct token_ids *ids,
                struct text_word **out, int64_t *n, struct err *err);
#endif
