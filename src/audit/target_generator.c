/* target_generator.c: diffusion models under attack. Three measures of how well the network knows
 * an image, averaged over times and over noise that is the same for every image:
 *   loss    of the training, at fixed (t, noise)
 *   SecMI   (Duan et al. 2023): the image is moved along the model's own path to a time, a step
 *           further and back again; how far it comes back from where it was
 *   PIA     (Kong et al. 2023): the noise that the network sees in the clean image, against the one
 *           it sees after that very noise was added
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "audit/target.h"
#include "base/console.h"
#include "base/pool.h"
#include "diffusion/sampler.h"
#include "net/model/model_prepare.h"
#include "synth/generator.h"

#define BATCH SAMPLER_BATCH
#define TIMES 8      /* of the loss */
#define LATEST 0.5   /* share of the way to noise; what is mostly noise tells nothing */
#define NOISES 2     /* at every time */
#define PATH_STEPS 4 /* of SecMI, from the image to the first time */
#define PIA_TIMES 2
#define SEED_NOISE 0x6e6f697365
#define MAKE_STEPS 20

enum { LOSS, SECMI, PIA, MEASURES };

static void close_generator(struct target *target)
{
    if (target->state)
        generator_close(target->state);
    free(target->state);
    target->state = NULL;
}

static bool open_generator(struct target *target, const char *path, bool untrained, uint64_t seed,
                           const struct ctx *ctx, struct err *err)
{
    struct generator *generator = calloc(1, sizeof *generator);
    if (!generator)
        return err_memory(err, path);
    target->state = generator;
    target->config = &generator->config;
    return generator_open(path, BATCH, pool_workers(ctx->pool), generator, err) &&
           (!untrained || graph_initialize(generator->graph, seed, err));
}

/* A time that is the share u of the way from image to noise, as training draws them. */
static double time_at(enum process process, double u)
{
    switch (process) {
    case PROCESS_FLOW:
        return u;
    case PROCESS_EDM:
        return exp(-4 + 5 * u);
    case PROCESS_EPSILON:
    case PROCESS_V:
        return fmax(1, floor(u * PROCESS_STEPS));
    }
    return u;
}

/* A batch of images and the memory to work on it, each [BATCH, floats]. */
struct attack {
    struct generator *generator;
    struct denoiser denoiser;
    int64_t floats; /* that the network sees of an image */
    float *pixels;  /* [BATCH, 3, side, side] */
    float *image, *noise, *x, *moved, *back, *wanted, *conditions;
    double losses[TIMES * NOISES][BATCH], secmi[BATCH], pia[BATCH];
};

static void free_attack(struct attack *a)
{
    denoiser_free(&a->denoiser);
    free(a->pixels);
    free(a->image);
    free(a->noise);
    free(a->x);
    free(a->moved);
    free(a->back);
    free(a->wanted);
    free(a->conditions);
}

static bool new_attack(struct generator *generator, int threads, struct attack *a, struct err *err)
{
    *a = (struct attack){ .generator = generator };
    if (!denoiser_new(generator->graph, threads, &a->denoiser, err))
        return false;
    a->floats = a->denoiser.floats;
    float **arrays[] = { &a->image, &a->noise, &a->x, &a->moved, &a->back, &a->wanted };
    bool ok = true;
    for (size_t i = 0; ok && i < sizeof arrays / sizeof *arrays; i++)
        ok = (*arrays[i] = calloc((size_t)(BATCH * a->floats), sizeof **arrays[i])) != NULL;
    a->conditions = calloc((size_t)(BATCH * (generator->conditions + 1)), sizeof *a->conditions);
    a->pixels =
        calloc((size_t)(BATCH * 3 * generator->side_px * generator->side_px), sizeof *a->pixels);
    return (ok && a->conditions && a->pixels) || err_memory(err, "the attack");
}

/* The network at one time on x [BATCH, floats]. */
static const float *run(struct attack *a, double time, const float *x, struct process_at *at,
                        struct err *err)
{
    struct process_at all[BATCH];
    *at = process_at(a->generator->process, time);
    for (int b = 0; b < BATCH; b++)
        all[b] = *at;
    return denoiser_run(&a->denoiser, all, x, a->generator->conditions > 0 ? a->conditions : NULL,
                        err);
}

/* The mean of |x - y|^power of every image; out [BATCH]. */
static void differences(const struct attack *a, const float *x, const float *y, int power,
                        double *out)
{
    for (int b = 0; b < BATCH; b++) {
        double sum = 0;
        for (int64_t k = 0; k < a->floats; k++) {
            double d = (double)x[b * a->floats + k] - (double)y[b * a->floats + k];
            sum += power == 2 ? d * d : d * d * d * d;
        }
        out[b] = sum / (double)a->floats;
    }
}

static bool attack_by_loss(struct attack *a, struct err *err)
{
    for (int t = 0; t < TIMES; t++)
        for (int n = 0; n < NOISES; n++) {
            double time = time_at(a->generator->process, LATEST * (t + 0.5) / TIMES);
            struct process_at at = process_at(a->generator->process, time);
            sampler_noise(SEED_NOISE, t * NOISES + n, a->floats, a->noise);
            for (int b = 0; b < BATCH; b++) {
                float *x = a->x + b * a->floats;
                process_mix(&at, a->floats, a->image + b * a->floats, a->noise, x,
                            a->wanted + b * a->floats);
                for (int64_t k = 0; k < a->floats; k++)
                    x[k] /= (float)at.scale; /* the denoiser scales */
            }
            const float *f = run(a, time, a->x, &at, err);
            if (!f)
                return false;
            differences(a, f, a->wanted, 2, a->losses[t * NOISES + n]);
        }
    return true;
}

/* x at `from`, moved along the model's path to `to`. */
static bool move(struct attack *a, double from, double to, const float *x, float *out,
                 struct err *err)
{
    struct process_at at;
    const float *f = run(a, from, x, &at, err);
    if (!f)
        return false;
    int64_t count = BATCH * a->floats;
    process_slope(a->generator->process, &at, count, x, f, a->wanted);
    process_move(a->generator->process, from, to, count, x, a->wanted, out);
    return true;
}

static bool attack_by_secmi(struct attack *a, struct err *err)
{
    enum process process = a->generator->process;
    double first = time_at(process, 0.01), last = time_at(process, 0.2);
    double beyond = time_at(process, 0.25), from = first;
    struct process_at at = process_at(process, first);
    for (int64_t k = 0; k < BATCH * a->floats; k++)
        a->x[k] = (float)at.keep * a->image[k];
    for (int s = 1; s <= PATH_STEPS; s++) {
        double to = process == PROCESS_EDM ? first * pow(last / first, (double)s / PATH_STEPS)
                                           : first + (last - first) * s / PATH_STEPS;
        if (process == PROCESS_EPSILON || process == PROCESS_V)
            to = floor(to);
        if (!move(a, from, to, a->x, a->moved, err))
            return false;
        memcpy(a->x, a->moved, (size_t)(BATCH * a->floats) * sizeof *a->x);
        from = to;
    }
    if (!move(a, from, beyond, a->x, a->moved, err) ||
        !move(a, beyond, from, a->moved, a->back, err))
        return false;
    differences(a, a->back, a->x, 2, a->secmi);
    return true;
}

/* The noise that the network sees in x at a time -> out. */
static bool noise_in(struct attack *a, double time, const float *x, float *out, struct err *err)
{
    struct process_at at;
    const float *f = run(a, time, x, &at, err);
    if (!f)
        return false;
    for (int64_t k = 0; k < BATCH * a->floats; k++) {
        double image = at.from_x * (double)x[k] + at.from_f * (double)f[k];
        out[k] = (float)(((double)x[k] - at.keep * image) / at.spread);
    }
    return true;
}

/* Every image of x [BATCH, floats] to mean square 1. */
static void normalise(const struct attack *a, float *x)
{
    for (int b = 0; b < BATCH; b++) {
        double sum = 0;
        float *one = x + b * a->floats;
        for (int64_t k = 0; k < a->floats; k++)
            sum += (double)one[k] * (double)one[k];
        double scale = sum > 0 ? sqrt((double)a->floats / sum) : 1;
        for (int64_t k = 0; k < a->floats; k++)
            one[k] = (float)((double)one[k] * scale);
    }
}

static bool attack_by_pia(struct attack *a, struct err *err)
{
    static const double shares[PIA_TIMES] = { 0.2, 0.4 };
    enum process process = a->generator->process;
    double first = time_at(process, 0.01), part[BATCH];
    struct process_at at = process_at(process, first);
    memset(a->pia, 0, sizeof a->pia);
    for (int64_t k = 0; k < BATCH * a->floats; k++)
        a->x[k] = (float)at.keep * a->image[k];
    if (!noise_in(a, first, a->x, a->noise, err))
        return false;
    normalise(a, a->noise);
    for (int t = 0; t < PIA_TIMES; t++) {
        double time = time_at(process, shares[t]);
        at = process_at(process, time);
        for (int64_t k = 0; k < BATCH * a->floats; k++)
            a->x[k] = (float)(at.keep * (double)a->image[k] + at.spread * (double)a->noise[k]);
        if (!noise_in(a, time, a->x, a->back, err))
            return false;
        differences(a, a->back, a->noise, 4, part);
        for (int b = 0; b < BATCH; b++)
            a->pia[b] += part[b] / PIA_TIMES;
    }
    return true;
}

/* Losses at different times have different sizes: each is divided by its mean over all samples.
 * raw [TIMES * NOISES, n] -> loss [n]. */
static void average_losses(const double *raw, int64_t n, double *loss)
{
    for (int64_t i = 0; i < n; i++)
        loss[i] = 0;
    for (int r = 0; r < TIMES * NOISES; r++) {
        double mean = 0;
        for (int64_t i = 0; i < n; i++)
            mean += raw[r * n + i] / (double)n;
        for (int64_t i = 0; i < n; i++)
            loss[i] += raw[r * n + i] / fmax(mean, 1e-30) / (TIMES * NOISES);
    }
}

/* Images [first, first + BATCH) of the set; beyond its end the last one again. */
static bool fill(struct attack *a, const struct audit_set *set, int64_t first, struct err *err)
{
    struct generator *g = a->generator;
    int64_t floats = 3 * g->side_px * g->side_px;
    for (int64_t b = 0; b < BATCH; b++) {
        int64_t i = first + b < set->n ? first + b : set->n - 1, width = 0, height = 0;
        const struct image *image = &set->images[i];
        if (!model_input_size(&g->config, image->width, image->height, &width, &height, err))
            return err_prefix(err, set->names[i]);
        if (3 * width * height != floats)
            return err_set(err, ERR_USAGE, "%s: %lld x %lld px, but the model makes %lld x %lld",
                           set->names[i], (long long)width, (long long)height,
                           (long long)g->side_px, (long long)g->side_px);
        if (!model_prepare(&g->config, image, a->pixels + b * floats, err))
            return err_prefix(err, set->names[i]);
        generator_condition(g, set->label[i], -1, a->conditions + b * g->conditions);
    }
    return generator_learnt(g, BATCH, a->pixels, a->image, err);
}

static bool measure_generator(struct target *target, const struct audit_set *set,
                              const struct ctx *ctx, struct signal *out, struct err *err)
{
    struct attack a;
    double *raw = calloc((size_t)(TIMES * NOISES * set->n), sizeof *raw);
    bool ok = (raw || err_memory(err, "the losses")) &&
              new_attack(target->state, pool_workers(ctx->pool), &a, err);
    if (!ok) {
        free(raw);
        return false;
    }
    console_begin(ctx->console, "losses", set->n, "patches");
    for (int64_t first = 0; ok && first < set->n; first += BATCH) {
        ok = !ctx_stopped(ctx) || err_stopped(err);
        ok = ok && fill(&a, set, first, err) && attack_by_loss(&a, err) &&
             attack_by_secmi(&a, err) && attack_by_pia(&a, err);
        int64_t n = set->n - first < BATCH ? set->n - first : BATCH;
        for (int64_t b = 0; ok && b < n; b++) {
            for (int r = 0; r < TIMES * NOISES; r++)
                raw[r * set->n + first + b] = a.losses[r][b];
            out[SECMI].loss[first + b] = a.secmi[b];
            out[PIA].loss[first + b] = a.pia[b];
        }
        console_advance(ctx->console, n);
    }
    console_end(ctx->console);
    average_losses(raw, set->n, out[LOSS].loss);
    for (int m = 0; m < MEASURES; m++)
        for (int64_t i = 0; i < set->n; i++)
            out[m].confidence[i] = -out[m].loss[i];
    free(raw);
    free_attack(&a);
    return ok;
}

static bool make_images(struct target *target, int64_t n, uint64_t seed, const struct ctx *ctx,
                        struct image *out, struct err *err)
{
    struct generator *g = target->state;
    const struct sampler_options options = { .process = g->process,
                                             .rule = SAMPLER_HEUN,
                                             .steps = MAKE_STEPS,
                                             .guidance = 1,
                                             .seed = seed,
                                             .threads = pool_workers(ctx->pool) };
    struct sampler *sampler = NULL;
    float *conditions = calloc((size_t)(BATCH * (g->conditions + 1)), sizeof *conditions);
    float *made = calloc((size_t)(BATCH * g->floats), sizeof *made);
    size_t image_bytes = (size_t)(3 * g->side_px * g->side_px);
    uint8_t *pixels = calloc(BATCH, image_bytes);
    bool ok = (conditions && made && pixels) || err_memory(err, "samples");
    ok = ok && sampler_new(g->graph, &options, &sampler, err);
    console_begin(ctx->console, "samples", n, "patches");
    for (int64_t first = 0, count; ok && first < n; first += count) {
        count = n - first < sampler_most(sampler) ? n - first : sampler_most(sampler);
        for (int64_t i = 0; i < count; i++)
            generator_condition(
                g,
                g->config.generator.by_class ? (int32_t)((first + i) % g->config.num_classes) : -1,
                -1, conditions + i * g->conditions);
        ok = (!ctx_stopped(ctx) || err_stopped(err)) &&
             sampler_run(sampler, first, count, conditions, made, err) &&
             generator_pixels(g, count, made, pixels, err);
        for (int64_t i = 0; ok && i < count; i++) {
            ok = image_new(&out[first + i], g->side_px, g->side_px, 3, err);
            if (ok)
                memcpy(out[first + i].px, pixels + (size_t)i * image_bytes, image_bytes);
        }
        console_advance(ctx->console, count);
    }
    console_end(ctx->console);
    sampler_free(sampler);
    free(conditions);
    free(made);
    free(pixels);
    return ok;
}

const struct audited_kind target_generator = {
    .name = "generator",
    .n_signals = MEASURES,
    .signals = { { "loss at fixed t and noise", "a low training loss is a member" },
                 { "SecMI", "a path there and back that returns to the image is a member's" },
                 { "PIA", "noise that is found again where it was put is a member's" } },
    .open = open_generator,
    .close = close_generator,
    .measure = measure_generator,
    .make = make_images,
};
