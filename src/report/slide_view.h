/* slide_view.h: one slide of the report: its pictures as files, and its section of the page. */
#ifndef REPORT_SLIDE_VIEW_H
#define REPORT_SLIDE_VIEW_H
#include "annotation/classes.h"
#include "base/ctx.h"
#include "report/picture.h"
#include "report/results.h"
#include "verdict/lesions.h"

#define VIEW_LESIONS 10 /* listed and marked */
#define VIEW_CLASSES 12 /* with pictures */
#define VIEW_WHYS 6     /* windows with maps: why<number>-<map>.jpg */

/* A class with pictures: heat<suffix>.png, overlay<suffix>.png and its windows of the highest
 * scores, peak<number><suffix>.jpg. */
struct view_class {
    int64_t index;
    char suffix[24]; /* "" if it is the only class that is shown, else "-<index>" */
    struct picture_peak peaks[PICTURE_PEAKS];
    int n_peaks;
    bool patches; /* pictures of the peaks' windows exist */
};

struct slide_view {
    struct heatmap_info info; /* zero without a heatmap */
    bool heat, overview, truth;
    bool no_tissue;        /* the heatmap has no scores */
    int64_t width, height; /* px of the pictures */
    struct view_class classes[VIEW_CLASSES];
    int n_classes;     /* 1: the main class; of more than two classes: the first ones */
    int64_t *won;      /* [info.n_classes]: cells in which a class has the highest score, shown in
                        * heat-classes.png and overlay-classes.png; NULL: up to two classes */
    double mean, max;  /* of the main class */
    double tissue_mm2; /* that was scored; NAN: unknown */
    struct lesion lesions[VIEW_LESIONS];
    size_t n_lesions, all_lesions;
    size_t n_whys;      /* of the slide's, that have pictures */
    char problem[1024]; /* what could not be read; "" if nothing */
};

/* Writes the pictures to `folder`, which exists. Thread-safe. False if something cannot be written;
 * *out is the caller's; free with slide_view_free. */
bool slide_view_make(const struct result_slide *slide, const struct class_map *class_map,
                     const char *folder, const struct ctx *ctx, struct slide_view *out,
                     struct err *err);
void slide_view_free(struct slide_view *view);

/* Pictures of the slide's maps; a file that cannot be read ends them. */
bool slide_why_make(const struct result_slide *slide, const char *folder, struct slide_view *view,
                    struct err *err);
void slide_why_write(FILE *page, const struct result_slide *slide, const struct slide_view *view,
                     size_t number);

/* The area in which a class has the highest score; NAN: unknown. */
double slide_view_class_mm2(const struct slide_view *view, int64_t class_index);

/* The slide's <article>; number from 1; its pictures are in slides/<number>/. */
void slide_view_write(FILE *page, const struct result_slide *slide, const struct slide_view *view,
                      size_t number);
#endif
