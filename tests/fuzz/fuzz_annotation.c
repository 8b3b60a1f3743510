/* fuzz_annotation.c: any bytes as an annotation file: refused, or a shape on which point, count
 * and mask agree. */
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct class_map *map; /* of label images; made once */
    struct annotation_slide slide = { .name = NULL, .width_l0 = 40, .height_l0 = 32 };
    struct annotation *annotation = NULL;
    struct err err = { .kind = ERR_NONE };
    if (!map &&
        !class_map_parse("1=tumor,2=exclusion,3=ignore,=tumor,Stroma=ignore,Necrosis=ignore", &map,
                         NULL))
        abort();
    if (annotation_parse((const char *)data, size, "fuzz", &slide, map, &annotation, &err))
        fuzz_taken++, check(annotation);
    else if (err.kind == ERR_NONE)
        abort(); /* refused without a word */
    annotation_free(annotation);
    return 0;
}
