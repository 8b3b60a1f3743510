/* vary.c: see vary.h. */
#include "audio/vary.h"
#include <math.h>
#include <string.h>
#include "base/rng.h"

/* A run of up to `share` of n, at a random place. */
struct run {
    int64_t first, end;
};

struct variation {
    double stretch, factor; /* of time and of frequencies */
    struct run frames, bands;
};

static double draw_factor(struct rng *rng, double amount)
{
    return exp(rng_between(rng, -1, 1) * log(1 + amount));
}

static struct run draw_run(struct rng *rng, int64_t n, double share)
{
    int64_t length = (int64_t)(rng_uniform(rng) * share * (double)n);
    int64_t first = (int64_t)rng_below(rng, (uint64_t)(n - length + 1));
    return (struct run){ first, first + length };
}

static bool is_in(const struct run *run, int64_t i)
{
    return i >= run->first && i < run->end;
}

/* Bands that a frequency moves by above 1 kHz, and the band of 1 kHz, which is 15 mel. */
static double bands_of(const struct mel_options *options, double mels)
{
    double hz = (double)options->rate / 2;
    double highest = hz < 1000 ? hz * 3 / 200 : 15 + 27 * log(hz / 1000) / log(6.4);
    return mels * (double)(options->bands + 1) / highest;
}

/* The mean of the two neighbours of a place between frames and bands, [n, bands], by distance. */
static float between(const struct frames *frames, int64_t bands, double time, double band)
{
    double at[2] = { fmin(fmax(time, 0), (double)(frames->n - 1)),
                     fmin(fmax(band, 0), (double)(bands - 1)) };
    int64_t i = (int64_t)at[0], b = (int64_t)at[1];
    int64_t j = i + 1 < frames->n ? i + 1 : i, c = b + 1 < bands ? b + 1 : b;
    double down = at[0] - (double)i, right = at[1] - (double)b;
    const float *upper = frames->values + i * bands, *lower = frames->values + j * bands;
    double top = (double)upper[b] * (1 - right) + (double)upper[c] * right;
    double bottom = (double)lower[b] * (1 - right) + (double)lower[c] * right;
    return (float)(top * (1 - down) + bottom * down);
}

void frames_vary(const struct frames_rule *rule, const struct frames *frames, double amount,
                 struct vary_key key, float *input, float *mask)
{
    const struct mel_options *options = mel_options_of(rule->mel);
    struct rng rng = rng_new(key.seed, rng_hash("voice") ^ key.epoch, key.sample);
    struct variation drawn = { draw_factor(&rng, amount), draw_factor(&rng, amount), { 0 }, { 0 } };
    int64_t bands = options->bands;
    int64_t n = (int64_t)ceil((double)frames->n * drawn.stretch);
    n = n > rule->frames ? rule->frames : n;
    drawn.frames = draw_run(&rng, n, amount);
    drawn.bands = draw_run(&rng, bands, amount);
    double moved = bands_of(options, 27 * log(drawn.factor) / log(6.4));
    double knee = bands_of(options, 15);
    memset(input, 0, (size_t)(rule->frames * bands) * sizeof *input);
    for (int64_t i = 0; i < n; i++)
        for (int64_t b = 0; b < bands; b++)
            if (!is_in(&drawn.frames, i) && !is_in(&drawn.bands, b))
                input[i * bands + b] = between(frames, bands, (double)i / drawn.stretch,
                                               (double)b + moved * fmin(1, (double)(b + 1) / knee));
    for (int64_t i = 0; i < rule->frames / FRAMES_PER_TOKEN; i++)
        mask[i] = i * FRAMES_PER_TOKEN < n;
}
