/* units.c: see units.h. Blocks are numbered by the rank of their bit in a bitmap of the block grid:
 * memory is one and a half bits per grid place, whatever the overlap. */
#include "patch/units.h"

#include <stdlib.h>
#include "base/divide.h"

int64_t units_block_size(int64_t patch, int64_t stride)
{
    int64_t a = patch, b = stride;
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a >= UNITS_MIN_BLOCK ? a : patch;
}

static bool fits_int32(const struct patch_list *patches, int64_t patch)
{
    for (int64_t i = 0; i < patches->n; i++) {
        const struct patch *p = &patches->items[i];
        if (p->x < INT32_MIN || p->y < INT32_MIN || p->x > INT32_MAX - patch ||
            p->y > INT32_MAX - patch)
            return false;
    }
    return true;
}

static bool units_begin(const struct patch_list *patches, int64_t patch, struct units *out,
                        struct err *err)
{
    *out = (struct units){ 0 };
    if (!fits_int32(patches, patch))
        return err_set(err, ERR_FORMAT, "a patch is more than 2^31 pixels from the origin");
    return true;
}

bool units_of_patches(const struct patch_list *patches, int64_t patch, struct units *out,
                      struct err *err)
{
    if (!units_begin(patches, patch, out, err))
        return false;
    out->size = patch;
    out->per_side = 1;
    out->n = patches->n;
    out->places = malloc((size_t)(patches->n + 1) * sizeof *out->places);
    if (!out->places)
        return err_memory(err, "the positions of the patches");
    for (int64_t i = 0; i < patches->n; i++)
        out->places[i] =
            (struct unit){ (int32_t)patches->items[i].x, (int32_t)patches->items[i].y };
    return true;
}

/* A bitmap of the grid of blocks that the patches touch, and the rank of each word's first bit. */
struct block_map {
    int64_t x0, y0, columns, rows; /* top-left in raster pixels; size in blocks */
    uint64_t *bits;
    int32_t *ranks;
    int64_t n_words, n_set;
};

static bool map_new(const struct patch_list *patches, int64_t patch, int64_t block,
                    struct block_map *map, struct err *err)
{
    *map = (struct block_map){ 0 };
    int64_t x1 = INT64_MIN, y1 = INT64_MIN;
    map->x0 = map->y0 = INT64_MAX;
    for (int64_t i = 0; i < patches->n; i++) {
        const struct patch *p = &patches->items[i];
        map->x0 = p->x < map->x0 ? p->x : map->x0;
        map->y0 = p->y < map->y0 ? p->y : map->y0;
        x1 = p->x + patch > x1 ? p->x + patch : x1;
        y1 = p->y + patch > y1 ? p->y + patch : y1;
    }
    if (patches->n > 0) {
        map->columns = (x1 - map->x0) / block;
        map->rows = (y1 - map->y0) / block;
    }
    map->n_words = ceil_div(map->columns * map->rows, 64);
    map->bits = calloc((size_t)map->n_words + 1, sizeof *map->bits);
    map->ranks = calloc((size_t)map->n_words + 1, sizeof *map->ranks);
    return map->bits && map->ranks ? true : err_memory(err, "the grid of blocks");
}

static void map_free(struct block_map *map)
{
    free(map->bits);
    free(map->ranks);
}

static int64_t map_first(const struct block_map *map, const struct patch *patch, int64_t block)
{
    return (patch->y - map->y0) / block * map->columns + (patch->x - map->x0) / block;
}

static void map_fill(struct block_map *map, const struct patch_list *patches, int64_t block,
                     int64_t k)
{
    for (int64_t i = 0; i < patches->n; i++) {
        int64_t first = map_first(map, &patches->items[i], block);
        for (int64_t j = 0; j < k * k; j++) {
            int64_t place = first + j / k * map->columns + j % k;
            map->bits[place / 64] |= UINT64_C(1) << (place % 64);
        }
    }
    for (int64_t word = 0; word < map->n_words; word++) {
        map->ranks[word] = (int32_t)map->n_set;
        map->n_set += __builtin_popcountll(map->bits[word]);
    }
}

static int32_t map_rank(const struct block_map *map, int64_t place)
{
    uint64_t below = (UINT64_C(1) << (place % 64)) - 1;
    return map->ranks[place / 64] + __builtin_popcountll(map->bits[place / 64] & below);
}

static void number_units(const struct block_map *map, const struct patch_list *patches,
                         struct units *out)
{
    int64_t k = out->per_side, unit = 0;
    for (int64_t word = 0; word < map->n_words; word++)
        for (uint64_t bits = map->bits[word]; bits; bits &= bits - 1) {
            int64_t place = word * 64 + __builtin_ctzll(bits);
            out->places[unit++] =
                (struct unit){ (int32_t)(map->x0 + place % map->columns * out->size),
                               (int32_t)(map->y0 + place / map->columns * out->size) };
        }
    for (int64_t i = 0; i < patches->n; i++) {
        int64_t first = map_first(map, &patches->items[i], out->size);
        for (int64_t j = 0; j < k * k; j++)
            out->of_patch[i * k * k + j] = map_rank(map, first + j / k * map->columns + j % k);
    }
}

bool units_of_blocks(const struct patch_list *patches, int64_t patch, int64_t block,
                     struct units *out, struct err *err)
{
    if (block == patch)
        return units_of_patches(patches, patch, out, err);
    if (!units_begin(patches, patch, out, err))
        return false;
    bool ok = false;
    struct block_map map;
    if (!map_new(patches, patch, block, &map, err))
        goto done;
    out->size = block;
    out->per_side = patch / block;
    map_fill(&map, patches, block, out->per_side);
    out->n = map.n_set;
    size_t per_patch = (size_t)(out->per_side * out->per_side);
    out->places = malloc((size_t)(out->n + 1) * sizeof *out->places);
    out->of_patch = malloc(((size_t)patches->n * per_patch + 1) * sizeof *out->of_patch);
    if (out->n > INT32_MAX) {
        err_set(err, ERR_FORMAT, "more than 2^31 blocks in one store");
        goto done;
    }
    if (!out->places || !out->of_patch) {
        err_memory(err, "the positions of the blocks");
        goto done;
    }
    number_units(&map, patches, out);
    ok = true;
done:
    map_free(&map);
    if (!ok)
        units_free(out);
    return ok;
}

void units_free(struct units *units)
{
    free(units->places);
    free(units->of_patch);
    *units = (struct units){ 0 };
}
