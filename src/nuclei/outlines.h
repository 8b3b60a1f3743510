/* outlines.h: the outlines of many nuclei, as read from a file, and the label image of a window of
 * them. Level-0 px. */
#ifndef NUCLEI_OUTLINES_H
#define NUCLEI_OUTLINES_H
#include "nuclei/nuclei.h"

struct nucleus_ring {
    int64_t first, n; /* points */
};

struct nucleus_outline {
    int64_t first, n;     /* rings; a point is inside if an odd number of them is around it */
    float x0, y0, x1, y1; /* the box around its points */
    int32_t kind;         /* in kinds, or -1 */
    bool annotation;      /* QuPath calls it an annotation: maybe a region, not a nucleus */
};

struct nuclei_outlines {
    float *xy; /* [n_points, 2] */
    int64_t n_points, room_points;
    struct nucleus_ring *rings;
    int64_t n_rings, room_rings;
    struct nucleus_outline *items;
    int64_t n, room;
    char **kinds;
    int64_t n_kinds, room_kinds;
    bool centres; /* points are centres of pixels of pixel_l0, which belong to the nucleus */
    double pixel_l0;
    int64_t *by_top; /* [n]: items by y0; made by outlines_index */
    float tallest;
};
void outlines_free(struct nuclei_outlines *outlines);

/* A nucleus, then its rings, then the points of each. */
bool outlines_add(struct nuclei_outlines *outlines, bool annotation, struct err *err);
bool outlines_ring(struct nuclei_outlines *outlines, struct err *err);
bool outlines_point(struct nuclei_outlines *outlines, double x, double y, struct err *err);
/* The class of the last nucleus. */
bool outlines_kind(struct nuclei_outlines *outlines, const char *name, size_t length,
                   struct err *err);
/* Removes the last nucleus. */
void outlines_undo(struct nuclei_outlines *outlines);

/* After the last one: multiplies all points by a factor, and sorts for outlines_draw. */
bool outlines_index(struct nuclei_outlines *outlines, double factor, struct err *err);

/* px [height, width], zeroed: the item + 1 whose outline a pixel's centre is in. */
bool outlines_draw(const struct nuclei_outlines *outlines, double x_l0, double y_l0, double step_l0,
                   int64_t width, int64_t height, int32_t *px, struct err *err);

/* GeoJSON or HoVer-Net's JSON -> outlines, not indexed yet; *mag: HoVer-Net's, 0 if it has none.
 * text[size] is 0. */
bool outlines_parse(const char *text, size_t size, const char *path, struct nuclei_outlines *out,
                    double *mag, struct err *err);
#endif
