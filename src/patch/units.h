/* units.h: which squares of pixels a store contains. A unit is a whole patch or, if patches of a
 * regular grid overlap, a block that is stored once; every patch is then k x k blocks. */
#ifndef PATCH_UNITS_H
#define PATCH_UNITS_H
#include "patch/patch.h"

#define UNITS_MIN_BLOCK 32 /* smaller blocks cost more in bookkeeping than they save */

struct unit {
    int32_t x, y; /* top-left, raster pixels */
};

struct units {
    int64_t size;        /* width and height of a unit, px */
    int64_t per_side;    /* k: a patch is k x k units */
    struct unit *places; /* [n], row by row, in each row from left to right */
    int64_t n;
    int32_t *of_patch; /* [patches, k * k], row-major within a patch; NULL: unit i is patch i */
};

/* The block's side for patches of `patch` px every `stride` px: their greatest common divisor, or
 * the patch itself where that is below UNITS_MIN_BLOCK. */
int64_t units_block_size(int64_t patch, int64_t stride);

/* One unit per patch. Units and patches have the same order. *out is the caller's. */
bool units_of_patches(const struct patch_list *patches, int64_t patch, struct units *out,
                      struct err *err);
/* Blocks of `block` px; patches lie at multiples of block from each other. */
bool units_of_blocks(const struct patch_list *patches, int64_t patch, int64_t block,
                     struct units *out, struct err *err);
void units_free(struct units *units); /* also fine on a zeroed struct */
#endif
