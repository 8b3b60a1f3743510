/* augment.c: draws the changes of one sample and applies them in order. Every change has its own
 * random stream, so that switching one off does not affect the others. */
#include "prepare/augment.h"

#include "base/rng.h"
#include "prepare/augment_ops.h"

#define BLUR_SIGMA_LEAST_PX 0.1

static bool check(const struct augment_options *options, const struct image *patch, struct err *err)
{
    if (patch->channels != 3)
        return err_set(err, ERR_FORMAT, "a patch has %d channels; only RGB can be augmented",
                       patch->channels);
    if (patch->width < options->crop_px || patch->height < options->crop_px)
        return err_set(err, ERR_FORMAT,
                       "a patch of %lld x %lld px is smaller than the crop of %lld px; use a "
                       "smaller crop or extract larger patches",
                       (long long)patch->width, (long long)patch->height,
                       (long long)options->crop_px);
    return true;
}

static bool crop(const struct augment_options *options, struct rng *rng, struct image *patch,
                 struct err *err)
{
    (void)err;
    const int64_t side = options->crop_px;
    if (side == 0)
        return true;
    int64_t left = (int64_t)rng_below(rng, (uint64_t)(patch->width - side + 1));
    int64_t top = (int64_t)rng_below(rng, (uint64_t)(patch->height - side + 1));
    augment_crop(patch, left, top, side);
    return true;
}

static struct augment_placing draw_flip(struct rng *rng)
{
    uint32_t bits = rng_u32(rng);
    return (struct augment_placing){ .left_right = bits & 1, .top_bottom = bits & 2 };
}

static bool flip(const struct augment_options *options, struct rng *rng, struct image *patch,
                 struct err *err)
{
    (void)err;
    struct augment_placing drawn = draw_flip(rng);
    if (options->flip)
        augment_flip(patch, drawn.left_right, drawn.top_bottom);
    return true;
}

/* All patches of a batch must keep one size: one that is not square turns by half circles only. */
static bool rotate(const struct augment_options *options, struct rng *rng, struct image *patch,
                   struct err *err)
{
    (void)err;
    int quarters = (int)(rng_u32(rng) & 3);
    if (options->rotate)
        augment_turn(patch, patch->width == patch->height ? quarters : quarters & 2);
    return true;
}

static bool hsv_noise(const struct augment_options *options, struct rng *rng, struct image *patch,
                      struct err *err)
{
    (void)err;
    double offset[3];
    for (int c = 0; c < 3; c++)
        offset[c] = rng_between(rng, 0, options->hsv_noise);
    if (options->hsv_noise > 0)
        augment_hsv(patch, offset);
    return true;
}

static bool hed_jitter(const struct augment_options *options, struct rng *rng, struct image *patch,
                       struct err *err)
{
    (void)err;
    const double s = options->hed_jitter;
    double scale[3], shift[3];
    for (int c = 0; c < 3; c++) {
        scale[c] = rng_between(rng, 1 - s, 1 + s);
        shift[c] = rng_between(rng, -s, s);
    }
    if (s > 0)
        augment_hed(patch, scale, shift);
    return true;
}

static bool brightness(const struct augment_options *options, struct rng *rng, struct image *patch,
                       struct err *err)
{
    (void)err;
    const double s = options->brightness;
    if (s > 0)
        augment_brightness(patch, rng_between(rng, 1 - s, 1 + s));
    return true;
}

static bool contrast(const struct augment_options *options, struct rng *rng, struct image *patch,
                     struct err *err)
{
    (void)err;
    const double s = options->contrast;
    if (s > 0)
        augment_contrast(patch, rng_between(rng, 1 - s, 1 + s));
    return true;
}

static bool saturation(const struct augment_options *options, struct rng *rng, struct image *patch,
                       struct err *err)
{
    (void)err;
    const double s = options->saturation;
    if (s > 0)
        augment_saturation(patch, rng_between(rng, 1 - s, 1 + s));
    return true;
}

static bool hue(const struct augment_options *options, struct rng *rng, struct image *patch,
                struct err *err)
{
    (void)err;
    if (options->hue > 0)
        augment_hue(patch, rng_between(rng, -options->hue, options->hue));
    return true;
}

/* 0: not blurred. */
static double draw_blur(const struct augment_options *options, struct rng *rng)
{
    if (!(rng_uniform(rng) < options->blur))
        return 0;
    double highest =
        options->blur_sigma > BLUR_SIGMA_LEAST_PX ? options->blur_sigma : BLUR_SIGMA_LEAST_PX;
    return rng_between(rng, BLUR_SIGMA_LEAST_PX, highest);
}

static bool blur(const struct augment_options *options, struct rng *rng, struct image *patch,
                 struct err *err)
{
    double sigma_px = draw_blur(options, rng);
    return sigma_px == 0 || augment_blur(patch, sigma_px, err);
}

/* In the order of augment.h. The name is the random stream: renaming one changes what it draws. */
static const struct {
    const char *name;
    bool (*apply)(const struct augment_options *options, struct rng *rng, struct image *patch,
                  struct err *err);
    bool moves; /* pixels change places, and nothing else */
} changes[] = {
    { "crop", crop, true },
    { "flip", flip, true },
    { "rotate", rotate, true },
    { "hsv noise", hsv_noise, false },
    { "hed jitter", hed_jitter, false },
    { "brightness", brightness, false },
    { "contrast", contrast, false },
    { "saturation", saturation, false },
    { "hue", hue, false },
    { "blur", blur, false },
};

static struct rng rng_of(const char *name, struct augment_key key)
{
    return rng_new(key.seed, rng_hash(name) ^ (key.epoch + 1) * 0x9E3779B97F4A7C15u, key.sample);
}

bool augment_train_pair(const struct augment_options *options, struct augment_key key,
                        struct image *patch, struct image *known, struct err *err)
{
    if (!check(options, patch, err))
        return false;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        struct rng rng = rng_of(changes[i].name, key), again = rng;
        if (!changes[i].apply(options, &rng, patch, err) ||
            (known && changes[i].moves && !changes[i].apply(options, &again, known, err)))
            return false;
    }
    return true;
}

bool augment_train(const struct augment_options *options, struct augment_key key,
                   struct image *patch, struct err *err)
{
    return augment_train_pair(options, key, patch, NULL, err);
}

struct augment_placing augment_placing(const struct augment_options *options,
                                       struct augment_key key)
{
    struct rng flips = rng_of("flip", key), turns = rng_of("rotate", key);
    struct augment_placing placing = { 0 };
    if (options->flip)
        placing = draw_flip(&flips);
    if (options->rotate)
        placing.quarters = (int)(rng_u32(&turns) & 3);
    return placing;
}

int64_t augment_reach_px(const struct augment_options *options, struct augment_key key)
{
    struct rng rng = rng_of("blur", key);
    double sigma_px = draw_blur(options, &rng);
    return sigma_px > 0 ? augment_blur_radius(sigma_px, INT64_MAX, INT64_MAX) : 0;
}

/* Colours up to contrast, or with `grey` all of them. */
static bool colour_part(const struct augment_options *options, struct augment_key key,
                        const double *grey, struct image *part, struct err *err)
{
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        struct rng rng = rng_of(changes[i].name, key);
        if (changes[i].moves)
            continue;
        if (changes[i].apply != contrast) {
            if (!changes[i].apply(options, &rng, part, err))
                return false;
            continue;
        }
        if (!grey)
            return true;
        if (options->contrast > 0)
            augment_contrast_about(
                part, rng_between(&rng, 1 - options->contrast, 1 + options->contrast), *grey);
    }
    return true;
}

bool augment_part(const struct augment_options *options, struct augment_key key, double grey,
                  struct image *part, struct err *err)
{
    return colour_part(options, key, &grey, part, err);
}

bool augment_grey(const struct augment_options *options, struct augment_key key,
                  struct image *sample, double *grey, struct err *err)
{
    if (!colour_part(options, key, NULL, sample, err))
        return false;
    *grey = augment_mean_grey(sample);
    return true;
}
