/* resample.h: sound at another rate: a sinc low-pass filter with a Hann window, one set of weights
 * for each of the places that an output can have between two inputs (polyphase). It is torchaudio's
 * functional.resample with lowpass_filter_width RESAMPLE_CROSSINGS and rolloff RESAMPLE_ROLLOFF. */
#ifndef AUDIO_RESAMPLE_H
#define AUDIO_RESAMPLE_H
#include <stdint.h>
#include "base/err.h"

#define RESAMPLE_CROSSINGS 16 /* zero crossings on each side of the filter */
#define RESAMPLE_ROLLOFF 0.94 /* where the filter ends, of half the lower rate */

/* x [n] at the rate `from` -> *out [*n_out], the caller's, n_out = ceil(n to / from); before and
 * after x all is silent. At the same rate a copy. Thread-safe. */
bool resample(const float *x, int64_t n, int64_t from, int64_t to, float **out, int64_t *n_out,
              struct err *err);
#endif
