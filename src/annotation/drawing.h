/* drawing.h: the drawn regions as the format readers collect them, before they are checked and
 * merged: each has one or more rings of points, in level-0 pixels. */
#ifndef ANNOTATION_DRAWING_H
#define ANNOTATION_DRAWING_H
#include <stddef.h>
#include <stdint.h>
#include "annotation/classes.h"
#include "base/err.h"

#define DRAWING_NAME CLASS_NAME /* bytes kept of a name, with its end */
#define DRAWING_LIMIT_PX 1e8    /* no slide is that large: a coordinate beyond is a mistake */

struct file_place {
    const char *what; /* "feature", "positive region": static text; NULL: a line of the file */
    int64_t number;   /* counted from 1 */
};

struct drawn_ring {
    size_t first, n; /* points */
};

struct region {
    int meaning; /* the place of a class, or REGION_EXCLUSION */
    struct file_place place;
    size_t first, n; /* rings: the first is the outline, the others are its holes */
};

struct drawing {
    const char *path;            /* for messages; the caller's */
    const struct class_map *map; /* the caller's; NULL: only the table of names */
    double *xy;                  /* [n_points, 2] */
    size_t n_points;
    int64_t room_points;
    struct drawn_ring *rings;
    size_t n_rings;
    int64_t room_rings;
    struct region *regions;
    size_t n_regions;
    int64_t room_regions;
    bool disjoint;   /* regions are valid and overlap nowhere: they need not be merged */
    int64_t ignored; /* drawn objects that are not areas */
    char ignored_name[DRAWING_NAME]; /* of the first one */
    struct unknown_classes unknown;
    int64_t left_out;      /* regions the class map says to ignore */
    int64_t without_class; /* regions that have a meaning although they have no class */
    int64_t named;         /* regions that are of a class by name */
};

void drawing_free(struct drawing *drawing);

/* A region, then its rings, then the points of each. */
bool drawing_region(struct drawing *drawing, int meaning, struct file_place place, struct err *err);
bool drawing_ring(struct drawing *drawing, struct err *err);
bool drawing_point(struct drawing *drawing, double x_l0, double y_l0, struct err *err);

/* The meaning of a region of this class: the class's place, or an enum region_meaning. Only those
 * for which region_counts() become regions: others need not be read further, and unknown classes
 * are recorded. */
int drawing_class(struct drawing *drawing, const char *name);
/* The same if the reader knows the meaning from more than the name. */
void drawing_count_class(struct drawing *drawing, int meaning, const char *name);

/* After everything has been read: rejects classes with no known meaning, regions without a class
 * beside regions that have one, and a drawing that contains no area. */
bool drawing_check(struct drawing *drawing, struct err *err);

/* Counts an object that is not an area: points, lines, detections. */
void drawing_ignore(struct drawing *drawing, const char *name);

/* "path: line 12: " + the rest, as ERR_FORMAT. Returns false. */
bool drawing_refuse(const char *path, struct file_place place, struct err *err, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));
#endif
