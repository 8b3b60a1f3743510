/* mix.c: see mix.h. */
#include "train/mix.h"

#include <math.h>
#include "base/rng.h"

/* Beta(alpha, alpha) by Joehnk's rejection; for tiny alpha, where both powers vanish, an end. */
static double draw_share(struct rng *rng, double alpha)
{
    for (int i = 0; i < 1000; i++) {
        double x = pow(rng_uniform(rng), 1 / alpha), y = pow(rng_uniform(rng), 1 / alpha);
        if (x + y <= 1 && x + y > 0)
            return fmax(x, y) / (x + y);
    }
    return 1;
}

void mix_batch(const struct batch *batch, int64_t count, int64_t floats, double alpha,
               struct augment_key key, float *shares, int32_t *others, float *pixels)
{
    const float *images = batch_floats(batch, "image");
    const int32_t *labels = batch_int32(batch, "label");
    const int64_t *samples = batch_int64(batch, "sample");
    uint64_t stream = rng_hash("mixup") ^ (key.epoch + 1) * 0x9E3779B97F4A7C15u;
    for (int64_t i = 0; i < count; i++) {
        int64_t with = (i ^ 1) < count ? i ^ 1 : i;
        struct rng rng = rng_new(key.seed, stream, (uint64_t)samples[i]);
        shares[i] = (float)draw_share(&rng, alpha);
        others[i] = labels[with];
        const float *own = images + i * floats, *other = images + with * floats;
        for (int64_t f = 0; f < floats; f++)
            pixels[i * floats + f] = shares[i] * own[f] + (1 - shares[i]) * other[f];
    }
}
