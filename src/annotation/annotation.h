/* annotation.h: a pathologist's drawing -> polygons, masks, labels. ASAP XML, Aperio ImageScope
 * XML, QuPath GeoJSON and NCRF JSON are distinguished by their content. Level-0 pixels.
 *
 * The name of a drawn region's group, layer or class decides what it means (classes.h): tumour (_0,
 * _1, Tumor, metastases, ...; also a region without a class), exclusion (_2, Exclusion, normal,
 * ...), or whatever the class map says. A class with no known meaning is rejected. Without other
 * classes the annotation is the union of all tumour regions minus the union of all exclusions,
 * whatever their order in the file. With them a point is of the first class, in the order of
 * precedence, one of whose regions it is in; inside an exclusion it is of none. */
#ifndef ANNOTATION_ANNOTATION_H
#define ANNOTATION_ANNOTATION_H
#include "annotation/classes.h"
#include "base/err.h"
#include "base/image.h"

struct annotation;

/* The slide that a drawing belongs to. A file that covers several images (COCO) needs the name, one
 * that has its own size in pixels (COCO, label images) the size. */
struct annotation_slide {
    const char *name;            /* the slide file without folder and extension; NULL: unknown */
    int64_t width_l0, height_l0; /* 0: unknown */
};

/* Reads and repairs: 10 to 150 ms for a slide of CAMELYON16. A file that cannot be
 * repaired is rejected with an error that names the file and the line (in JSON: the feature or
 * region number). slide and map may be NULL. The caller owns *out; free with annotation_free. An
 * annotation without regions is valid and empty; one that contains drawn objects but no area is
 * rejected. Thread-safe. */
bool annotation_read(const char *path, const struct annotation_slide *slide,
                     const struct class_map *map, struct annotation **out, struct err *err);
/* The same from memory, for fuzzing; path is used in messages only. */
bool annotation_parse(const char *text, size_t size, const char *path,
                      const struct annotation_slide *slide, const struct class_map *map,
                      struct annotation **out, struct err *err);

struct annotation_file {
    const char *path, *slide; /* slide: its name */
};

/* To be called before work starts: rejects the files if they contain classes with no known meaning,
 * and lists them all. Any other problem with a file is left to annotation_read. */
bool annotation_check_classes(const struct annotation_file *files, size_t n,
                              const struct class_map *map, struct err *err);
/* Does the file name the images that its regions belong to (COCO), so that it may be the annotation
 * of many slides? False if it cannot be read. */
bool annotation_names_slides(const char *path);
void annotation_free(struct annotation *annotation);

const char *annotation_format(const struct annotation *annotation); /* "ASAP", "GeoJSON", ... */
int64_t annotation_regions(const struct annotation *annotation);    /* polygons after merging */
int64_t annotation_repaired(const struct annotation *annotation);   /* how many needed repair */
/* Drawn objects that are not areas and are ignored: points, lines, detections. The caller warns if
 * this is not 0; *first_name (if not NULL) is the name of the first one. */
int64_t annotation_ignored(const struct annotation *annotation, const char **first_name);
/* Level-0 pixels, of all classes together; where classes overlap, the area counts for each. */
double annotation_area_px(const struct annotation *annotation);
/* The bounding box of all classes. Coordinates below 0 or beyond the slide mean that the drawing
 * belongs to another slide or level. False if empty. */
bool annotation_bounds(const struct annotation *annotation, double *x0, double *y0, double *x1,
                       double *y1);

/* --- one class against the rest --- */

/* Is it in the positive class (class_map_positive: tumor)? Exact point in polygon. A point on a
 * left or top edge is inside, on a right or bottom edge outside, so regions that touch share no
 * point. Looks at the edges at that height only. Thread-safe. */
bool annotation_contains(const struct annotation *annotation, double x_l0, double y_l0);

/* Rasterises a window: mask pixel (i, j) is 255 if annotation_contains its centre, at level-0
 * (x_l0 + (i + 0.5) * step, y_l0 + (j + 0.5) * step). The caller owns *out [height, width, 1]. Only
 * edges that cross the window's rows are examined. Thread-safe. */
bool annotation_mask(const struct annotation *annotation, double x_l0, double y_l0, double step_l0,
                     int64_t width, int64_t height, struct image *out, struct err *err);

/* The number of pixel centres of such a window (width x height) that are inside; no image is
 * created. Thread-safe. */
int64_t annotation_count(const struct annotation *annotation, double x_l0, double y_l0,
                         double step_l0, int64_t width, int64_t height);

/* --- any number of classes --- */

int annotation_n_classes(const struct annotation *annotation);
const char *annotation_class_name(const struct annotation *annotation, int place);
int annotation_positive(const struct annotation *annotation);   /* a place */
int annotation_unlabelled(const struct annotation *annotation); /* class_map_unlabelled */
bool annotation_class_bounds(const struct annotation *annotation, int place, double *x0, double *y0,
                             double *x1, double *y1);

#define ANNOTATION_UNDRAWN (-1)  /* nobody drew here */
#define ANNOTATION_EXCLUDED (-2) /* in an excluded area: no label */

/* The place of the point's class, or one of the two above. With two classes only tumour is drawn
 * (class_map_is_plain), and its holes are undrawn. Exact, with edges as above. Thread-safe. */
int annotation_class_at(const struct annotation *annotation, double x_l0, double y_l0);

/* The same for the pixel centres of a window: bytes, with 255 for undrawn and 254 for excluded. The
 * caller owns *out [height, width, 1]. Thread-safe. */
bool annotation_class_mask(const struct annotation *annotation, double x_l0, double y_l0,
                           double step_l0, int64_t width, int64_t height, struct image *out,
                           struct err *err);

/* How many of them are of each class: counts [annotation_n_classes]. Returns the number of those
 * that are excluded; the rest is undrawn. Thread-safe. */
int64_t annotation_class_counts(const struct annotation *annotation, double x_l0, double y_l0,
                                double step_l0, int64_t width, int64_t height, int64_t *counts);
#endif
