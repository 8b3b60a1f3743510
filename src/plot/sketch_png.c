/* sketch_png.c: a drawing as pixels. A line covers everything within half its width of a segment;
 * pixels at the edge are partly covered. Every item is first drawn as coverage, then blended onto
 * the picture once, so that overlapping pieces of one line do not show. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/image.h"
#include "plot/sketch.h"

#define SCALE 2.0           /* pixels per unit */
#define MOST_SIDE_PX 6000.0 /* a larger picture is drawn at scale 1 */

struct canvas {
    struct image image;
    uint8_t *cover; /* [height, width], all 0 between items */
    double scale;
    int64_t x0, y0, x1, y1; /* what the current item touched */
};

static int64_t within(double value, int64_t high)
{
    return value < 0 ? 0 : value > (double)high ? high : (int64_t)value;
}

static void touch(struct canvas *canvas, int64_t x0, int64_t y0, int64_t x1, int64_t y1)
{
    canvas->x0 = x0 < canvas->x0 ? x0 : canvas->x0;
    canvas->y0 = y0 < canvas->y0 ? y0 : canvas->y0;
    canvas->x1 = x1 > canvas->x1 ? x1 : canvas->x1;
    canvas->y1 = y1 > canvas->y1 ? y1 : canvas->y1;
}

/* In pixels; a and b may be the same. */
static void cover_segment(struct canvas *canvas, struct sketch_point a, struct sketch_point b,
                          double radius)
{
    double reach = radius + 1, dx = b.x - a.x, dy = b.y - a.y, square = dx * dx + dy * dy;
    int64_t x0 = within(fmin(a.x, b.x) - reach, canvas->image.width);
    int64_t x1 = within(fmax(a.x, b.x) + reach + 1, canvas->image.width);
    int64_t y0 = within(fmin(a.y, b.y) - reach, canvas->image.height);
    int64_t y1 = within(fmax(a.y, b.y) + reach + 1, canvas->image.height);
    for (int64_t y = y0; y < y1; y++)
        for (int64_t x = x0; x < x1; x++) {
            double px = (double)x + 0.5 - a.x, py = (double)y + 0.5 - a.y;
            double along = square > 0 ? fmin(fmax((px * dx + py * dy) / square, 0), 1) : 0;
            double away = hypot(px - along * dx, py - along * dy);
            double share = fmin(fmax(radius + 0.5 - away, 0), 1);
            uint8_t *cover = &canvas->cover[y * canvas->image.width + x];
            uint8_t value = (uint8_t)(255 * share + 0.5);
            *cover = value > *cover ? value : *cover;
        }
    touch(canvas, x0, y0, x1, y1);
}

static void cover_box(struct canvas *canvas, struct sketch_point a, struct sketch_point b)
{
    int64_t x0 = within(a.x + 0.5, canvas->image.width);
    int64_t x1 = within(b.x + 0.5, canvas->image.width);
    int64_t y0 = within(a.y + 0.5, canvas->image.height);
    int64_t y1 = within(b.y + 0.5, canvas->image.height);
    for (int64_t y = y0; y < y1 && x0 < x1; y++)
        memset(&canvas->cover[y * canvas->image.width + x0], 255, (size_t)(x1 - x0));
    touch(canvas, x0, y0, x1, y1);
}

/* Dashes and gaps of equal length, continued around corners. */
static void cover_dashes(struct canvas *canvas, struct sketch_point a, struct sketch_point b,
                         double radius, double *done)
{
    const double dash = SKETCH_DASH * canvas->scale;
    double length = hypot(b.x - a.x, b.y - a.y), at = 0;
    while (at < length) {
        double phase = fmod(*done + at, 2 * dash);
        double step = fmin(length - at, (phase < dash ? dash : 2 * dash) - phase);
        step = fmax(step, 1e-6 * dash); /* rounding must not stop progress */
        double end = fmin(at + step, length);
        if (phase < dash)
            cover_segment(canvas,
                          (struct sketch_point){ a.x + (b.x - a.x) * at / length,
                                                 a.y + (b.y - a.y) * at / length },
                          (struct sketch_point){ a.x + (b.x - a.x) * end / length,
                                                 a.y + (b.y - a.y) * end / length },
                          radius);
        at = end;
    }
    *done += length;
}

static struct sketch_point scaled(const struct canvas *canvas, struct sketch_point p)
{
    return (struct sketch_point){ p.x * canvas->scale, p.y * canvas->scale };
}

static void cover_line(struct canvas *canvas, const struct sketch_item *item)
{
    const double radius = item->width * canvas->scale / 2;
    double done = 0;
    for (size_t i = 0; i < item->n; i++) {
        struct sketch_point a = scaled(canvas, item->points[i ? i - 1 : 0]);
        struct sketch_point b = scaled(canvas, item->points[i]);
        if (item->dashed && item->n > 1)
            cover_dashes(canvas, a, b, radius, &done);
        else if (i > 0 || item->n == 1)
            cover_segment(canvas, a, b, radius);
    }
}

/* The capitals of a font are about 0.7 of its size; ours are 6 units high. */
static void cover_text(struct canvas *canvas, const struct sketch_item *item)
{
    const double size = item->width * canvas->scale, unit = 0.7 * size / 6, unit_x = 0.1 * size;
    const double radius = size * (item->bold ? 0.065 : 0.043);
    const double advance = SKETCH_LETTER * size;
    struct sketch_point at = scaled(canvas, item->points[0]);
    at.x -= sketch_text_width(item->text, size) * (int)item->anchor / 2;
    at.x += (advance - 4 * unit_x) / 2;
    for (const char *text = item->text; *text; at.x += advance) {
        const char *letter = sketch_letter(sketch_next_code(&text));
        struct sketch_point last = { 0 };
        for (bool begun = false; *letter; letter++) {
            if (*letter == ' ') {
                begun = false;
                continue;
            }
            struct sketch_point p = { at.x + (letter[0] - '0') * unit_x,
                                      at.y + (letter[1] - '6') * unit };
            letter++;
            if (begun)
                cover_segment(canvas, last, p, radius);
            last = p, begun = true;
        }
    }
}

/* Blends the colour where there is coverage, and clears the coverage. */
static void lay(struct canvas *canvas, uint32_t colour)
{
    const int rgb[3] = { colour >> 16 & 255, colour >> 8 & 255, colour & 255 };
    for (int64_t y = canvas->y0; y < canvas->y1; y++)
        for (int64_t x = canvas->x0; x < canvas->x1; x++) {
            uint8_t *cover = &canvas->cover[y * canvas->image.width + x];
            uint8_t *px = image_at(&canvas->image, x, y);
            for (int c = 0; c < 3; c++)
                px[c] = (uint8_t)((px[c] * (255 - *cover) + rgb[c] * *cover + 127) / 255);
            *cover = 0;
        }
}

bool sketch_paint(const struct sketch *sketch, double scale, struct image *onto, struct err *err)
{
    struct canvas canvas = { .image = *onto, .scale = scale };
    canvas.cover = calloc((size_t)onto->width, (size_t)onto->height);
    if (sketch->failed || !canvas.cover) {
        free(canvas.cover);
        return err_memory(err, "a drawing");
    }
    for (size_t i = 0; i < sketch->n; i++) {
        const struct sketch_item *item = &sketch->items[i];
        canvas.x0 = onto->width, canvas.y0 = onto->height, canvas.x1 = canvas.y1 = 0;
        if (item->kind == SKETCH_LINE)
            cover_line(&canvas, item);
        else if (item->kind == SKETCH_BOX)
            cover_box(&canvas, scaled(&canvas, item->points[0]), scaled(&canvas, item->points[1]));
        else
            cover_text(&canvas, item);
        lay(&canvas, item->colour);
    }
    free(canvas.cover);
    return true;
}

bool sketch_write_png(const struct sketch *sketch, const char *path, struct err *err)
{
    struct image image;
    double scale = fmax(sketch->width, sketch->height) * SCALE > MOST_SIDE_PX ? 1 : SCALE;
    if (!image_new(&image, (int64_t)(sketch->width * scale), (int64_t)(sketch->height * scale), 3,
                   err))
        return err_prefix(err, path);
    memset(image.px, 255, image_bytes(&image));
    bool ok = sketch_paint(sketch, scale, &image, err) || err_prefix(err, path);
    ok = ok && image_write_png(path, &image, err);
    image_free(&image);
    return ok;
}
