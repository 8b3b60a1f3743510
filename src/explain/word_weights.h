/* word_weights.h: which words of a text the score of a class comes from: weights of tokens
 * (text_probe.h) added up to words. Of a text in several windows they are means over them, a window
 * without a token counting 0; so the weights of integrated gradients add up to the mean difference
 * of the logits. */
#ifndef EXPLAIN_WORD_WEIGHTS_H
#define EXPLAIN_WORD_WEIGHTS_H
#include "explain/text_probe.h"
#include "text/words.h"

enum word_method { WORDS_GRADIENTS, WORDS_ATTENTION, WORDS_METHODS };
extern const char *const word_method_names[]; /* NULL-terminated */
extern const char *const word_method_titles[];

struct word_weights {
    struct text_word *words; /* [n] */
    int64_t n;
    double *weights[WORDS_METHODS]; /* [n]; NULL: not asked for */
    bool *unread;                   /* [n]: the network has not seen all of its tokens */
    double *scores;                 /* [classes], as predict gives them */
    int64_t class_index;            /* that is explained */
    int64_t windows;
    struct text_integral integral; /* means over the windows; with WORDS_GRADIENTS */
};

/* methods: bits 1u << method. class_index -1: that with the highest score. *out is the caller's;
 * word_weights_free. */
bool word_weights_make(struct text_probe *probe, const struct text_model *model, const char *text,
                       uint32_t methods, int64_t class_index, struct word_weights *out,
                       struct err *err);
void word_weights_free(struct word_weights *weights); /* also fine on a zeroed struct */
#endif
