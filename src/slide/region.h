/* region.h: regions of a raster in any order. Tiles of the level that were decoded last are kept up
 * to a limit, so that neighbouring regions, read row by row from either end, decode few of them
 * twice. The pixels are those of raster_read. For a pass from top to bottom with all threads,
 * band.h is faster. */
#ifndef SLIDE_REGION_H
#define SLIDE_REGION_H
#include "slide/raster.h"

struct region_reader;

/* cache_bytes: of tiles that are kept; at least one is. The raster's slide must outlive *out, which
 * is the caller's; close with region_reader_close. */
bool region_reader_open(const struct raster *raster, size_t cache_bytes, struct region_reader **out,
                        struct err *err);
void region_reader_close(struct region_reader *reader); /* NULL-safe */

/* RGB to dst [height, width, 3], rows stride_bytes apart. The region must be within the raster. One
 * thread at a time. */
bool region_read(struct region_reader *reader, int64_t x, int64_t y, int64_t width, int64_t height,
                 uint8_t *dst, int64_t stride_bytes, struct err *err);

/* The most bytes it will have allocated, whatever is read. */
size_t region_reader_bytes(const struct region_reader *reader);
int64_t region_reader_decoded(const struct region_reader *reader); /* tiles, so far */
#endif
