/* drawing.h: what was drawn, as the readers of the formats collect it, before it is checked and
 * merged: regions of one or more rings of points, in level-0 pixels. */
#ifndef ANNOTATION_DRAWING_H
#define ANNOTATION_DRAWING_H
#include <stddef.h>
#include <stdint.h>
#include "annotation/classes.h"
#include "base/err.h"

#define DRAWING_NAME 64      /* bytes kept of a name, with its end */
#define DRAWING_LIMIT_PX 1e8 /* no slide is that large: a coordinate beyond is a mistake */

struct place {
    const char *what; /* "feature", "positive region": static text; NULL: a line of the file */
    int64_t number;   /* counted from 1 */
};

struct ring {
    size_t first, n; /* points */
};

struct region {
    enum region_class meaning; /* never REGION_OTHER */
    struct place place;
    size_t first, n; /* rings: the first is the outline, the others are its holes */
};

struct drawing {
    const char *path; /* for messages; the caller's */
    double *xy;       /* [n_points, 2] */
    size_t n_points;
    int64_t room_points;
    struct ring *rings;
    size_t n_rings;
    int64_t room_rings;
    struct region *regions;
    size_t n_regions;
    int64_t room_regions;
    int64_t ignored;
    char ignored_name[DRAWING_NAME]; /* of the first one */
};

void drawing_free(struct drawing *drawing);

/* A region, then its rings, then the points of each. */
bool drawing_region(struct drawing *drawing, enum region_class meaning, struct place place,
                    struct err *err);
bool drawing_ring(struct drawing *drawing, struct err *err);
bool drawing_point(struct drawing *drawing, double x_l0, double y_l0, struct err *err);

/* Counts something that is no region of ours. */
void drawing_ignore(struct drawing *drawing, const char *name);

/* "path: line 12: " + the rest, as ERR_FORMAT. Returns false. */
bool drawing_refuse(const char *path, struct place place, struct err *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
#endif
