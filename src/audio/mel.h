/* mel.h: sound -> log-mel frames, as librosa makes them with its defaults:
 *     log(maximum(librosa.feature.melspectrogram(y=x, sr=rate, n_fft=window, hop_length=hop,
 *                                                n_mels=bands), 1e-10)).T
 * a Hann window (periodic) of `window` samples every `hop`, the middle of frame i at sample i hop,
 * silence before and after the sound; the power of its Fourier transform; triangles on Slaney's mel
 * scale from 0 to rate / 2, each with an area of 1 (norm "slaney"); the natural logarithm. */
#ifndef AUDIO_MEL_H
#define AUDIO_MEL_H
#include <stdint.h>
#include "base/err.h"

struct mel_options {
    int64_t rate;        /* samples in a second */
    int64_t window, hop; /* in samples; see spectrum.h for which windows there are */
    int64_t bands;
};
/* 16 kHz, 25 ms every 10 ms, 80 bands */
#define MEL_USUAL ((struct mel_options){ 16000, 400, 160, 80 })
#define MEL_FLOOR 1e-10 /* of the power, before the logarithm */

struct mel;

/* *out is the caller's; free with mel_free. */
bool mel_new(const struct mel_options *options, struct mel **out, struct err *err);
void mel_free(struct mel *mel); /* NULL-safe */
const struct mel_options *mel_options_of(const struct mel *mel);
/* Frames of n samples: 1 + n / hop, rounded down. */
int64_t mel_count(const struct mel *mel, int64_t n);
/* x [n] -> the first `frames` of its frames, out [frames, bands]; frames is at most mel_count.
 * Thread-safe. */
bool mel_frames(const struct mel *mel, const float *x, int64_t n, int64_t frames, float *out,
                struct err *err);
#endif
