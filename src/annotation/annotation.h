/* annotation.h: a pathologist's drawing -> polygons, masks, labels. ASAP XML, Aperio ImageScope
 * XML, QuPath GeoJSON (and NCRF's JSON) are told apart by their content. Level-0 pixels. */
#ifndef ANNOTATION_ANNOTATION_H
#define ANNOTATION_ANNOTATION_H
#include "base/err.h"
#include "base/image.h"

/* What a drawn region means. Names of groups and classes are mapped as in FORMATS
 * (docs/formats.md): tumour (_0, _1, Tumor, metastases, ...), exclusion (_2, Exclusion, normal
 * inside tumour: a hole). */
struct annotation;

/* Reads and repairs. What cannot be repaired is refused with the file and the line. *out is the
 * caller's; free with annotation_free. An annotation without regions is valid and empty. */
bool annotation_read(const char *path, struct annotation **out, struct err *err);
/* The same from memory, for fuzzing; path names it in messages. */
bool annotation_parse(const char *text, size_t size, const char *path, struct annotation **out,
                      struct err *err);
void annotation_free(struct annotation *annotation);

int64_t annotation_regions(const struct annotation *annotation);  /* polygons after merging */
int64_t annotation_repaired(const struct annotation *annotation); /* how many had to be */
double annotation_area_px(const struct annotation *annotation);   /* level-0 pixels */
bool annotation_bounds(const struct annotation *annotation, double *x0, double *y0, double *x1,
                       double *y1); /* false if empty */

/* Exact point in polygon (inside tumour and in no exclusion). Thread-safe. */
bool annotation_contains(const struct annotation *annotation, double x_l0, double y_l0);

/* Rasterises a window: mask pixel (i, j) is 255 if its centre, at level-0
 * (x_l0 + (i + 0.5) * step, y_l0 + (j + 0.5) * step), is inside. *out [height, width, 1].
 * Thread-safe. */
bool annotation_mask(const struct annotation *annotation, double x_l0, double y_l0, double step_l0,
                     int64_t width, int64_t height, struct image *out, struct err *err);

/* How many of the width x height pixel centres of such a window are inside; no image is made.
 * 0 means that no pixel is tumour. Thread-safe. */
int64_t annotation_count(const struct annotation *annotation, double x_l0, double y_l0,
                         double step_l0, int64_t width, int64_t height);
#endif
