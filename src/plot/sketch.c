/* sketch.c: the items of a drawing, and the drawing as SVG. */
#include "plot/sketch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/text.h"

struct sketch sketch_new(double width, double height)
{
    return (struct sketch){ .width = width, .height = height };
}

void sketch_free(struct sketch *sketch)
{
    for (size_t i = 0; i < sketch->n; i++)
        free(sketch->items[i].points), free(sketch->items[i].text);
    free(sketch->items);
    *sketch = (struct sketch){ 0 };
}

/* Copies the points. The sketch takes ownership of text, even on failure. */
static void add(struct sketch *sketch, struct sketch_item item, const struct sketch_point *points,
                size_t n)
{
    if (sketch->n == sketch->room) {
        size_t room = sketch->room ? 2 * sketch->room : 64;
        struct sketch_item *items = reallocarray(sketch->items, room, sizeof *items);
        if (items)
            sketch->items = items, sketch->room = room;
    }
    item.points = reallocarray(NULL, n + 1, sizeof *points);
    if (sketch->n == sketch->room || !item.points) {
        sketch->failed = true;
        free(item.points), free(item.text);
        return;
    }
    memcpy(item.points, points, n * sizeof *points);
    item.n = n;
    sketch->items[sketch->n++] = item;
}

void sketch_line(struct sketch *sketch, const struct sketch_point *points, size_t n,
                 uint32_t colour, double width, bool dashed)
{
    struct sketch_item item = {
        .kind = SKETCH_LINE, .colour = colour, .width = width, .dashed = dashed
    };
    add(sketch, item, points, n);
}

void sketch_segment(struct sketch *sketch, double x0, double y0, double x1, double y1,
                    uint32_t colour, double width, bool dashed)
{
    struct sketch_point points[] = { { x0, y0 }, { x1, y1 } };
    sketch_line(sketch, points, 2, colour, width, dashed);
}

void sketch_box(struct sketch *sketch, double x, double y, double width, double height,
                uint32_t colour)
{
    struct sketch_point corners[] = { { x, y }, { x + width, y + height } };
    add(sketch, (struct sketch_item){ .kind = SKETCH_BOX, .colour = colour }, corners, 2);
}

uint32_t sketch_tint(double brightness, double share)
{
    static const double full[3] = { 0x00, 0x72, 0xb2 };
    uint32_t colour = 0;
    for (int c = 0; c < 3; c++)
        colour = colour << 8 | (uint32_t)lrint(brightness + (full[c] - brightness) * share);
    return colour;
}

static int count_letters(const char *text)
{
    int n = 0;
    for (; *text; n++)
        sketch_next_code(&text);
    return n;
}

static char *shortened(const char *text, int most_letters)
{
    if (most_letters <= 0 || count_letters(text) <= most_letters)
        return strdup(text);
    const char *end = text;
    for (int i = 0; i < most_letters - 2; i++)
        sketch_next_code(&end);
    return text_format("%.*s..", (int)(end - text), text);
}

void sketch_text(struct sketch *sketch, double x, double y, enum sketch_anchor anchor, double size,
                 bool bold, uint32_t colour, const char *text, int most_letters)
{
    struct sketch_item item = {
        .kind = SKETCH_TEXT, .colour = colour, .width = size, .bold = bold, .anchor = anchor
    };
    item.text = shortened(text, most_letters);
    if (!item.text) {
        sketch->failed = true;
        return;
    }
    add(sketch, item, &(struct sketch_point){ x, y }, 1);
}

double sketch_text_width(const char *text, double size)
{
    return count_letters(text) * SKETCH_LETTER * size;
}

/* Text as XML allows it: markup escaped, control characters and broken UTF-8 replaced. */
static void write_escaped(FILE *stream, const char *text)
{
    while (*text) {
        const char *begin = text;
        uint32_t code = sketch_next_code(&text);
        if (code == '<' || code == '>' || code == '&' || code == '"')
            fprintf(stream, "&#%u;", code);
        else if (code < 0x20 || code == 0xFFFD || code == 0xFFFE || code == 0xFFFF)
            fputc('?', stream);
        else
            fwrite(begin, 1, (size_t)(text - begin), stream);
    }
}

static void write_line(FILE *stream, const struct sketch_item *item)
{
    fprintf(stream, "<polyline stroke=\"#%06x\" stroke-width=\"%.2f\"", item->colour, item->width);
    if (item->dashed)
        fprintf(stream, " stroke-dasharray=\"%g\"", SKETCH_DASH);
    fputs(" points=\"", stream);
    for (size_t i = 0; i < item->n; i++)
        fprintf(stream, "%s%.2f,%.2f", i ? " " : "", item->points[i].x, item->points[i].y);
    fputs("\"/>\n", stream);
}

static void write_item(FILE *stream, const struct sketch_item *item)
{
    static const char *const anchors[] = { "start", "middle", "end" };
    const struct sketch_point *p = item->points;
    if (item->kind == SKETCH_LINE && item->n == 1) {
        fprintf(stream, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%.2f\" fill=\"#%06x\"/>\n", p->x, p->y,
                item->width / 2, item->colour);
    } else if (item->kind == SKETCH_LINE) {
        write_line(stream, item);
    } else if (item->kind == SKETCH_BOX) {
        fprintf(stream,
                "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"#%06x\"/>\n",
                p[0].x, p[0].y, p[1].x - p[0].x, p[1].y - p[0].y, item->colour);
    } else {
        fprintf(stream,
                "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%g\" text-anchor=\"%s\" fill=\"#%06x\"%s>",
                p->x, p->y, item->width, anchors[item->anchor], item->colour,
                item->bold ? " font-weight=\"bold\"" : "");
        write_escaped(stream, item->text);
        fputs("</text>\n", stream);
    }
}

bool sketch_write_svg(const struct sketch *sketch, const char *path, struct err *err)
{
    struct file_out out = { 0 };
    if (sketch->failed)
        return err_memory(err, path);
    if (!file_out_open(&out, path, err))
        return false;
    fprintf(out.stream,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
            "viewBox=\"0 0 %.0f %.0f\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"
            "<g fill=\"none\" stroke-linecap=\"round\" stroke-linejoin=\"round\" "
            "font-family=\"Helvetica, Arial, sans-serif\">\n",
            sketch->width, sketch->height, sketch->width, sketch->height);
    for (size_t i = 0; i < sketch->n; i++)
        write_item(out.stream, &sketch->items[i]);
    fputs("</g>\n</svg>\n", out.stream);
    return file_out_commit(&out, err);
}
