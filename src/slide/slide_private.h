/* slide_private.h: the members of struct slide, for the files in this folder. */
#ifndef SLIDE_SLIDE_PRIVATE_H
#define SLIDE_SLIDE_PRIVATE_H
#include <openslide/openslide.h>
#include "slide/slide.h"
#include "slide/tiff_file.h"

struct slide {
    struct slide_info info;
    char *path, *name;
    openslide_t *handle; /* read from many threads; an error on it stays (see slide_paint) */
    struct slide_level *levels;
    struct tiff_file *tiff; /* NULL: the file has no fast path */
    /* [n_levels]: the TIFF directory of each level that OpenSlide does not read; else NULL */
    const struct tiff_directory **directories;
};

/* Reads pixels of a level through OpenSlide to rgb [height, width, 3] (rows stride_bytes apart)
 * over white; argb [height, width] is scratch. Each read succeeds or fails on its own, although an
 * error stays on an OpenSlide handle: after one, each read uses a separate handle. At most
 * SLIDE_PAINT_MAX_PX wide and high. Thread-safe. */
#define SLIDE_PAINT_MAX_PX 4096
bool slide_paint(struct slide *slide, int level, int64_t x, int64_t y, int64_t width,
                 int64_t height, uint32_t *argb, uint8_t *rgb, int64_t stride_bytes,
                 struct err *err);

/* Finds out which levels our own TIFF reader can decode as OpenSlide would, and records why it
 * cannot decode the others. Fails only if the file is damaged. */
bool slide_match_tiff(struct slide *slide, struct err *err);
#endif
