/* confusion.c: see confusion.h. */
#include "verdict/confusion.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "verdict/roc_bootstrap.h"

#define MOST_TRIES 1000

const char *const kappa_weights_names[] = { "none", "linear", "quadratic", NULL };

bool confusion_new(const struct class_list *classes, struct confusion *out, struct err *err)
{
    *out = (struct confusion){ .counts = calloc(classes->n * classes->n + 1, sizeof *out->counts) };
    bool ok = out->counts || err_memory(err, "the counts of classes");
    for (size_t i = 0; ok && i < classes->n; i++)
        ok = class_list_add(&out->classes, classes->names[i], strlen(classes->names[i]), err);
    if (!ok)
        confusion_free(out);
    return ok;
}

void confusion_free(struct confusion *confusion)
{
    class_list_free(&confusion->classes);
    free(confusion->counts);
    *confusion = (struct confusion){ 0 };
}

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : NAN;
}

static double weight_of(size_t a, size_t b, enum kappa_weights weights)
{
    const double apart = (double)a - (double)b;
    return weights == KAPPA_NONE ? (a != b) : weights == KAPPA_LINEAR ? fabs(apart) : apart * apart;
}

double confusion_kappa(const int64_t *counts, size_t n_classes, enum kappa_weights weights)
{
    const size_t n = n_classes;
    double *sums = calloc(2 * n + 1, sizeof *sums); /* of rows, then of columns */
    double total = 0, seen = 0, expected = 0;
    for (size_t i = 0; sums && i < n * n; i++) {
        sums[i / n] += (double)counts[i];
        sums[n + i % n] += (double)counts[i];
        total += (double)counts[i];
        seen += weight_of(i / n, i % n, weights) * (double)counts[i];
    }
    for (size_t i = 0; sums && i < n * n; i++)
        expected += weight_of(i / n, i % n, weights) * sums[i / n] * sums[n + i % n];
    free(sums);
    return expected > 0 ? 1 - seen * total / expected : NAN;
}

/* Of K classes (Gorodkin 2004). */
static double matthews(const struct confusion_class *classes, size_t n, double total)
{
    double right = 0, both = 0, truth = 0, called = 0;
    for (size_t k = 0; k < n; k++) {
        right += (double)classes[k].right;
        both += (double)classes[k].truth * (double)classes[k].called;
        truth += (double)classes[k].truth * (double)classes[k].truth;
        called += (double)classes[k].called * (double)classes[k].called;
    }
    return ratio(right * total - both, sqrt((total * total - truth) * (total * total - called)));
}

static void measure_class(struct confusion_class *class, double total)
{
    const double truth = (double)class->truth, called = (double)class->called;
    const double right = (double)class->right;
    class->precision = ratio(right, called);
    class->recall = ratio(right, truth);
    class->specificity = ratio(total - truth - called + right, total - truth);
    class->f1 = ratio(2 * right, truth + called);
}

bool confusion_measure(const struct confusion *confusion, enum kappa_weights weights,
                       struct confusion_measures *out, struct err *err)
{
    const size_t n = confusion->classes.n;
    *out = (struct confusion_measures){ .classes = calloc(n + 1, sizeof *out->classes) };
    if (!out->classes)
        return err_memory(err, "the measures of classes");
    for (size_t i = 0; i < n * n; i++) {
        out->n += confusion->counts[i];
        out->classes[i / n].truth += confusion->counts[i];
        out->classes[i % n].called += confusion->counts[i];
        out->classes[i / n].right += i / n == i % n ? confusion->counts[i] : 0;
    }
    if (out->n == 0) {
        free(out->classes);
        return err_set(err, ERR_MISSING, "nothing has both a true class and a predicted one");
    }
    const double total = (double)out->n;
    double right = 0, recalls = 0, f1 = 0, weighted = 0;
    int64_t occur = 0, with_f1 = 0;
    for (size_t k = 0; k < n; k++) {
        struct confusion_class *class = &out->classes[k];
        measure_class(class, total);
        right += (double)class->right;
        recalls += class->truth > 0 ? class->recall : 0, occur += class->truth > 0;
        f1 += isnan(class->f1) ? 0 : class->f1, with_f1 += !isnan(class->f1);
        weighted += isnan(class->f1) ? 0 : class->f1 * (double)class->truth;
    }
    out->accuracy = right / total;
    out->balanced_accuracy = recalls / (double)occur;
    out->macro_f1 = f1 / (double)with_f1;
    out->weighted_f1 = weighted / total;
    out->kappa = confusion_kappa(confusion->counts, n, weights);
    out->mcc = matthews(out->classes, n, total);
    return true;
}

/* A replicate: every pair is drawn as often as there are pairs. ends [cells]: running counts. */
static double draw_kappa(const struct confusion *confusion, enum kappa_weights weights,
                         const int64_t *ends, int64_t *drawn, struct rng *rng)
{
    const size_t n = confusion->classes.n, cells = n * n;
    const uint32_t total = (uint32_t)ends[cells - 1], too_low = (0 - total) % total;
    memset(drawn, 0, cells * sizeof *drawn);
    for (uint32_t i = 0; i < total; i++) {
        int64_t pair = roc_bootstrap_below(rng, total, too_low);
        size_t low = 0, high = cells - 1;
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (pair < ends[middle])
                high = middle;
            else
                low = middle + 1;
        }
        drawn[low]++;
    }
    return confusion_kappa(drawn, n, weights);
}

bool confusion_kappa_interval(const struct confusion *confusion, enum kappa_weights weights,
                              int64_t replicates, uint64_t seed, double *low, double *high,
                              struct err *err)
{
    const size_t cells = confusion->classes.n * confusion->classes.n;
    int64_t *ends = calloc(cells + 1, sizeof *ends), *drawn = calloc(cells + 1, sizeof *drawn);
    double *kappas = calloc((size_t)replicates + 1, sizeof *kappas);
    bool ok = (ends && drawn && kappas) || err_memory(err, "the bootstrap");
    for (size_t i = 0; ok && i < cells; i++)
        ends[i] = confusion->counts[i] + (i > 0 ? ends[i - 1] : 0);
    if (ok && (ends[cells - 1] < 1 || ends[cells - 1] > INT32_MAX))
        ok = err_set(err, ERR_USAGE,
                     "too few or too many counts for a bootstrap; pass --bootstrap 0");
    for (int64_t r = 0; ok && r < replicates; r++) {
        struct rng rng = rng_new(seed, rng_hash("kappa bootstrap"), (uint64_t)r);
        kappas[r] = NAN;
        for (int tries = 0; tries < MOST_TRIES && isnan(kappas[r]); tries++)
            kappas[r] = draw_kappa(confusion, weights, ends, drawn, &rng);
        if (isnan(kappas[r]))
            ok = err_set(err, ERR_FORMAT,
                         "almost all is of one class: no bootstrap of kappa; pass --bootstrap 0");
    }
    if (ok)
        roc_bootstrap_interval(kappas, replicates, low, high);
    free(ends), free(drawn), free(kappas);
    return ok;
}

void confusion_put_csv(const struct confusion *confusion, FILE *stream)
{
    const struct class_list *classes = &confusion->classes;
    fputs("truth", stream);
    for (size_t i = 0; i < classes->n; i++) {
        fputc(',', stream);
        csv_write_cell(stream, classes->names[i]);
    }
    for (size_t row = 0; row < classes->n; row++) {
        fputc('\n', stream);
        csv_write_cell(stream, classes->names[row]);
        for (size_t i = 0; i < classes->n; i++)
            fprintf(stream, ",%lld", (long long)confusion->counts[row * classes->n + i]);
    }
    fputc('\n', stream);
}
