/* low_level.h: a level 16 times smaller than one of the file, for overviews of slides that have no
 * low level there: each pixel is the mean of 16 x 16 pixels (at the right and bottom edge, of those
 * inside), rounded to nearest. If the codec can reduce tiles while it decodes them, it is the mean
 * of the reduced pixels. It is computed tile by tile from the level, or read from a tile cache of
 * the same bytes. Overviews use it by a rule that depends on the file alone, so that an overview is
 * the same with and without a cache. */
#ifndef SLIDE_LOW_LEVEL_H
#define SLIDE_LOW_LEVEL_H
#include "base/ctx.h"
#include "slide/source.h"

#define LOW_LEVEL_FACTOR 16
#define LOW_LEVEL_MIN_PX (INT64_C(16) << 20) /* a smaller level is read as quickly as it is */

struct low_level;

/* Is an overview at `downsample` made from the low level of this level? */
bool low_level_serves(const struct slide *slide, int level, double downsample);

/* The low level of `of`, read through *out. Uses the cache in the folder, and makes it first if it
 * is not there, with the threads of ctx; if it cannot be kept, or folder is NULL, tiles are
 * computed whenever they are read. False if stopped. The caller owns *low; free with
 * low_level_free, after all decoders. */
bool low_level_open(const struct tile_source *of, const char *folder, const struct ctx *ctx,
                    struct low_level **low, struct tile_source *out, struct err *err);
void low_level_free(struct low_level *low); /* NULL-safe */
#endif
