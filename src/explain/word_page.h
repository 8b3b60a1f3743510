/* word_page.h: pages that show the words a score comes from. They open from a disk: no scripts,
 * nothing from elsewhere, and no text becomes markup. */
#ifndef EXPLAIN_WORD_PAGE_H
#define EXPLAIN_WORD_PAGE_H
#include <stdio.h>
#include "explain/word_weights.h"

/* A text and what was found. */
struct word_subject {
    int64_t number;         /* of the row, from 1: its page is texts/<number>.html */
    const char *id, *label; /* label "": none */
    const char *text;
    const struct word_weights *found;
};

/* The page of one text. */
void word_page_put(FILE *page, const struct model_config *config,
                   const struct word_subject *subject);
/* index.html: its beginning, a line for each text, its end. model: its name. */
void word_index_begin(FILE *page, const char *model, const char *table);
void word_index_line(FILE *page, const struct model_config *config,
                     const struct word_subject *subject);
void word_index_end(FILE *page);
#endif
