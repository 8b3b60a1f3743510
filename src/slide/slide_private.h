/* slide_private.h: what the drivers that use OpenSlide share. */
#ifndef SLIDE_SLIDE_PRIVATE_H
#define SLIDE_SLIDE_PRIVATE_H
#include <openslide.h>
#include "slide/driver.h"

struct openslide_state {
    openslide_t *handle; /* read from many threads; an error on it stays (see slide_paint) */
};

/* Opens the slide's file by OpenSlide. Close with openslide_state_close, also if it fails. */
bool openslide_state_open(const char *path, struct openslide_state *state, struct err *err);
void openslide_state_close(struct openslide_state *state);

/* A level read through OpenSlide, with tiles of our choice; source->of is the openslide_state. */
struct tile_source openslide_source(struct slide *slide, int level,
                                    const struct openslide_state *state);

/* Reads pixels of a level through OpenSlide to rgb [height, width, 3] (rows stride_bytes apart)
 * over white; argb [height, width] is scratch. Each read succeeds or fails on its own, although an
 * error stays on an OpenSlide handle: after one, each read uses a separate handle. At most
 * SLIDE_PAINT_MAX_PX wide and high. Thread-safe. */
#define SLIDE_PAINT_MAX_PX 4096
bool slide_paint(struct slide *slide, int level, int64_t x, int64_t y, int64_t width,
                 int64_t height, uint32_t *argb, uint8_t *rgb, int64_t stride_bytes,
                 struct err *err);

#endif
