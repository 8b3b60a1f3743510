/* spectrum.h: the power spectrum of so many samples, by a Fourier transform in double precision
 * whose length has prime factors of up to SPECTRUM_MOST_FACTOR (mixed radix; that of privacy/fft.h
 * is for powers of two). */
#ifndef AUDIO_SPECTRUM_H
#define AUDIO_SPECTRUM_H
#include <stdint.h>
#include "base/err.h"

#define SPECTRUM_MOST_FACTOR 13
#define SPECTRUM_MOST_LENGTH 65536

struct spectrum_number {
    double re, im;
};

struct spectrum;

/* *out is the caller's; free with spectrum_free. */
bool spectrum_new(int64_t n, struct spectrum **out, struct err *err);
void spectrum_free(struct spectrum *spectrum); /* NULL-safe */
/* x [n] real -> |X|^2 [n / 2 + 1]; room [n] is overwritten. Thread-safe. */
void spectrum_power(const struct spectrum *spectrum, const double *x, struct spectrum_number *room,
                    double *power);
#endif
