/* resample.c: see resample.h. */
#include "audio/resample.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/divide.h"

enum { LANES = 8 };

/* weights [phases][taps]: output m is a sum of `taps` inputs from
 * m * step / phases (rounded down) - before on, with the weights of phase m * step % phases. */
struct filter {
    float *weights;
    int64_t phases, step, taps, before;
};

static int64_t common_divisor(int64_t a, int64_t b)
{
    return b == 0 ? a : common_divisor(b, a % b);
}

/* The filter `distance` inputs from its middle; cutoff: of the rate of the inputs. */
static double weight_at(double distance, double cutoff)
{
    double t = distance * cutoff, crossings = RESAMPLE_CROSSINGS;
    if (fabs(t) >= crossings)
        return 0;
    double window = cos(M_PI * t / crossings / 2);
    return cutoff * window * window * (t == 0 ? 1 : sin(M_PI * t) / (M_PI * t));
}

static bool filter_new(int64_t from, int64_t to, struct filter *out, struct err *err)
{
    int64_t divisor = common_divisor(from, to), phases = to / divisor, step = from / divisor;
    double cutoff = RESAMPLE_ROLLOFF * (to < from ? (double)to / (double)from : 1);
    int64_t before = (int64_t)ceil(RESAMPLE_CROSSINGS / cutoff);
    int64_t taps = ceil_div(2 * before + 1, LANES) * LANES;
    *out = (struct filter){ .phases = phases, .step = step, .taps = taps, .before = before };
    out->weights = malloc((size_t)(phases * taps) * sizeof *out->weights);
    if (!out->weights)
        return err_memory(err, "a resampling filter");
    for (int64_t p = 0; p < phases; p++)
        for (int64_t k = 0; k < taps; k++)
            out->weights[p * taps + k] =
                (float)weight_at((double)(k - before) - (double)p / (double)phases, cutoff);
    return true;
}

/* In a fixed order, so that all processors give the same. */
static float dot(const float *x, const float *weights, int64_t n)
{
    float sums[LANES] = { 0 }, sum = 0;
    for (int64_t k = 0; k < n; k += LANES)
        for (int i = 0; i < LANES; i++)
            sums[i] += x[k + i] * weights[k + i];
    for (int i = 0; i < LANES; i++)
        sum += sums[i];
    return sum;
}

bool resample(const float *x, int64_t n, int64_t from, int64_t to, float **out, int64_t *n_out,
              struct err *err)
{
    struct filter filter = { 0 };
    bool same = from == to;
    if (!same && !filter_new(from, to, &filter, err))
        return false;
    int64_t count = same ? n : ceil_div(n * filter.phases, filter.step);
    float *padded = calloc((size_t)(n + filter.before + filter.taps), sizeof *padded);
    float *y = malloc((size_t)count * sizeof *y);
    bool ok = (padded && y) || err_memory(err, "resampled sound");
    if (ok)
        memcpy(same ? y : padded + filter.before, x, (size_t)n * sizeof *x);
    for (int64_t m = 0; ok && !same && m < count; m++) {
        int64_t place = m * filter.step;
        y[m] = dot(padded + place / filter.phases,
                   filter.weights + place % filter.phases * filter.taps, filter.taps);
    }
    if (ok)
        *out = y, *n_out = count, y = NULL;
    free(padded);
    free(filter.weights);
    free(y);
    return ok;
}
