/* sketch.h: a small drawing of lines, boxes and words, written as SVG or PNG alike. Units are SVG
 * pixels, y downwards. What is drawn later lies above. */
#ifndef PLOT_SKETCH_H
#define PLOT_SKETCH_H
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

#define SKETCH_DASH 6.0   /* length of a dash and of its gap */
#define SKETCH_LETTER 0.6 /* width of a letter, in sizes of the text */

struct sketch_point {
    double x, y;
};

enum sketch_kind { SKETCH_LINE, SKETCH_BOX, SKETCH_TEXT };
enum sketch_anchor { SKETCH_LEFT, SKETCH_MIDDLE, SKETCH_RIGHT }; /* what of the text is at x */

/* For the writers; made by the functions below. */
struct sketch_item {
    enum sketch_kind kind;
    uint32_t colour; /* 0xRRGGBB */
    double width;    /* of a line; size of a text */
    bool dashed, bold;
    enum sketch_anchor anchor;
    struct sketch_point *points; /* a line's [n]; a box's two corners; where a text is */
    size_t n;
    char *text;
};

struct sketch {
    double width, height;
    struct sketch_item *items;
    size_t n, room;
    bool failed; /* no memory: writing says so */
};

struct sketch sketch_new(double width, double height);
void sketch_free(struct sketch *sketch);

/* Through all points; one point is a dot. */
void sketch_line(struct sketch *sketch, const struct sketch_point *points, size_t n,
                 uint32_t colour, double width, bool dashed);
void sketch_segment(struct sketch *sketch, double x0, double y0, double x1, double y1,
                    uint32_t colour, double width, bool dashed);
void sketch_box(struct sketch *sketch, double x, double y, double width, double height,
                uint32_t colour);
/* y is the line the letters stand on. Longer texts than most_letters (0: any) end with "..". */
void sketch_text(struct sketch *sketch, double x, double y, enum sketch_anchor anchor, double size,
                 bool bold, uint32_t colour, const char *text, int most_letters);
double sketch_text_width(const char *text, double size);

/* Written beside and renamed. In a PNG letters beyond ASCII are shown as boxes. */
bool sketch_write_svg(const struct sketch *sketch, const char *path, struct err *err);
bool sketch_write_png(const struct sketch *sketch, const char *path, struct err *err);

/* Draws over an image that is there, at `scale` pixels a unit. */
struct image;
bool sketch_paint(const struct sketch *sketch, double scale, struct image *onto, struct err *err);

/* Letters as lines: pairs of digits x (0..4) and y (0 top, 6 where letters stand, 8 below), a space
 * between two lines. "" for a space; a box for what there is no letter for. */
const char *sketch_letter(uint32_t code);
/* The next code point of UTF-8 text, and *text moved past it; 0xFFFD for a byte that is none. */
uint32_t sketch_next_code(const char **text);
#endif
