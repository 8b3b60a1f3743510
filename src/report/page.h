/* page.h: results of other commands -> one page that opens in any browser, without a server and
 * without a network: OUT/index.html, the pictures of slide i in OUT/slides/<i>/ and, if there are
 * more than two classes, their areas in OUT/areas.csv. */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H
#include <stdbool.h>
#include <stddef.h>
#include "annotation/classes.h"
#include "base/ctx.h"
#include "base/err.h"

struct page_request {
    char *const *folders; /* of results, see results.h */
    int n_folders;
    const char *output; /* folder */
    const char *title;
    const char *label_column;          /* of the tables; NULL: label */
    const struct class_map *class_map; /* what annotation classes mean; NULL: their names alone */
};

struct page_result {
    size_t slides, pictured; /* in the table; with a heatmap */
    size_t curves, trainings, runs;
    size_t problems; /* files that could not be read; the page lists them */
};

/* Slides are drawn in parallel. A file that cannot be read is listed on the page and counted; a
 * file that cannot be written is an error. index.html is written last: if it exists, so do the
 * pictures. */
bool page_make(const struct page_request *request, const struct ctx *ctx, struct page_result *out,
               struct err *err);
#endif
