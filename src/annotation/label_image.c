/* label_image.c: a PNG with one number per pixel -> regions. The number is the name of the class,
 * and 0 means that nobody drew there. The image is as large as the slide, or smaller or larger by
 * one factor in both directions. Rows are traced as they are read, each class separately and only
 * where it is present, so the memory is that of the outlines. */
#include "annotation/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "annotation/raster_shape.h"
#include "base/png_labels.h"

#define MOST_LABEL 65535
#define MOST_CLASSES 1024 /* more are numbered objects rather than classes */

/* One number of the image. */
struct label {
    uint16_t number;
    bool traced;                   /* false: only its presence counts */
    struct raster_shape shape;     /* y0: the row at which the tracer began */
    struct outline_tracer *tracer; /* NULL: not in the row before */
    uint8_t *mask;                 /* [width]: not 0 in this row */
    int64_t last_row;              /* in which it was seen */
};

struct reading {
    const struct parsed_file *file;
    struct drawing *drawing;
    double scale;
    int64_t width;
    struct label *labels[MOST_CLASSES];
    size_t n;
    int16_t *place_of; /* [MOST_LABEL + 1]: place in labels, or -1 */
};

static bool claims(const struct parsed_file *file)
{
    return png_labels_claims(file->text, file->size);
}

static bool begin(void *arg, int64_t width, int64_t height, struct err *err)
{
    struct reading *reading = arg;
    const struct parsed_file *file = reading->file;
    reading->width = width;
    if (file->slide.width_l0 <= 0 && !file->classes_only)
        return err_set(err, ERR_MISSING,
                       "%s: the size of the slide is unknown, so this label image cannot be placed "
                       "on it",
                       file->path);
    return raster_scale(file->path, width, height, &file->slide, &reading->scale, err);
}

static struct label *add_label(struct reading *reading, uint16_t number, struct err *err)
{
    if (reading->n == MOST_CLASSES) {
        err_set(err, ERR_FORMAT,
                "%s: more than %d different numbers; in a label image each number is a class, not "
                "an object",
                reading->file->path, MOST_CLASSES);
        return NULL;
    }
    struct label *label = calloc(1, sizeof *label);
    uint8_t *mask = calloc(1, (size_t)reading->width);
    if (!label || !mask) {
        err_memory(err, reading->file->path);
        free(label);
        free(mask);
        return NULL;
    }
    *label = (struct label){ .number = number,
                             .mask = mask,
                             .last_row = -1,
                             .shape = { .drawing = reading->drawing,
                                        .place = { "class", number },
                                        .scale = reading->scale } };
    char name[8];
    snprintf(name, sizeof name, "%u", (unsigned)number);
    label->shape.meaning = drawing_class(reading->drawing, name);
    label->traced = region_counts(label->shape.meaning) && !reading->file->classes_only;
    reading->place_of[number] = (int16_t)reading->n;
    reading->labels[reading->n++] = label;
    return label;
}

/* Marks where each number is in the row. */
static bool mark(struct reading *reading, int64_t y, const uint16_t *row, struct err *err)
{
    for (int64_t x = 0, end; x < reading->width; x = end) {
        uint16_t number = row[x];
        for (end = x + 1; end < reading->width && row[end] == number;)
            end++;
        if (number == 0)
            continue;
        int16_t place = reading->place_of[number];
        struct label *label = place >= 0 ? reading->labels[place] : add_label(reading, number, err);
        if (!label)
            return false;
        label->last_row = y;
        if (label->traced)
            memset(label->mask + x, 1, (size_t)(end - x));
    }
    return true;
}

static bool finish(struct label *label, struct err *err)
{
    bool ok = outline_tracer_end(label->tracer, err);
    outline_tracer_free(label->tracer);
    label->tracer = NULL;
    return ok;
}

static bool trace(struct reading *reading, struct label *label, int64_t y, struct err *err)
{
    if (label->last_row < y)
        return !label->tracer || finish(label, err);
    if (!label->tracer) {
        label->shape.y0 = y;
        if (!outline_tracer_new((int32_t)reading->width, RASTER_MOST_POINTS, raster_shape_take,
                                &label->shape, &label->tracer, err))
            return false;
    }
    bool ok = outline_tracer_row(label->tracer, label->mask, NULL, err);
    if (!ok && outline_tracer_full(label->tracer))
        err_set(err, ERR_FORMAT,
                "%s: class %u: its outlines have more than %d corners; smooth the image or make it "
                "smaller",
                reading->file->path, (unsigned)label->number, RASTER_MOST_POINTS);
    memset(label->mask, 0, (size_t)reading->width);
    return ok;
}

static bool take_row(void *arg, int64_t y, const uint16_t *row, struct err *err)
{
    struct reading *reading = arg;
    bool ok = mark(reading, y, row, err);
    for (size_t i = 0; ok && i < reading->n; i++)
        ok = !reading->labels[i]->traced || trace(reading, reading->labels[i], y, err);
    return ok;
}

static void reading_free(struct reading *reading)
{
    for (size_t i = 0; i < reading->n; i++) {
        outline_tracer_free(reading->labels[i]->tracer);
        free(reading->labels[i]->mask);
        free(reading->labels[i]);
    }
    free(reading->place_of);
}

static bool read_labels(const struct parsed_file *file, struct drawing *drawing, struct err *err)
{
    struct reading reading = { .file = file, .drawing = drawing };
    struct png_labels_taker taker = { begin, take_row, &reading };
    reading.place_of = malloc((MOST_LABEL + 1) * sizeof *reading.place_of);
    bool ok = reading.place_of || err_memory(err, file->path);
    if (ok)
        memset(reading.place_of, -1, (MOST_LABEL + 1) * sizeof *reading.place_of);
    drawing->disjoint = true; /* every pixel has one number */
    ok = ok && png_labels_read(file->text, file->size, file->path, &taker, err);
    for (size_t i = 0; ok && i < reading.n; i++)
        ok = !reading.labels[i]->tracer || finish(reading.labels[i], err);
    reading_free(&reading);
    return ok;
}

const struct format format_labels = { "label image", claims, read_labels };
