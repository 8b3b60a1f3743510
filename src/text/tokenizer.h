/* tokenizer.h: texts -> ids of tokens, as Hugging Face's tokenizers give them. Two kinds: WordPiece
 * (BERT's vocab.txt, or a tokenizer.json of that kind) and byte-level BPE (tokenizer.json). What a
 * file asks for and is not known here is refused by name. */
#ifndef TEXT_TOKENIZER_H
#define TEXT_TOKENIZER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

struct tokenizer;

/* BERT's normaliser, for a vocab.txt; a tokenizer.json has its own. */
struct tokenizer_options {
    bool keep_case;    /* else letters become small */
    bool keep_accents; /* else accents are removed, where letters become small */
};

/* Ids; zeroed at first, grows as needed; the caller's, token_ids_free. */
struct token_ids {
    int32_t *ids;
    int64_t n, room;
};

/* *out is the caller's; free with tokenizer_free. A file is JSON if its name ends in .json. */
bool tokenizer_open(const char *path, const struct tokenizer_options *options,
                    struct tokenizer **out, struct err *err);
/* The same from memory; path is used for its ending and in messages. */
bool tokenizer_parse(const char *text, size_t size, const char *path,
                     const struct tokenizer_options *options, struct tokenizer **out,
                     struct err *err);
void tokenizer_free(struct tokenizer *tokenizer); /* NULL-safe */

/* Adds the ids of a text, which is UTF-8 and ends with a 0 byte; frame: with those that begin and
 * end a sequence ([CLS], [SEP]). Thread-safe. O(n log n) in the length of its longest word. */
bool tokenizer_encode(const struct tokenizer *tokenizer, const char *text, bool frame,
                      struct token_ids *to, struct err *err);
/* Ids are below this. */
int64_t tokenizer_size(const struct tokenizer *tokenizer);
/* Of a token as the file has it; -1: none. */
int32_t tokenizer_id(const struct tokenizer *tokenizer, const char *token);
/* How many tokens begin and end a sequence. */
void tokenizer_frame(const struct tokenizer *tokenizer, int *front, int *back);
void token_ids_free(struct token_ids *ids);
#endif
