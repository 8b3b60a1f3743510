/* class_html.h: what the page shows of a slide with more than two classes: the area of each, their
 * colours, and the choice between the class with the highest score and the scores of one. Each
 * writes nothing for other slides. */
#ifndef REPORT_CLASS_HTML_H
#define REPORT_CLASS_HTML_H
#include <stdio.h>
#include "report/slide_view.h"

/* A square of the colour of a class. */
void class_html_swatch(FILE *page, const struct heatmap_info *info, int64_t class_index);
/* <div>s of a <dl>: area and share of each class. */
void class_html_areas(FILE *page, const struct slide_view *view);
/* A <select> of the pictures; the script of the page shows the chosen ones. */
void class_html_choice(FILE *page, const struct slide_view *view, size_t number);
/* The caption of the picture of the highest scores. */
void class_html_legend(FILE *page, const struct slide_view *view);
#endif
