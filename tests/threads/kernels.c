/* kernels.c: our convolution kernels on several threads, for ThreadSanitizer: every way in which
 * they share out their work, and the weights that plans share. Also compares the bits with those of
 * one thread. Prints nothing and exits 0 if all is well. With an argument it races on purpose. */
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net/kernels/direct_conv.h"
#include "net/kernels/stem_conv.h"
#include "net/kernels/winograd_gradient.h"
#include "net/plan/shared_weights.h"

#define THREADS 3

static float *floats(size_t count)
{
    void *at = NULL;
    if (posix_memalign(&at, 64, (count + 16) * sizeof(float)) != 0)
        abort();
    float *all = at;
    for (size_t i = 0; i < count + 16; i++)
        all[i] = (float)(i * 2654435761u % 1024) / 512 - 1;
    return all;
}

static bool same(float *a, float *b, size_t count)
{
    bool equal = memcmp(a, b, count * sizeof(float)) == 0;
    free(a), free(b);
    return equal;
}

static struct winograd_conv conv(enum simd level, int64_t side, int64_t channels, int64_t dilation)
{
    return (struct winograd_conv){ .level = level,
                                   .batch = 2,
                                   .in_channels = channels,
                                   .out_channels = channels,
                                   .height = side,
                                   .width = side,
                                   .out_height = side,
                                   .out_width = side,
                                   .pad_top = dilation,
                                   .pad_left = dilation,
                                   .dilation = dilation,
                                   .relu = true };
}

static float *forward(struct winograd_conv w, int tile, int threads, size_t *count)
{
    w.threads = threads;
    winograd_conv_plan(&w, tile);
    size_t image = (size_t)(w.batch * w.in_blocks * w.lanes * w.height * w.width);
    float *x = floats(image), *y = floats(image), *u = floats(w.weight_floats);
    float *taps = floats((size_t)(w.in_channels * w.out_channels * 9));
    float *scratch = floats(w.scratch_floats);
    winograd_conv_weights(&w, taps, false, u);
    winograd_conv_run(&w, u, x, taps, NULL, y, scratch);
    free(x), free(u), free(taps), free(scratch);
    *count = image;
    return y;
}

static float *gradient(struct winograd_conv w, int threads, size_t *count)
{
    struct winograd_gradient g = { .conv = w };
    g.conv.threads = threads;
    winograd_gradient_plan(&g);
    const struct winograd_conv *c = &g.conv;
    size_t image = (size_t)(c->batch * c->in_blocks * c->lanes * c->height * c->width);
    *count = (size_t)(c->in_channels * c->out_channels * 9 + c->out_channels);
    float *x = floats(image), *scratch = floats(g.scratch_floats), *taps = floats(*count);
    winograd_gradient_run(&g, x, x, taps, taps + c->in_channels * c->out_channels * 9, scratch);
    free(x), free(scratch);
    return taps;
}

static float *stem(enum simd level, int threads, size_t *count)
{
    struct stem_conv c = { .level = level,
                           .batch = 2,
                           .out_channels = 40,
                           .height = 47,
                           .width = 61,
                           .out_height = 24,
                           .out_width = 31,
                           .pad_top = 3,
                           .pad_left = 3,
                           .threads = threads };
    stem_conv_plan(&c);
    *count = (size_t)(c.batch * c.out_blocks * c.lanes * c.out_height * c.out_width);
    float *x = floats((size_t)(c.batch * 3 * c.height * c.width)), *y = floats(*count);
    float *taps = floats((size_t)c.out_channels * 147), *u = floats(c.weight_floats);
    float *scratch = floats(c.scratch_floats);
    stem_conv_weights(&c, taps, taps, u);
    stem_conv_run(&c, u, x, y, scratch);
    free(x), free(taps), free(u), free(scratch);
    return y;
}

/* Two 1 x 1 convolutions of one input, of one image: the outputs of the second. */
static float *direct(enum simd level, int64_t side, int threads, size_t *count)
{
    struct direct_conv c[2];
    struct direct_work works[2];
    for (int i = 0; i < 2; i++) {
        c[i] = (struct direct_conv){ .level = level,
                                     .batch = 1,
                                     .in_channels = 70,
                                     .out_channels = 40 + 90 * i,
                                     .height = side,
                                     .width = side,
                                     .out_height = side,
                                     .out_width = side,
                                     .kernel = { 1, 1 },
                                     .stride = { 1, 1 },
                                     .dilation = { 1, 1 },
                                     .threads = threads };
        direct_conv_plan(&c[i]);
        *count = (size_t)(c[i].out_blocks * c[i].lanes * side * side);
        float *taps = floats((size_t)(c[i].in_channels * c[i].out_channels));
        float *u = floats(c[i].weight_floats);
        direct_conv_weights(&c[i], taps, NULL, u);
        works[i] = (struct direct_work){ &c[i], u, NULL, floats(*count) };
        free(taps);
    }
    float *x = floats((size_t)(c[0].in_blocks * c[0].lanes * side * side));
    direct_conv_join(c, 2);
    direct_conv_run(works, 2, x, NULL);
    free((void *)works[0].weights), free((void *)works[1].weights), free(works[0].y), free(x);
    return works[1].y;
}

static bool check_level(enum simd level)
{
    static const int64_t layers[][3] = { { 26, 40, 1 }, { 4, 130, 1 }, { 19, 24, 3 } };
    bool ok = true;
    size_t count;
    for (int i = 0; i < 3; i++) {
        struct winograd_conv w = conv(level, layers[i][0], layers[i][1], layers[i][2]);
        for (int tile = 2; tile <= 6; tile += 2)
            ok = same(forward(w, tile, 1, &count), forward(w, tile, THREADS, &count), count) && ok;
        ok = same(gradient(w, 1, &count), gradient(w, THREADS, &count), count) && ok;
    }
    ok = same(stem(level, 1, &count), stem(level, THREADS, &count), count) && ok;
    for (int64_t side = 4; side <= 26; side += 22) /* threads part the outputs; the pixels */
        ok =
            same(direct(level, side, 1, &count), direct(level, side, THREADS, &count), count) && ok;
    return ok;
}

struct user {
    pthread_t thread;
    struct plan_weights *weights;
    struct buffer *source;
    bool ok;
};

/* As a plan does: takes, fills if it is the first, reads, gives back. */
static void *use_weights(void *arg)
{
    struct user *user = arg;
    user->ok = true;
    for (uint64_t i = 0; i < 50; i++) {
        plan_weights_lock(user->weights);
        struct plan_weights_entry *entry =
            plan_weights_take(user->weights, user->source, i % 2, 4096);
        if (entry && !plan_weights_filled(entry)) {
            memset(plan_weights_at(entry), (int)(i % 2) + 1, 4096);
            plan_weights_set_filled(entry);
        }
        plan_weights_unlock(user->weights);
        if (!entry)
            abort();
        const char *at = plan_weights_at(entry);
        for (int k = 0; k < 4096; k++)
            user->ok = user->ok && at[k] == (char)(i % 2) + 1;
        plan_weights_return(user->weights, entry);
    }
    return NULL;
}

static bool check_weights(void)
{
    struct user users[THREADS];
    struct plan_weights *weights = plan_weights_new();
    struct buffer *source = buffer_new(16);
    bool ok = true;
    for (int i = 0; i < THREADS; i++) {
        users[i] = (struct user){ .weights = weights, .source = source };
        if (pthread_create(&users[i].thread, NULL, use_weights, &users[i]) != 0)
            abort();
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(users[i].thread, NULL);
        ok = ok && users[i].ok;
    }
    ok = ok && plan_weights_bytes(weights) == 0;
    buffer_release(source);
    plan_weights_free(weights);
    return ok;
}

/* All threads write one number, with no word between them. */
static int race(void)
{
    float *shared = floats(1);
#pragma omp parallel for num_threads(THREADS)
    for (int i = 0; i < 1000; i++)
        shared[0] += (float)i;
    int result = shared[0] > 1;
    free(shared);
    return result;
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        return race() ? 0 : 1;
    bool ok = check_weights();
    for (int level = SIMD_AVX2; level < SIMD_LEVELS; level++)
        if (winograd_conv_available((enum simd)level))
            ok = check_level((enum simd)level) && ok;
    if (!ok)
        fputs("threads change the result\n", stderr);
    return ok ? 0 : 1;
}
