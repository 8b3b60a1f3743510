/* phantom_draw.h: a scene -> the pixels of any rectangle of the slide. */
#ifndef PHANTOM_PHANTOM_DRAW_H
#define PHANTOM_PHANTOM_DRAW_H
#include "base/err.h"
#include "phantom/phantom_scene.h"

struct phantom_painter;

enum { PHANTOM_TILE_PX = 256 };

/* The caller owns *out; free with phantom_painter_free. Supports `workers` threads. */
bool phantom_painter_new(int workers, struct phantom_painter **out, struct err *err);
void phantom_painter_free(struct phantom_painter *painter); /* NULL-safe */

/* Which slide to draw from now on. The scene must outlive the drawing. */
void phantom_painter_use(struct phantom_painter *painter, const struct phantom_scene *scene);

/* Of the slide being drawn: its width and height in px, and the grey values of its glass [3]. */
int64_t phantom_painter_size(const struct phantom_painter *painter);
const float *phantom_painter_glass(const struct phantom_painter *painter);

/* px [height, width, 3], rows stride_bytes apart; sides at most PHANTOM_TILE_PX. Thread-safe if
 * each thread has its own worker number. */
void phantom_paint(struct phantom_painter *painter, int64_t x, int64_t y, int64_t width,
                   int64_t height, uint8_t *px, int64_t stride_bytes, int worker);
#endif
