/* sketch.h: a small drawing of lines, boxes and text, written as SVG or PNG. Units are SVG pixels,
 * y downwards. Later items are on top. */
#ifndef PLOT_SKETCH_H
#define PLOT_SKETCH_H
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

#define SKETCH_DASH 6.0   /* length of a dash and of its gap */
#define SKETCH_LETTER 0.6 /* width of a letter, relative to the text size */

struct sketch_point {
    double x, y;
};

enum sketch_kind { SKETCH_LINE, SKETCH_BOX, SKETCH_TEXT };
enum sketch_anchor { SKETCH_LEFT, SKETCH_MIDDLE, SKETCH_RIGHT }; /* the part of a text at x */

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
    bool failed; /* out of memory: writing reports it */
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
/* The colour of a cell in a table: from a grey of this brightness (share 0) to the blue of the
 * curves (share 1). */
uint32_t sketch_tint(double brightness, double share);
/* y is the baseline. Texts longer than most_letters (0: any) end with "..". */
void sketch_text(struct sketch *sketch, double x, double y, enum sketch_anchor anchor, double size,
                 bool bold, uint32_t colour, const char *text, int most_letters);
double sketch_text_width(const char *text, double size);

/* Written beside and renamed. In a PNG letters beyond ASCII are shown as boxes. */
bool sketch_write_svg(const struct sketch *sketch, const char *path, struct err *err);
bool sketch_write_png(const struct sketch *sketch, const char *path, struct err *err);

/* Draws over an existing image, at `scale` pixels per unit. */
struct image;
bool sketch_paint(const struct sketch *sketch, double scale, struct image *onto, struct err *err);

/* Letters as lines: pairs of digits x (0..4) and y (0 top, 6 baseline, 8 below), a space between
 * two lines. "" for a space; a box for characters without a letter. */
const char *sketch_letter(uint32_t code);
/* The next code point of UTF-8 text, and *text moved past it; 0xFFFD for an invalid byte. */
uint32_t sketch_next_code(const char **text);
#endif
