/* fft.h: the discrete Fourier transform of a power of two of complex numbers, in place. Forwards it
 * leaves the frequencies in bit-reversed order and backwards it takes them so: between the two only
 * pairs of opposite frequencies matter. */
#ifndef PRIVACY_FFT_H
#define PRIVACY_FFT_H
#include <stddef.h>
#include "base/err.h"

struct fft_number {
    double re, im;
};

struct fft {
    size_t n;                 /* a power of two, at least 2 */
    struct fft_number *roots; /* [n / 2], in bit-reversed order */
};

/* Takes 8 n bytes; free with fft_free. False only if out of memory. */
bool fft_new(size_t n, struct fft *fft, struct err *err);
void fft_free(struct fft *fft);

void fft_forward(const struct fft *fft, struct fft_number *x /* [n] */);
/* The inverse, divided by n. */
void fft_backward(const struct fft *fft, struct fft_number *x /* [n] */);

/* Where the opposite of the frequency at place p is; p itself for the first two. */
size_t fft_opposite(size_t p);
#endif
