/* labels_in.c: see labels_in.h. */
#include "nuclei/labels_in.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "annotation/raster_shape.h"
#include "base/array.h"
#include "base/file.h"
#include "base/label_image.h"
#include "base/png_labels.h"
#include "base/text.h"
#include "nuclei/outlines.h"

#define MOST_TEXT ((size_t)4 << 30)

struct nuclei_source {
    struct label_image image; /* px 0: outlines instead; else numbers from 1 to n_labels */
    int64_t n_labels;
    double scale; /* level-0 px per px of the image */
    struct nuclei_outlines outlines;
};

void nuclei_source_free(struct nuclei_source *source)
{
    if (!source)
        return;
    label_image_free(&source->image);
    outlines_free(&source->outlines);
    free(source);
}

int64_t nuclei_source_count(const struct nuclei_source *source)
{
    return source->image.px ? source->n_labels : source->outlines.n;
}

const char *nuclei_source_kind(const struct nuclei_source *source, int64_t nucleus)
{
    int32_t kind = source->image.px ? -1 : source->outlines.items[nucleus].kind;
    return kind < 0 ? "" : source->outlines.kinds[kind];
}

static int compare_labels(const void *a, const void *b)
{
    int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
    return i < j ? -1 : i > j;
}

/* The numbers of the image, each once, in order: its runs, sorted. */
static bool list_labels(const struct label_image *image, int32_t **out, int64_t *n, struct err *err)
{
    int64_t room = 0, found = 0;
    int32_t before = 0;
    *out = NULL, *n = 0;
    for (int64_t i = 0; i < image->width * image->height; i++) {
        if (image->px[i] != before && image->px[i] != 0) {
            if (!array_grow(out, &room, found + 1, sizeof **out, "the labels", err))
                return false;
            (*out)[found++] = image->px[i];
        }
        before = image->px[i];
    }
    if (found > 1)
        qsort(*out, (size_t)found, sizeof **out, compare_labels);
    for (int64_t i = 0; i < found; i++)
        if (i == 0 || (*out)[i] != (*out)[i - 1])
            (*out)[(*n)++] = (*out)[i];
    return true;
}

/* Replaces the numbers by their places, from 1, so that a few large ones need no more room than as
 * many small ones. */
static bool number_labels(struct nuclei_source *source, struct err *err)
{
    struct label_image *image = &source->image;
    int32_t *labels = NULL, before = 0, place = 0;
    bool ok = list_labels(image, &labels, &source->n_labels, err);
    for (int64_t i = 0; ok && i < image->width * image->height; i++) {
        if (image->px[i] != before) {
            before = image->px[i];
            const int32_t *at = before == 0 ? NULL
                                            : bsearch(&before, labels, (size_t)source->n_labels,
                                                      sizeof *labels, compare_labels);
            place = at ? (int32_t)(at - labels) + 1 : 0;
        }
        image->px[i] = place;
    }
    free(labels);
    return ok;
}

static bool open_image(const char *path, const struct nuclei_source_slide *slide,
                       struct nuclei_source *source, struct err *err)
{
    struct annotation_slide size = { .width_l0 = slide->width_l0, .height_l0 = slide->height_l0 };
    return label_image_read(path, &source->image, err) &&
           raster_scale(path, source->image.width, source->image.height, &size, &source->scale,
                        err) &&
           number_labels(source, err);
}

static bool parse_outlines(const char *text, size_t size, const char *path,
                           const struct nuclei_source_slide *slide, struct nuclei_source *source,
                           struct err *err)
{
    double mag = 0;
    if (!outlines_parse(text, size, path, &source->outlines, &mag, err))
        return false;
    double factor = mag > 0 && slide->objective > 0 ? slide->objective / mag : 1;
    return outlines_index(&source->outlines, factor, err);
}

/* Takes over the result if it is complete. */
static bool give(struct nuclei_source *source, bool ok, struct nuclei_source **out)
{
    if (!ok) {
        nuclei_source_free(source);
        source = NULL;
    }
    *out = source;
    return ok;
}

bool nuclei_source_parse(const char *text, size_t size, const char *path,
                         const struct nuclei_source_slide *slide, struct nuclei_source **out,
                         struct err *err)
{
    struct nuclei_source *source = calloc(1, sizeof *source);
    char *copy = text_format("%.*s", (int)size, text); /* ends at a 0 byte, if there is one */
    bool ok = (source && copy) || err_memory(err, path);
    ok = ok && parse_outlines(copy, strlen(copy), path, slide, source, err);
    free(copy);
    return give(source, ok, out);
}

/* Label images are known by their first bytes; everything else must be JSON. */
static bool is_image(const char *path, bool *image, struct err *err)
{
    unsigned char head[8] = { 0 };
    FILE *stream = fopen(path, "rb");
    if (!stream)
        return err_errno(err, path, "open");
    size_t n = fread(head, 1, sizeof head, stream);
    fclose(stream);
    *image = png_labels_claims(head, n) || (n >= 6 && memcmp(head, "\x93NUMPY", 6) == 0);
    return true;
}

bool nuclei_source_open(const char *path, const struct nuclei_source_slide *slide,
                        struct nuclei_source **out, struct err *err)
{
    struct nuclei_source *source = calloc(1, sizeof *source);
    char *text = NULL;
    size_t size = 0;
    bool image = false;
    bool ok = (source || err_memory(err, path)) && is_image(path, &image, err);
    if (ok && image)
        ok = open_image(path, slide, source, err);
    else if (ok)
        ok = file_read(path, MOST_TEXT, &text, &size, err) &&
             parse_outlines(text, size, path, slide, source, err);
    free(text);
    return give(source, ok, out);
}

/* The nearest pixel of the label image under each pixel of the window. */
static void copy_window(const struct nuclei_source *source, double x_l0, double y_l0,
                        double step_l0, struct nuclei_labels *out)
{
    const struct label_image *image = &source->image;
    for (int64_t j = 0; j < out->height; j++) {
        double y = floor((y_l0 + ((double)j + 0.5) * step_l0) / source->scale);
        if (y < 0 || y >= (double)image->height)
            continue;
        const int32_t *row = image->px + (int64_t)y * image->width;
        for (int64_t i = 0; i < out->width; i++) {
            double x = floor((x_l0 + ((double)i + 0.5) * step_l0) / source->scale);
            if (x >= 0 && x < (double)image->width)
                out->labels[j * out->width + i] = row[(int64_t)x];
        }
    }
}

/* Numbers from 1 in the order of their first pixels; nuclei [n]: what they were, from 0. */
static bool renumber(int64_t n_numbers, struct nuclei_labels *out, int64_t **nuclei,
                     struct err *err)
{
    int32_t *now = calloc((size_t)n_numbers + 1, sizeof *now);
    int64_t room = 0, *were = NULL;
    bool ok = now || err_memory(err, "the labels");
    for (int64_t i = 0; ok && i < out->width * out->height; i++) {
        int32_t was = out->labels[i];
        if (was > 0 && now[was] == 0) {
            ok = array_grow(&were, &room, out->n + 1, sizeof *were, "the labels", err);
            if (ok)
                were[out->n] = was - 1, now[was] = ++out->n;
        }
        out->labels[i] = was > 0 && ok ? now[was] : 0;
    }
    free(now);
    if (ok && nuclei)
        *nuclei = were;
    else
        free(were);
    return ok;
}

bool nuclei_source_window(const struct nuclei_source *source, double x_l0, double y_l0,
                          double step_l0, int64_t width, int64_t height, struct nuclei_labels *out,
                          int64_t **nuclei, struct err *err)
{
    *out = (struct nuclei_labels){ .width = width, .height = height };
    out->labels = calloc((size_t)(width * height), sizeof *out->labels);
    if (nuclei)
        *nuclei = NULL;
    bool ok = out->labels || err_memory(err, "the labels");
    if (ok && source->image.px)
        copy_window(source, x_l0, y_l0, step_l0, out);
    else if (ok)
        ok = outlines_draw(&source->outlines, x_l0, y_l0, step_l0, width, height, out->labels, err);
    ok = ok && renumber(nuclei_source_count(source), out, nuclei, err);
    if (!ok)
        nuclei_labels_free(out);
    return ok;
}

bool nuclei_source_find(const char *folder, const char *name, char **path, struct err *err)
{
    static const char *const endings[] = { "_labels.png", "_labels.npy", "_nuclei.geojson",
                                           ".geojson",    ".json",       ".npy",
                                           ".png" };
    *path = NULL;
    for (size_t i = 0; !*path && i < sizeof endings / sizeof *endings; i++) {
        *path = text_format("%s/%s%s", folder, name, endings[i]);
        if (!*path)
            return err_memory(err, "file names");
        if (!file_exists(*path))
            free(*path), *path = NULL;
    }
    return *path || err_set(err, ERR_MISSING,
                            "%s: no nuclei of %s in this folder; expected %s_labels.png, "
                            "%s_labels.npy, %s_nuclei.geojson, or %s.geojson, .json, .npy or .png",
                            folder, name, name, name, name, name);
}
