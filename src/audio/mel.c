/* mel.c: see mel.h. */
#include "audio/mel.h"
#include <math.h>
#include <stdlib.h>
#include "audio/spectrum.h"

#define MOST_BANDS 512

/* A triangle over bins first, first + 1, .. of the spectrum. */
struct mel_band {
    int64_t first, n;
    double *weights; /* [n] */
};

struct mel {
    struct mel_options options;
    struct spectrum *spectrum;
    double *hann;           /* [window] */
    struct mel_band *bands; /* [options.bands] */
};

/* --- Slaney's mel scale: linear up to 1 kHz, then logarithmic --- */

static const double linear_hz = 200.0 / 3, break_hz = 1000, break_mel = 15;

static double mel_of(double hz)
{
    return hz < break_hz ? hz / linear_hz : break_mel + 27 * log(hz / break_hz) / log(6.4);
}

static double hz_of(double mel)
{
    return mel < break_mel ? mel * linear_hz : break_hz * exp(log(6.4) * (mel - break_mel) / 27);
}

/* Of bin k; edges [3]: where the triangle begins, is highest and ends. */
static double triangle(const struct mel_options *o, const double *edges, int64_t k)
{
    double hz = (double)(k * o->rate) / (double)o->window;
    double up = (hz - edges[0]) / (edges[1] - edges[0]);
    double down = (edges[2] - hz) / (edges[2] - edges[1]);
    return fmax(0, fmin(up, down)) * 2 / (edges[2] - edges[0]);
}

static bool make_band(const struct mel_options *o, int64_t band, struct mel_band *out,
                      struct err *err)
{
    double edges[3], highest = mel_of((double)o->rate / 2);
    int64_t bins = o->window / 2 + 1, end = 0;
    for (int i = 0; i < 3; i++)
        edges[i] = hz_of(highest * (double)(band + i) / (double)(o->bands + 1));
    for (int64_t k = bins - 1; k >= 0; k--)
        if (triangle(o, edges, k) > 0) {
            end = end ? end : k + 1;
            out->first = k;
        }
    out->n = end - out->first;
    if (!(out->weights = malloc((size_t)(out->n + 1) * sizeof *out->weights)))
        return err_memory(err, "mel bands");
    for (int64_t k = 0; k < out->n; k++)
        out->weights[k] = triangle(o, edges, out->first + k);
    return true;
}

bool mel_new(const struct mel_options *options, struct mel **out, struct err *err)
{
    if (options->rate < 1 || options->hop < 1 || options->bands < 1 || options->bands > MOST_BANDS)
        return err_set(err, ERR_USAGE, "mel frames need a rate, a step and up to %d bands",
                       MOST_BANDS);
    struct mel *mel = calloc(1, sizeof *mel);
    if (!mel)
        return err_memory(err, "mel bands");
    mel->options = *options;
    bool ok = spectrum_new(options->window, &mel->spectrum, err);
    if (ok) {
        mel->hann = malloc((size_t)options->window * sizeof *mel->hann);
        mel->bands = calloc((size_t)options->bands, sizeof *mel->bands);
        ok = (mel->hann && mel->bands) || err_memory(err, "mel bands");
    }
    for (int64_t i = 0; ok && i < options->window; i++)
        mel->hann[i] = 0.5 - 0.5 * cos(2 * M_PI * (double)i / (double)options->window);
    for (int64_t i = 0; ok && i < options->bands; i++)
        ok = make_band(options, i, &mel->bands[i], err);
    if (ok)
        *out = mel;
    else
        mel_free(mel);
    return ok;
}

void mel_free(struct mel *mel)
{
    if (!mel)
        return;
    for (int64_t i = 0; mel->bands && i < mel->options.bands; i++)
        free(mel->bands[i].weights);
    free(mel->bands);
    free(mel->hann);
    spectrum_free(mel->spectrum);
    free(mel);
}

const struct mel_options *mel_options_of(const struct mel *mel)
{
    return &mel->options;
}

int64_t mel_count(const struct mel *mel, int64_t n)
{
    return 1 + n / mel->options.hop;
}

/* power [window / 2 + 1] -> out [bands] */
static void add_up(const struct mel *mel, const double *power, float *out)
{
    for (int64_t b = 0; b < mel->options.bands; b++) {
        const struct mel_band *band = &mel->bands[b];
        double sum = 0;
        for (int64_t k = 0; k < band->n; k++)
            sum += band->weights[k] * power[band->first + k];
        out[b] = (float)log(fmax(sum, MEL_FLOOR));
    }
}

bool mel_frames(const struct mel *mel, const float *x, int64_t n, int64_t frames, float *out,
                struct err *err)
{
    int64_t window = mel->options.window;
    double *part = malloc((size_t)(2 * window) * sizeof *part), *power = part + window;
    struct spectrum_number *room = malloc((size_t)window * sizeof *room);
    bool ok = (part && room) || err_memory(err, "mel frames");
    for (int64_t i = 0; ok && i < frames; i++) {
        int64_t first = i * mel->options.hop - window / 2;
        for (int64_t k = 0; k < window; k++) {
            int64_t at = first + k;
            part[k] = at >= 0 && at < n ? mel->hann[k] * (double)x[at] : 0;
        }
        spectrum_power(mel->spectrum, part, room, power);
        add_up(mel, power, out + i * mel->options.bands);
    }
    free(part);
    free(room);
    return ok;
}
