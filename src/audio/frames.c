/* frames.c: see frames.h. */
#include "audio/frames.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "audio/resample.h"
#include "audio/wav.h"
#include "base/divide.h"
#include "base/identity.h"

int64_t frames_of_seconds(const struct mel_options *options, double seconds)
{
    double most = seconds * (double)options->rate / (double)options->hop;
    if (!(most >= 1) || most > FRAMES_PER_TOKEN * FRAMES_MOST_TOKENS)
        return 0;
    return ceil_div((int64_t)most, FRAMES_PER_TOKEN) * FRAMES_PER_TOKEN;
}

double frames_seconds(const struct frames_rule *rule)
{
    const struct mel_options *options = mel_options_of(rule->mel);
    return (double)(rule->frames * options->hop) / (double)options->rate;
}

/* Every band of values [n, bands] gets mean 0 and deviation 1; one that never changes, 0. */
static void normalize(float *values, int64_t n, int64_t bands)
{
    for (int64_t b = 0; b < bands; b++) {
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < n; i++)
            sum += (double)values[i * bands + b];
        double mean = sum / (double)n;
        for (int64_t i = 0; i < n; i++) {
            double off = (double)values[i * bands + b] - mean;
            squares += off * off;
        }
        double deviation = sqrt(squares / (double)n);
        double factor = deviation > 1e-5 ? 1 / deviation : 0;
        for (int64_t i = 0; i < n; i++)
            values[i * bands + b] = (float)(((double)values[i * bands + b] - mean) * factor);
    }
}

static bool make_frames(const struct frames_rule *rule, const float *x, int64_t n, const char *path,
                        struct frames *out, struct err *err)
{
    int64_t all = mel_count(rule->mel, n), bands = mel_options_of(rule->mel)->bands;
    out->n = all < rule->frames ? all : rule->frames;
    out->cut = all > rule->frames;
    if (out->cut && rule->refuse)
        return err_set(err, ERR_FORMAT,
                       "%s: has %.2f s, more than the %.2f s that fit; raise data.max_seconds, or "
                       "use data.long: truncate",
                       path, (double)n / (double)mel_options_of(rule->mel)->rate,
                       frames_seconds(rule));
    out->values = malloc((size_t)(out->n * bands) * sizeof *out->values);
    if (!out->values)
        return err_memory(err, path);
    if (!mel_frames(rule->mel, x, n, out->n, out->values, err))
        return false;
    normalize(out->values, out->n, bands);
    return true;
}

bool frames_read(const struct frames_rule *rule, const char *path, struct frames *out,
                 struct err *err)
{
    struct wav wav = { 0 };
    float *samples = NULL;
    int64_t n = 0, rate = mel_options_of(rule->mel)->rate;
    *out = (struct frames){ 0 };
    bool ok = wav_read(path, &wav, err) &&
              resample(wav.samples, wav.n, wav.rate, rate, &samples, &n, err) &&
              make_frames(rule, samples, n, path, out, err);
    if (ok)
        out->hash = identity_hash(identity_hash(IDENTITY_HASH_BEGIN, &wav.rate, sizeof wav.rate),
                                  wav.samples, (size_t)wav.n * sizeof *wav.samples);
    else
        frames_free(out);
    wav_free(&wav);
    free(samples);
    return ok;
}

void frames_free(struct frames *frames)
{
    free(frames->values);
    *frames = (struct frames){ 0 };
}

void frames_fill(const struct frames_rule *rule, const struct frames *frames, float *input,
                 float *mask)
{
    int64_t bands = mel_options_of(rule->mel)->bands;
    size_t used = (size_t)(frames->n * bands), all = (size_t)(rule->frames * bands);
    memcpy(input, frames->values, used * sizeof *input);
    memset(input + used, 0, (all - used) * sizeof *input);
    for (int64_t i = 0; i < rule->frames / FRAMES_PER_TOKEN; i++)
        mask[i] = i * FRAMES_PER_TOKEN < frames->n;
}
