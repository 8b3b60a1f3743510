/* slide_truth.h: the annotation of a slide -> its outlines as SVG, to be laid over the slide: those
 * of tumour or, if there are more than two classes, of each class in its colour. */
#ifndef REPORT_SLIDE_TRUTH_H
#define REPORT_SLIDE_TRUTH_H
#include "annotation/classes.h"
#include "heatmap/heatmap.h"

struct slide_truth {
    const char *annotation, *slide; /* file; name of the slide */
    const struct heatmap_info *info;
    const struct class_map *class_map; /* NULL: classes are those of the heatmap, if it has more
                                        * than two, else the names alone decide */
    int64_t width, height;             /* px of the picture */
};

/* Writes path. An annotation that cannot be read is no error: *read is false, and `why` says why.
 */
bool slide_truth_write(const struct slide_truth *truth, const char *path, bool *read,
                       struct err *why, struct err *err);
#endif
