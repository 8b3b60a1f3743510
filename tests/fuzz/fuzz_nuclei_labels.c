/* fuzz_nuclei_labels.c: any bytes as outlines of nuclei: refused, or label images that are numbered
 * from 1 without gaps, of which a part shows what the whole shows. */
#include <stdlib.h>
#include "nuclei/labels_in.h"
#include "tests/fuzz/fuzz.h"

#define SIDE 24

static struct nuclei_labels window(const struct nuclei_source *source, double x, double y,
                                   int64_t width, int64_t height)
{
    struct nuclei_labels labels;
    if (!nuclei_source_window(source, x, y, 1.5, width, height, &labels, NULL, NULL))
        abort();
    int32_t seen = 0;
    for (int64_t i = 0; i < width * height; i++) {
        if (labels.labels[i] < 0 || labels.labels[i] > seen + 1)
            abort();
        seen += labels.labels[i] == seen + 1;
    }
    if (seen != labels.n)
        abort();
    return labels;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nuclei_source_slide slide = { .width_l0 = 40, .height_l0 = 40, .objective = 40 };
    struct nuclei_source *source = NULL;
    struct err err = { .kind = ERR_NONE };
    if (!nuclei_source_parse((const char *)data, size, "fuzz", &slide, &source, &err)) {
        if (err.kind == ERR_NONE)
            abort(); /* refused without a word */
        return 0;
    }
    fuzz_taken++;
    for (int64_t i = 0; i < nuclei_source_count(source); i++)
        if (!nuclei_source_kind(source, i))
            abort();
    struct nuclei_labels whole = window(source, -3, -3, SIDE, SIDE);
    struct nuclei_labels part = window(source, 3, 0, SIDE - 4, SIDE - 2);
    for (int64_t y = 0; y < part.height; y++)
        for (int64_t x = 0; x < part.width; x++)
            if ((part.labels[y * part.width + x] != 0) !=
                (whole.labels[(y + 2) * SIDE + x + 4] != 0))
                abort();
    nuclei_labels_free(&whole);
    nuclei_labels_free(&part);
    nuclei_source_free(source);
    return 0;
}
