/* fft.c: see fft.h. A block of a level multiplies its second half by one root, so that the inner
 * loop reads no table; blocks are finished depth first, so that most of the work is in the cache.
 */
#include <math.h>
#include <stdlib.h>
#include "privacy/fft.h"

static struct fft_number times(struct fft_number a, struct fft_number b)
{
    return (struct fft_number){ a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re };
}

bool fft_new(size_t n, struct fft *fft, struct err *err)
{
    *fft = (struct fft){ .n = n, .roots = malloc(n / 2 * sizeof *fft->roots) };
    if (!fft->roots)
        return err_memory(err, "a Fourier transform");
    fft->roots[0] = (struct fft_number){ 1, 0 };
    double angle = -M_PI / 2;
    for (size_t half = 1; half < n / 2; half *= 2, angle /= 2) {
        struct fft_number turn = { cos(angle), sin(angle) };
        for (size_t b = 0; b < half; b++)
            fft->roots[half + b] = times(fft->roots[b], turn);
    }
    return true;
}

void fft_free(struct fft *fft)
{
    free(fft->roots);
    *fft = (struct fft){ 0 };
}

/* x [size]: block b of those of its size, and then all blocks in it. */
static void forward_block(const struct fft_number *roots, struct fft_number *x, size_t size,
                          size_t b)
{
    size_t half = size / 2;
    struct fft_number root = roots[b];
    for (size_t i = 0; i < half; i++) {
        struct fft_number u = x[i], v = times(x[half + i], root);
        x[i] = (struct fft_number){ u.re + v.re, u.im + v.im };
        x[half + i] = (struct fft_number){ u.re - v.re, u.im - v.im };
    }
    if (half > 1) {
        forward_block(roots, x, half, 2 * b);
        forward_block(roots, x + half, half, 2 * b + 1);
    }
}

static void backward_block(const struct fft_number *roots, struct fft_number *x, size_t size,
                           size_t b)
{
    size_t half = size / 2;
    if (half > 1) {
        backward_block(roots, x, half, 2 * b);
        backward_block(roots, x + half, half, 2 * b + 1);
    }
    struct fft_number root = { roots[b].re, -roots[b].im };
    for (size_t i = 0; i < half; i++) {
        struct fft_number u = x[i], v = x[half + i];
        x[i] = (struct fft_number){ u.re + v.re, u.im + v.im };
        x[half + i] = times((struct fft_number){ u.re - v.re, u.im - v.im }, root);
    }
}

void fft_forward(const struct fft *fft, struct fft_number *x)
{
    forward_block(fft->roots, x, fft->n, 0);
}

void fft_backward(const struct fft *fft, struct fft_number *x)
{
    backward_block(fft->roots, x, fft->n, 0);
    for (size_t i = 0; i < fft->n; i++)
        x[i] = (struct fft_number){ x[i].re / (double)fft->n, x[i].im / (double)fft->n };
}

size_t fft_opposite(size_t p)
{
    size_t top = 1;
    while (top * 2 <= p)
        top *= 2;
    return p < 2 ? p : p ^ (top - 1);
}
