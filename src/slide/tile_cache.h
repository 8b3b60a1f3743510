/* tile_cache.h: decoded tiles of a level in a file, so that an image that can only be read from the
 * top is decoded once, and a level that a slide does not have is computed once. The file is
 * complete if it exists (written beside and renamed), belongs to one state of one slide, and is
 * used by any number of processes at the same time; of several that want it first, one makes it and
 * the others wait. docs/formats.md describes it. */
#ifndef SLIDE_TILE_CACHE_H
#define SLIDE_TILE_CACHE_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

/* The oldest files of a cache folder are removed if all of them would take more than this. */
#define TILE_CACHE_MAX_BYTES (INT64_C(64) << 30)
#define TILE_CACHE_MAX_TILE_PX 1024

struct tile_cache_key {
    const char *slide; /* its file */
    const char *what;  /* which pixels of it: "png", "level 0 / 16" */
    int64_t width, height;
    int64_t tile_width, tile_height; /* at most TILE_CACHE_MAX_TILE_PX */
};

struct tile_cache;

/* Puts every tile. */
typedef bool (*tile_cache_fill)(void *arg, struct tile_cache *cache, struct err *err);

/* Opens the tiles in a folder, which is created if needed, or has them made by fill. The error of a
 * folder that cannot be written or is full names it, the size and the remedy; that of fill is
 * passed on. The caller owns *out; close with tile_cache_close. */
bool tile_cache_open(const char *folder, const struct tile_cache_key *key, tile_cache_fill fill,
                     void *arg, struct tile_cache **out, struct err *err);
void tile_cache_close(struct tile_cache *cache); /* NULL-safe */

/* One whole tile px [tile_height, tile_width, 3], rows stride_bytes apart. Thread-safe. */
bool tile_cache_put(struct tile_cache *cache, int64_t column, int64_t row, const uint8_t *px,
                    int64_t stride_bytes, struct err *err);
bool tile_cache_get(const struct tile_cache *cache, int64_t column, int64_t row, uint8_t *px,
                    int64_t stride_bytes, struct err *err);

/* Size of the file. */
int64_t tile_cache_bytes(const struct tile_cache_key *key);

/* Where a user's caches are by default: $XDG_CACHE_HOME/microtome or ~/.cache/microtome. Owned by
 * the caller; NULL if neither is known or memory is short. */
char *tile_cache_home(void);
#endif
