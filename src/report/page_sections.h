/* page_sections.h: the sections of the page. Each writes nothing if there is nothing to show. */
#ifndef REPORT_PAGE_SECTIONS_H
#define REPORT_PAGE_SECTIONS_H
#include "report/page.h"
#include "report/results.h"
#include "report/slide_view.h"

struct page {
    const struct page_request *request;
    const struct ctx *ctx;
    struct results results;
    struct slide_view *views; /* [n_slides] */
};

/* More than two classes that all slides with known areas share, few enough for a table; NULL:
 * none. */
const struct heatmap_info *page_classes(const struct page *page);
/* The class of which the curve is, against the others; -1: of none. */
int64_t page_class_of_curve(const struct page *page, const struct result_curve *curve);

void page_put_summary(FILE *out, const struct page *page);
void page_put_cohort(FILE *out, const struct page *page);
void page_put_curves(FILE *out, const struct page *page);
void page_put_confusions(FILE *out, const struct page *page); /* in the section of the curves */
void page_put_training(FILE *out, const struct page *page);
void page_put_sweeps(FILE *out, const struct page *page);
void page_put_concepts(FILE *out, const struct page *page);
void page_put_runs(FILE *out, const struct page *page);

/* OUT/areas.csv: the area in which each class has the highest score, for slides with more than two
 * classes; removed if there are none. */
bool page_write_areas(const struct page *page, struct err *err);

/* The plots of concepts, to OUT/concepts. */
bool page_copy_concepts(const struct page *page, struct err *err);
#endif
