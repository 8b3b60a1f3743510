/* driver_image.c: plain images as slides of one level: PNG, JPEG, TIFF in strips. Small ones are
 * decoded to memory when the first tile is needed; larger ones are decoded band by band to tiles on
 * disk (tile_cache.h). */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <openslide.h>
#include "base/divide.h"
#include "slide/driver.h"
#include "slide/image_rows.h"
#include "slide/tile_cache.h"

#define TILE_PX 256
#define MOST_PX (INT64_C(1) << 40) /* 3 TB of tiles: no image, but a damaged header */

struct image_state {
    const struct image_format *format;
    struct image_facts facts;
    char note[96];
    pthread_mutex_t mutex; /* of the rest, until it is ready */
    bool ready, failed;
    struct err why; /* if it failed: others must not decode it again to find out */
    uint8_t *px;    /* [height, width, 3] */
    struct tile_cache *cache;
};

static bool read_to_memory(struct image_state *state, void *reader, struct err *err)
{
    const struct image_facts *facts = &state->facts;
    state->px = malloc((size_t)(3 * facts->width * facts->height));
    return state->px ? state->format->rows(reader, facts->height, state->px, err)
                     : err_memory(err, "its pixels");
}

struct filling {
    const struct image_state *state;
    void *reader;
};

/* One row of tiles. band: [TILE_PX, columns * TILE_PX, 3] */
static bool fill_band(const struct filling *filling, struct tile_cache *cache, int64_t row,
                      uint8_t *band, struct err *err)
{
    const struct image_state *state = filling->state;
    int64_t columns = ceil_div(state->facts.width, TILE_PX), stride = 3 * columns * TILE_PX;
    for (int64_t y = 0; y < TILE_PX && row * TILE_PX + y < state->facts.height; y++)
        if (!state->format->rows(filling->reader, 1, band + y * stride, err))
            return false;
    for (int64_t column = 0; column < columns; column++)
        if (!tile_cache_put(cache, column, row, band + 3 * TILE_PX * column, stride, err))
            return false;
    return true;
}

static bool fill_cache(void *arg, struct tile_cache *cache, struct err *err)
{
    const struct filling *filling = arg;
    const struct image_facts *facts = &filling->state->facts;
    size_t band_bytes = (size_t)(3 * ceil_div(facts->width, TILE_PX) * TILE_PX * TILE_PX);
    uint8_t *band = malloc(band_bytes);
    if (!band)
        return err_memory(err, "a band of an image");
    memset(band, 255, band_bytes);
    bool ok = true;
    for (int64_t row = 0; ok && row * TILE_PX < facts->height; row++)
        ok = fill_band(filling, cache, row, band, err);
    free(band);
    return ok;
}

static bool in_memory(const struct slide *slide)
{
    const struct image_state *state = slide->state;
    return state->facts.width <= slide->image_bytes / 3 / state->facts.height;
}

static struct tile_cache_key cache_key(const struct slide *slide)
{
    const struct image_state *state = slide->state;
    return (struct tile_cache_key){ .slide = slide->path,
                                    .what = state->format->vendor,
                                    .width = state->facts.width,
                                    .height = state->facts.height,
                                    .tile_width = TILE_PX,
                                    .tile_height = TILE_PX };
}

static bool same_size(const struct slide *slide, const struct image_facts *now, struct err *err)
{
    const struct image_state *state = slide->state;
    return (now->width == state->facts.width && now->height == state->facts.height) ||
           err_set(err, ERR_FORMAT, "%s: has changed since it was opened", slide->path);
}

/* Opens the file for each decoding: rows come from the top only. */
static bool decode_image(const struct slide *slide, struct err *err)
{
    struct image_state *state = slide->state;
    struct tile_cache_key key = cache_key(slide);
    struct image_facts facts = { 0 };
    struct filling filling = { .state = state };
    if (!state->format->open(slide->path, &facts, &filling.reader, err) ||
        !same_size(slide, &facts, err)) {
        state->format->close(filling.reader);
        return false;
    }
    struct err why = { .kind = ERR_NONE };
    char *folder = in_memory(slide) ? NULL : slide_cache_folder(slide);
    bool ok = in_memory(slide) ? read_to_memory(state, filling.reader, &why)
              : folder ? tile_cache_open(folder, &key, fill_cache, &filling, &state->cache, &why)
                       : err_set(&why, ERR_MISSING,
                                 "no folder for its decoded tiles (%.0f MB): neither "
                                 "XDG_CACHE_HOME nor HOME is set; pass --cache DIR",
                                 (double)tile_cache_bytes(&key) / (1 << 20));
    if (!ok) {
        *err = why;
        if (strncmp(why.text, slide->path, strlen(slide->path)) != 0)
            err_prefix(err, slide->path);
    }
    free(folder);
    state->format->close(filling.reader);
    return ok;
}

static bool image_decoder_new(const struct tile_source *source, void **out, struct err *err)
{
    struct image_state *state = source->slide->state;
    *out = NULL;
    pthread_mutex_lock(&state->mutex);
    if (!state->ready && !state->failed) {
        state->ready = decode_image(source->slide, &state->why);
        state->failed = !state->ready;
    }
    bool ok = state->ready;
    if (!ok && err)
        *err = state->why;
    pthread_mutex_unlock(&state->mutex);
    return ok;
}

static void image_decoder_free(void *decoder)
{
    (void)decoder; /* there is none: all threads read the same pixels */
}

static bool image_tile(const struct tile_source *source, void *decoder, int64_t column, int64_t row,
                       uint8_t *dst, int64_t stride_bytes, struct err *err)
{
    (void)decoder;
    const struct image_state *state = source->slide->state;
    if (state->cache)
        return tile_cache_get(state->cache, column, row, dst, stride_bytes, err);
    int64_t x = column * TILE_PX, y = row * TILE_PX;
    int64_t width = source->width - x < TILE_PX ? source->width - x : TILE_PX;
    for (int64_t i = 0; i < TILE_PX && y + i < source->height; i++)
        memcpy(dst + i * stride_bytes, state->px + 3 * ((y + i) * source->width + x),
               (size_t)(3 * width));
    return true;
}

static const struct tile_source_ops image_source_ops = {
    .decoder_new = image_decoder_new,
    .decoder_free = image_decoder_free,
    .decode = image_tile,
};

static bool fill_slide(struct slide *slide, struct err *err)
{
    struct image_state *state = slide->state;
    const struct image_facts *facts = &state->facts;
    if (facts->width > MOST_PX / facts->height)
        return err_set(err, ERR_FORMAT, "%s: its size is out of range", slide->path);
    if (!slide_set_vendor(slide, state->format->vendor, err) || !slide_set_levels(slide, 1, err))
        return false;
    struct tile_cache_key key = cache_key(slide);
    if (in_memory(slide))
        snprintf(state->note, sizeof state->note, "decoded to memory");
    else
        snprintf(state->note, sizeof state->note, "decoded once to tiles on disk (%.0f MB)",
                 (double)tile_cache_bytes(&key) / (1 << 20));
    slide->levels[0] = (struct slide_level){ .width = facts->width,
                                             .height = facts->height,
                                             .downsample = 1,
                                             .reader = READER_ROWS,
                                             .slow_reason = state->note };
    slide->sources[0] = (struct tile_source){ .ops = &image_source_ops,
                                              .slide = slide,
                                              .width = facts->width,
                                              .height = facts->height,
                                              .tile_width = TILE_PX,
                                              .tile_height = TILE_PX };
    slide_set_mpp(slide, facts->mpp_x, facts->mpp_y, facts->mpp_source);
    return true;
}

/* A TIFF in strips is ours unless OpenSlide knows it as a slide: Hamamatsu's NDPI is one. */
static const struct image_format *claim(const char *path)
{
    const struct image_format *format = image_format_of(path);
    if (format == &image_strips &&
        (!image_strips_are_all(path) || openslide_detect_vendor(path) != NULL))
        return NULL;
    return format;
}

static enum driver_answer image_open(struct slide *slide, struct err *err)
{
    const struct image_format *format = claim(slide->path);
    if (!format)
        return DRIVER_OTHER;
    struct image_state *state = calloc(1, sizeof *state);
    if (!state) {
        err_memory(err, slide->path);
        return DRIVER_FAILED;
    }
    slide->state = state;
    state->format = format;
    pthread_mutex_init(&state->mutex, NULL);
    void *reader = NULL;
    bool ok = format->open(slide->path, &state->facts, &reader, err) && fill_slide(slide, err);
    format->close(reader);
    return ok ? DRIVER_OPENED : DRIVER_FAILED;
}

static void image_close(struct slide *slide)
{
    struct image_state *state = slide->state;
    if (!state)
        return;
    tile_cache_close(state->cache);
    pthread_mutex_destroy(&state->mutex);
    free(state->px);
    free(state);
}

const struct slide_driver driver_image = { .name = "image",
                                           .open = image_open,
                                           .close = image_close };
