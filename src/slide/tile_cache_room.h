/* tile_cache_room.h: space for one more file in a folder of tile caches. Private to this folder. */
#ifndef SLIDE_TILE_CACHE_ROOM_H
#define SLIDE_TILE_CACHE_ROOM_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

#define TILE_CACHE_ENDING ".tiles"

/* Removes the files used least recently, until `bytes` more fit into TILE_CACHE_MAX_BYTES;
 * processes that have them open can still read them. Fails if the disk has too little space left.
 */
bool tile_cache_make_room(const char *folder, int64_t bytes, struct err *err);
#endif
