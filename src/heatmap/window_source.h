/* window_source.h: the pixels of a heatmap's windows once more, as the network saw them: the slide,
 * found by the path in heatmap.json, at the same resolution, with the same colour profile and the
 * same stain normalisation. */
#ifndef HEATMAP_WINDOW_SOURCE_H
#define HEATMAP_WINDOW_SOURCE_H
#include "base/image.h"
#include "heatmap/heatmap.h"
#include "net/model/model_config.h"

struct window_source;

struct window_access {
    const struct model_config *config; /* of the model: what its stains were normalised to */
    const char *stain_template;        /* PNG, where the heatmap was made with one; else NULL */
    const char *cache, *results;       /* as of struct slide_access */
};

/* Fails if the slide is gone or another one, naming it. *out is the caller's; close with
 * window_source_close. info is needed only during the call. */
bool window_source_open(const struct heatmap_info *info, const struct window_access *access,
                        struct window_source **out, struct err *err);
void window_source_close(struct window_source *source); /* NULL-safe */

/* RGB of a rectangle of raster px; white outside of the slide. *out is the caller's. Thread-safe.
 */
bool window_source_read(struct window_source *source, int64_t x, int64_t y, int64_t width,
                        int64_t height, struct image *out, struct err *err);
/* Of the raster. */
void window_source_size(const struct window_source *source, int64_t *width, int64_t *height);
/* The slide, for overviews; NULL if pixels come from a patch store. The source's. */
struct slide *window_source_slide(const struct window_source *source);
#endif
