/* tokenizer_parts.h: private to the tokenizers: what one is made of. */
#ifndef TEXT_TOKENIZER_PARTS_H
#define TEXT_TOKENIZER_PARTS_H
#include "text/tokenizer.h"
#include "text/vocabulary.h"

#define TOKENIZER_MOST_FRAME 8

/* A token that is found in the text itself, before anything else is done to it. */
struct added_token {
    char *text;
    size_t size;
    int32_t id;
    bool word;        /* only where no letter, number or underscore is beside it */
    bool left, right; /* takes the spaces beside it along */
    bool late;        /* "normalized": looked for in what the others leave */
};

/* Two tokens that become one; the lowest rank first. */
struct merge {
    int32_t left, right, rank, id;
};

struct tokenizer {
    struct vocabulary vocabulary;
    struct added_token *added;
    int64_t n_added, room_added;
    int32_t front[TOKENIZER_MOST_FRAME], back[TOKENIZER_MOST_FRAME];
    int n_front, n_back;
    int32_t unknown; /* -1: what is not known is left out */
    bool bpe;        /* else WordPiece */
    /* WordPiece */
    bool clean, apart, lower, strip; /* of BERT's normaliser */
    int64_t most_characters;         /* of a word; longer ones are unknown */
    char *prefix;                    /* of tokens that continue a word: "##" */
    /* byte-level BPE */
    int32_t byte_ids[256];
    bool prefix_space;
    struct merge *merges; /* hash table [n_slots] by (left, right); id -1 is free */
    int64_t n_slots;
};

bool token_put(struct token_ids *to, int32_t id, struct err *err);
/* Adds the ids of `size` bytes of UTF-8, at their own end. */
bool wordpiece_encode(const struct tokenizer *tokenizer, const char *text, size_t size,
                      struct token_ids *to, struct err *err);
/* Takes the words of a text, normalised, one by one; false ends it. */
typedef bool (*word_fn)(void *arg, const char *word, size_t size, struct err *err);
/* The words that wordpiece_encode would look up, but for those that are too long for it. */
bool wordpiece_words(const struct tokenizer *tokenizer, const char *text, size_t size, word_fn each,
                     void *arg, struct err *err);
bool bpe_encode(const struct tokenizer *tokenizer, const char *text, size_t size,
                struct token_ids *to, struct err *err);
const struct merge *bpe_find(const struct tokenizer *tokenizer, int32_t left, int32_t right);
/* The character that stands for a byte in a tokenizer.json. */
uint32_t bpe_character(int byte);
bool added_put(struct tokenizer *tokenizer, const struct added_token *token, struct err *err);
/* Fills a tokenizer from a tokenizer.json. */
bool tokenizer_parse_json(const char *text, size_t size, struct tokenizer *out, struct err *err);
#endif
