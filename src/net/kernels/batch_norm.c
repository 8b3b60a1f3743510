/* batch_norm.c: see batch_norm.h. The variance is found in the same pass as the mean, about a point
 * near it: the average of some pixels. If there are enough blocks of channels a thread does both
 * passes over a block, which may still be in its caches; else the images are distributed too. */
#include "net/kernels/batch_norm.h"
#include <math.h>
#include <string.h>
#include "base/divide.h"

#define WIDE 16  /* floats that are processed together; a multiple of every block */
#define PART 64  /* so many of them are summed as floats before they are added as doubles */
#define LOOKS 16 /* pixels that are averaged */

typedef float wide __attribute__((vector_size(WIDE * sizeof(float))));
typedef float wide_at __attribute__((vector_size(WIDE * sizeof(float)), aligned(4), may_alias));
typedef int32_t wide_bits __attribute__((vector_size(WIDE * sizeof(float))));

static const wide_bits wide_places = { 1 << 0,  1 << 1,  1 << 2,  1 << 3, 1 << 4,  1 << 5,
                                       1 << 6,  1 << 7,  1 << 8,  1 << 9, 1 << 10, 1 << 11,
                                       1 << 12, 1 << 13, 1 << 14, 1 << 15 };

/* What is done to the channels of a block, for each of WIDE floats. */
struct batch_norm_lanes {
    float mean[WIDE], scale[WIDE], shift[WIDE];
    float offset[WIDE], slope[WIDE]; /* backward */
};

struct batch_norm_loops {
    void (*moments)(int64_t n, const float *x, const float *shift, double *sum, double *square);
    void (*apply)(int64_t n, const float *x, const struct batch_norm_lanes *p, bool relu, float *y,
                  uint16_t *passed);
    void (*products)(int64_t n, const float *x, const float *dy, const struct batch_norm_lanes *p,
                     bool relu, const uint16_t *passed, double *sum, double *product);
    void (*apply_back)(int64_t n, const float *x, const float *dy, const struct batch_norm_lanes *p,
                       bool relu, const uint16_t *passed, float *dx);
};

#define LOOPS "net/kernels/batch_norm_loops.h"
#include "net/kernels/each_level.h"

/* One call: arrays, and what is summed. */
struct pass {
    const struct batch_norm *b;
    const struct batch_norm_loops *loops;
    const float *x, *dy, *weight, *bias;
    float *mean, *variance, *dweight, *dbias;
    float *out;
    uint16_t *passed; /* NULL: none */
    double *sums;     /* [blocks][images][2][block] */
    bool back;
};

size_t batch_norm_scratch(const struct batch_norm *b)
{
    return (size_t)(b->images * b->blocks * 2 * b->block) * sizeof(double);
}

static int64_t run_floats(const struct batch_norm *b)
{
    return b->area * b->block;
}

static int64_t run_at(const struct batch_norm *b, int64_t block, int64_t image)
{
    return (image * b->blocks + block) * run_floats(b);
}

static int64_t run_words(const struct batch_norm *b)
{
    return ceil_div(run_floats(b), WIDE);
}

size_t batch_norm_passed_bytes(const struct batch_norm *b)
{
    return (size_t)(b->images * b->blocks * run_words(b)) * sizeof(uint16_t);
}

static uint16_t *passed_of(const struct pass *p, int64_t block, int64_t image)
{
    return p->passed ? p->passed + (image * p->b->blocks + block) * run_words(p->b) : NULL;
}

static double *sums_of(const struct pass *p, int64_t block, int64_t image)
{
    return p->sums + (block * p->b->images + image) * 2 * p->b->block;
}

/* Channels of a block that are no padding. */
static int64_t width_of(const struct batch_norm *b, int64_t block)
{
    int64_t left = b->channels - block * b->block;
    return left < b->block ? left : b->block;
}

/* A point near the mean of each channel: of pixels spread over the first image. */
static void find_shift(const struct pass *p, int64_t block, float shift[WIDE])
{
    const struct batch_norm *b = p->b;
    const float *x = p->x + run_at(b, block, 0);
    int64_t looks = b->area < LOOKS ? b->area : LOOKS;
    for (int64_t c = 0; c < b->block; c++) {
        double sum = 0;
        for (int64_t i = 0; i < looks; i++)
            sum += (double)x[i * b->area / looks * b->block + c];
        for (int64_t k = c; k < WIDE; k += b->block)
            shift[k] = (float)(sum / (double)looks);
    }
}

/* mean, scale and shift of the forward pass. */
static void find_lanes(const struct pass *p, int64_t block, struct batch_norm_lanes *lanes)
{
    const struct batch_norm *b = p->b;
    memset(lanes, 0, sizeof *lanes);
    for (int64_t k = 0; k < WIDE; k++) {
        int64_t c = block * b->block + k % b->block;
        if (c >= b->channels)
            continue; /* padding stays 0 */
        lanes->mean[k] = p->mean[c];
        lanes->scale[k] =
            (float)((double)p->weight[c] / sqrt((double)p->variance[c] + (double)b->epsilon));
        lanes->shift[k] = p->bias[c];
    }
}

/* What the sums of a block need: forward a point near the mean, in place of the mean. */
static void prepare(const struct pass *p, int64_t block, struct batch_norm_lanes *lanes)
{
    if (p->back)
        find_lanes(p, block, lanes);
    else
        find_shift(p, block, lanes->mean);
}

static void add_up(const struct pass *p, int64_t block, int64_t image,
                   const struct batch_norm_lanes *lanes)
{
    const struct batch_norm *b = p->b;
    double a[WIDE] = { 0 }, c[WIDE] = { 0 }, *to = sums_of(p, block, image);
    int64_t n = run_floats(b), at = run_at(b, block, image);
    if (p->back)
        p->loops->products(n, p->x + at, p->dy + at, lanes, b->relu, passed_of(p, block, image), a,
                           c);
    else
        p->loops->moments(n, p->x + at, lanes->mean, a, c);
    for (int64_t k = 0; k < b->block; k++) {
        to[k] = to[b->block + k] = 0;
        for (int64_t l = k; l < WIDE; l += b->block)
            to[k] += a[l], to[b->block + k] += c[l];
    }
}

/* From the sums of all images to mean and variance, or to the gradients of weight and bias. */
static void finish_block(const struct pass *p, int64_t block, const struct batch_norm_lanes *lanes)
{
    const struct batch_norm *b = p->b;
    double count = (double)(b->images * b->area);
    for (int64_t k = 0; k < width_of(b, block); k++) {
        int64_t c = block * b->block + k;
        double sum = 0, other = 0;
        for (int64_t i = 0; i < b->images; i++) {
            sum += sums_of(p, block, i)[k];
            other += sums_of(p, block, i)[b->block + k];
        }
        if (p->back) {
            p->dbias[c] = (float)sum;
            p->dweight[c] = (float)(other / sqrt((double)p->variance[c] + (double)b->epsilon));
        } else {
            double middle = sum / count, spread = other / count - middle * middle;
            p->mean[c] = (float)((double)lanes->mean[k] + middle);
            p->variance[c] = (float)(spread > 0 ? spread : 0);
        }
    }
}

/* What the outputs of a block need. */
static void find_outputs(const struct pass *p, int64_t block, struct batch_norm_lanes *lanes)
{
    const struct batch_norm *b = p->b;
    double count = (double)(b->images * b->area);
    find_lanes(p, block, lanes);
    for (int64_t k = 0; p->back && !b->given && k < WIDE; k++) {
        int64_t c = block * b->block + k % b->block;
        if (c >= b->channels)
            continue;
        double variance = (double)p->variance[c] + (double)b->epsilon;
        lanes->offset[k] = (float)((double)p->dbias[c] / count);
        lanes->slope[k] = (float)((double)p->dweight[c] / sqrt(variance) / count);
    }
}

static void put_out(const struct pass *p, int64_t block, int64_t image,
                    const struct batch_norm_lanes *lanes)
{
    const struct batch_norm *b = p->b;
    int64_t n = run_floats(b), at = run_at(b, block, image);
    if (p->back)
        p->loops->apply_back(n, p->x + at, p->dy + at, lanes, b->relu, passed_of(p, block, image),
                             p->out + at);
    else
        p->loops->apply(n, p->x + at, lanes, b->relu, p->out + at, passed_of(p, block, image));
}

static void do_block(const struct pass *p, int64_t block, bool sums)
{
    struct batch_norm_lanes lanes;
    if (sums) {
        prepare(p, block, &lanes);
        for (int64_t i = 0; i < p->b->images; i++)
            add_up(p, block, i, &lanes);
        finish_block(p, block, &lanes);
    }
    find_outputs(p, block, &lanes);
    for (int64_t i = 0; i < p->b->images; i++)
        put_out(p, block, i, &lanes);
}

static void run_pass(const struct pass *p)
{
    const struct batch_norm *b = p->b;
    bool sums = p->back || !b->given;
    int64_t runs = b->blocks * b->images;
    if (b->blocks % b->threads == 0 || b->blocks >= 8 * b->threads) {
#pragma omp parallel for num_threads(b->threads) schedule(static) if (b->threads > 1)
        for (int64_t block = 0; block < b->blocks; block++)
            do_block(p, block, sums);
        return;
    }
#pragma omp parallel num_threads(b->threads)
    {
        struct batch_norm_lanes lanes;
#pragma omp for schedule(static)
        for (int64_t i = 0; i < (sums ? runs : 0); i++) {
            prepare(p, i / b->images, &lanes);
            add_up(p, i / b->images, i % b->images, &lanes);
        }
#pragma omp for schedule(static)
        for (int64_t block = 0; block < (sums ? b->blocks : 0); block++) {
            prepare(p, block, &lanes);
            finish_block(p, block, &lanes);
        }
#pragma omp for schedule(static)
        for (int64_t i = 0; i < runs; i++) {
            find_outputs(p, i / b->images, &lanes);
            put_out(p, i / b->images, i % b->images, &lanes);
        }
    }
}

void batch_norm_run(const struct batch_norm *b, const float *x, const float *weight,
                    const float *bias, float *mean, float *variance, float *y, uint16_t *passed,
                    void *scratch)
{
    struct pass p = { .b = b,
                      .loops = SIMD_PICK(b->level, &loops, &loops_portable),
                      .x = x,
                      .weight = weight,
                      .bias = bias,
                      .mean = mean,
                      .variance = variance,
                      .out = y,
                      .passed = passed,
                      .sums = scratch };
    run_pass(&p);
}

void batch_norm_back(const struct batch_norm *b, const float *x, const float *mean,
                     const float *variance, const float *weight, const float *bias, const float *dy,
                     const uint16_t *passed, float *dx, float *dweight, float *dbias, void *scratch)
{
    struct pass p = { .b = b,
                      .loops = SIMD_PICK(b->level, &loops, &loops_portable),
                      .x = x,
                      .dy = dy,
                      .weight = weight,
                      .bias = bias,
                      .mean = (float *)mean,
                      .variance = (float *)variance,
                      .dweight = dweight,
                      .dbias = dbias,
                      .out = dx,
                      .passed = (uint16_t *)passed,
                      .sums = scratch,
                      .back = true };
    run_pass(&p);
}
