/* spectrum.c: see spectrum.h. */
#include "audio/spectrum.h"
#include <math.h>
#include <stdlib.h>

enum { MOST_FACTORS = 16 };

struct spectrum {
    int64_t n;
    int64_t factors[MOST_FACTORS]; /* their product is n; the rest is 1 */
    struct spectrum_number *roots; /* [n]: exp(-2 pi i k / n) */
};

static bool factorize(struct spectrum *spectrum, struct err *err)
{
    int64_t rest = spectrum->n, count = 0;
    for (int64_t factor = 2; factor <= SPECTRUM_MOST_FACTOR; factor++)
        for (; rest % factor == 0; rest /= factor)
            spectrum->factors[count++] = factor;
    return rest == 1 || err_set(err, ERR_USAGE,
                                "a Fourier transform of %lld samples is not known: a prime factor "
                                "is above %d",
                                (long long)spectrum->n, SPECTRUM_MOST_FACTOR);
}

bool spectrum_new(int64_t n, struct spectrum **out, struct err *err)
{
    if (n < 2 || n > SPECTRUM_MOST_LENGTH)
        return err_set(err, ERR_USAGE, "a Fourier transform has 2 to %d samples, not %lld",
                       SPECTRUM_MOST_LENGTH, (long long)n);
    struct spectrum *spectrum = calloc(1, sizeof *spectrum);
    struct spectrum_number *roots = malloc((size_t)n * sizeof *roots);
    if (!spectrum || !roots) {
        free(spectrum);
        free(roots);
        return err_memory(err, "a Fourier transform");
    }
    *spectrum = (struct spectrum){ .n = n, .roots = roots };
    for (int64_t k = 0; k < n; k++) {
        double angle = -2 * M_PI * (double)k / (double)n;
        roots[k] = (struct spectrum_number){ cos(angle), sin(angle) };
    }
    if (!factorize(spectrum, err)) {
        spectrum_free(spectrum);
        return false;
    }
    *out = spectrum;
    return true;
}

void spectrum_free(struct spectrum *spectrum)
{
    if (!spectrum)
        return;
    free(spectrum->roots);
    free(spectrum);
}

static struct spectrum_number add_product(struct spectrum_number sum, struct spectrum_number a,
                                          struct spectrum_number b)
{
    return (struct spectrum_number){ sum.re + a.re * b.re - a.im * b.im,
                                     sum.im + a.re * b.im + a.im * b.re };
}

/* The transform of x[0], x[stride], .. (n of them) to out [n]: its parts, which are every
 * factors[0]-th of them, then their sums. n stride is the length of the whole. */
static void transform(const struct spectrum *spectrum, const double *x, int64_t stride,
                      const int64_t *factors, int64_t n, struct spectrum_number *out)
{
    static const struct spectrum_number zero = { 0, 0 };
    struct spectrum_number parts[SPECTRUM_MOST_FACTOR];
    if (n == 1) {
        out[0] = (struct spectrum_number){ x[0], 0 };
        return;
    }
    int64_t count = factors[0], part = n / count;
    for (int64_t r = 0; r < count; r++)
        transform(spectrum, x + r * stride, stride * count, factors + 1, part, out + r * part);
    for (int64_t k = 0; k < part; k++) {
        for (int64_t r = 0; r < count; r++)
            parts[r] = add_product(zero, out[r * part + k], spectrum->roots[r * k * stride]);
        for (int64_t q = 0; q < count; q++) {
            struct spectrum_number sum = parts[0];
            for (int64_t r = 1; r < count; r++)
                sum = add_product(sum, parts[r],
                                  spectrum->roots[r * q * part * stride % spectrum->n]);
            out[q * part + k] = sum;
        }
    }
}

void spectrum_power(const struct spectrum *spectrum, const double *x, struct spectrum_number *room,
                    double *power)
{
    transform(spectrum, x, 1, spectrum->factors, spectrum->n, room);
    for (int64_t k = 0; k <= spectrum->n / 2; k++)
        power[k] = room[k].re * room[k].re + room[k].im * room[k].im;
}
