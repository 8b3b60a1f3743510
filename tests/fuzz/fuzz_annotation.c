/* fuzz_annotation.c: any bytes as an annotation file, with two classes and with four: refused, or
 * shapes on which point, count and mask agree. */
#include <stdlib.h>
#include "annotation/annotation.h"
#include "tests/fuzz/fuzz.h"

#define SIDE 24

static void check(const struct annotation *annotation)
{
    double x0, y0, x1, y1;
    if (!annotation_bounds(annotation, &x0, &y0, &x1, &y1))
        return;
    double step = (x1 - x0 > y1 - y0 ? x1 - x0 : y1 - y0) / (SIDE - 4);
    double x = x0 - 2 * step, y = y0 - 2 * step;
    struct image mask;
    int64_t inside = 0;
    if (!(step > 0) || !annotation_mask(annotation, x, y, step, SIDE, SIDE, &mask, NULL))
        abort();
    for (int64_t j = 0; j < SIDE; j++)
        for (int64_t i = 0; i < SIDE; i++) {
            bool in = annotation_contains(annotation, x + ((double)i + 0.5) * step,
                                          y + ((double)j + 0.5) * step);
            if (in != (*image_at(&mask, i, j) == 255))
                abort();
            inside += in;
        }
    if (inside != annotation_count(annotation, x, y, step, SIDE, SIDE))
        abort();
    image_free(&mask);
}

/* The same for every class. */
static void check_classes(const struct annotation *annotation)
{
    double x0, y0, x1, y1;
    if (!annotation_bounds(annotation, &x0, &y0, &x1, &y1))
        return;
    double step = (x1 - x0 > y1 - y0 ? x1 - x0 : y1 - y0) / (SIDE - 4);
    double x = x0 - 2 * step, y = y0 - 2 * step;
    int64_t counts[CLASS_MOST], found[256] = { 0 };
    struct image mask;
    if (!annotation_class_mask(annotation, x, y, step, SIDE, SIDE, &mask, NULL))
        abort();
    for (int64_t j = 0; j < SIDE; j++)
        for (int64_t i = 0; i < SIDE; i++) {
            int class = annotation_class_at(annotation, x + ((double)i + 0.5) * step,
                                            y + ((double)j + 0.5) * step);
            int label = class == ANNOTATION_UNDRAWN    ? 255
                        : class == ANNOTATION_EXCLUDED ? 254
                                                       : class;
            if (label != *image_at(&mask, i, j))
                abort();
            found[label]++;
        }
    if (annotation_class_counts(annotation, x, y, step, SIDE, SIDE, counts) != found[254])
        abort();
    for (int c = 0; c < annotation_n_classes(annotation); c++)
        if (counts[c] != found[c])
            abort();
    image_free(&mask);
}

static void try_map(const uint8_t *data, size_t size, const char *text, struct class_map **map)
{
    struct annotation_slide slide = { .name = NULL, .width_l0 = 40, .height_l0 = 32 };
    struct annotation *annotation = NULL;
    struct err err = { .kind = ERR_NONE };
    if (!*map && !class_map_parse(text, map, NULL))
        abort();
    if (annotation_parse((const char *)data, size, "fuzz", &slide, *map, &annotation, &err))
        fuzz_taken++, check(annotation), check_classes(annotation);
    else if (err.kind == ERR_NONE)
        abort(); /* refused without a word */
    annotation_free(annotation);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct class_map *two, *four; /* made once */
    try_map(data, size, "1=tumor,2=exclusion,3=ignore,=tumor,Stroma=ignore,Necrosis=ignore", &two);
    try_map(data, size, "1=tumor,2=a,3=exclusion,=b,Stroma=a,Necrosis=c,normal=c", &four);
    return 0;
}
