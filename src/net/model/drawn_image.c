/* drawn_image.c: see drawn_image.h. One block of random bits gives 4 channels of 4 pixels of a row.
 */
#include "net/model/drawn_image.h"

#include "base/rng.h"

#define BLOCK_PX 4
#define BLOCK_CHANNELS 4

/* One row of up to 4 channels; plane: floats of a channel. */
static void read_row(const struct drawn_image *image, int64_t y, int64_t x, int64_t w,
                     int64_t channel, int64_t plane, float *out)
{
    int64_t n_channels = image->channels - channel;
    if (n_channels > BLOCK_CHANNELS)
        n_channels = BLOCK_CHANNELS;
    const uint32_t key[2] = { image->seed, (uint32_t)(channel / BLOCK_CHANNELS) };
    for (int64_t block = x / BLOCK_PX; block * BLOCK_PX < x + w; block++) {
        const uint32_t counter[4] = { (uint32_t)block, (uint32_t)y, 0, 0 };
        uint32_t words[BLOCK_CHANNELS];
        rng_philox(key, counter, words);
        int64_t first = block * BLOCK_PX < x ? x : block * BLOCK_PX;
        int64_t past = (block + 1) * BLOCK_PX > x + w ? x + w : (block + 1) * BLOCK_PX;
        for (int64_t c = 0; c < n_channels; c++)
            for (int64_t i = first; i < past; i++) {
                uint32_t byte = words[c] >> 8 * (i % BLOCK_PX) & 255;
                out[c * plane + i - x] = (float)byte / 127.5F - 1;
            }
    }
}

void drawn_image_read(const struct drawn_image *image, int64_t y, int64_t x, int64_t h, int64_t w,
                      float *out)
{
    for (int64_t c = 0; c < image->channels; c += BLOCK_CHANNELS)
        for (int64_t i = 0; i < h; i++)
            read_row(image, y + i, x, w, c, h * w, out + (c * h + i) * w);
}

static bool read_part(void *arg, int64_t y, int64_t x, int64_t h, int64_t w, float *out,
                      struct err *err)
{
    (void)err;
    drawn_image_read(arg, y, x, h, w, out);
    return true;
}

struct plan_source drawn_image_source(const struct drawn_image *image)
{
    return (struct plan_source){ .arg = (void *)(uintptr_t)image, .read = read_part };
}
