/* signals.c: see signals.h. */
#include <math.h>
#include <stdlib.h>
#include "audit/signals.h"

#define RMIA_A 0.3 /* how much a world that has seen the sample would raise its likelihood */
#define LEAST_VARIANCE 1e-12

bool signal_new(int64_t n, struct signal *out, struct err *err)
{
    *out = (struct signal){ .loss = calloc((size_t)n + 1, sizeof *out->loss),
                            .confidence = calloc((size_t)n + 1, sizeof *out->confidence) };
    if (out->loss && out->confidence)
        return true;
    signal_free(out);
    return err_memory(err, "the losses");
}

void signal_free(struct signal *signal)
{
    free(signal->loss);
    free(signal->confidence);
    free(signal->trained_on);
    *signal = (struct signal){ 0 };
}

void attack_loss(const struct signal *model, int64_t n, double *scores)
{
    for (int64_t i = 0; i < n; i++)
        scores[i] = -model->loss[i];
}

static bool knows(const struct signal *reference, int64_t i)
{
    return reference->trained_on && reference->trained_on[i];
}

void attack_rmia(const struct signal *model, const struct signal *references, int n_references,
                 bool likelihood, int64_t n, double *scores)
{
    for (int64_t i = 0; i < n; i++) {
        double out = 0, any = 0;
        int n_out = 0;
        for (int r = 0; r < n_references; r++) {
            double value = likelihood ? exp(-references[r].loss[i]) : references[r].loss[i];
            any += value / n_references;
            out += knows(&references[r], i) ? 0 : value;
            n_out += !knows(&references[r], i);
        }
        double world = n_out > 0 ? out / n_out : any;
        scores[i] = likelihood ? -model->loss[i] - log(((1 + RMIA_A) * world + 1 - RMIA_A) / 2)
                               : world - model->loss[i];
    }
}

/* Mean and variance of the references of one kind at a sample. */
struct fit {
    int count;
    double mean, variance;
};

static struct fit fit_at(const struct signal *references, int n, bool trained_on, int64_t i)
{
    struct fit fit = { 0 };
    double squares = 0;
    for (int r = 0; r < n; r++)
        if (knows(&references[r], i) == trained_on) {
            double delta = references[r].confidence[i] - fit.mean;
            fit.mean += delta / ++fit.count;
            squares += delta * (references[r].confidence[i] - fit.mean);
        }
    fit.variance = fit.count > 1 ? squares / (fit.count - 1) : NAN;
    return fit;
}

/* The mean over all samples of the variance of one kind. */
static double shared_variance(const struct signal *references, int n_references, bool trained_on,
                              int64_t n)
{
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        struct fit fit = fit_at(references, n_references, trained_on, i);
        if (fit.count > 1)
            sum += fit.variance, count++;
    }
    return count > 0 ? sum / (double)count : NAN;
}

static double log_normal(double x, double mean, double variance)
{
    double v = fmax(variance, LEAST_VARIANCE);
    return -(x - mean) * (x - mean) / (2 * v) - log(v) / 2;
}

bool attack_lira(const struct signal *model, const struct signal *references, int n_references,
                 int64_t n, double *scores, bool *online, struct err *err)
{
    *online = true;
    for (int64_t i = 0; i < n; i++) {
        struct fit out = fit_at(references, n_references, false, i);
        if (out.count < 2)
            return err_set(err, ERR_USAGE,
                           "LiRA needs at least two reference models that were not trained on a "
                           "sample; sample %lld has %d",
                           (long long)i + 1, out.count);
        *online = *online && fit_at(references, n_references, true, i).count > 0;
    }
    bool own = n_references >= LIRA_OWN;
    double shared_out = shared_variance(references, n_references, false, n);
    double shared_in = shared_variance(references, n_references, true, n);
    if (isnan(shared_in))
        shared_in = shared_out;
    for (int64_t i = 0; i < n; i++) {
        struct fit out = fit_at(references, n_references, false, i);
        struct fit in = fit_at(references, n_references, true, i);
        double v_out = own ? out.variance : shared_out, x = model->confidence[i];
        double v_in = own && in.count > 1 ? in.variance : shared_in;
        scores[i] = *online ? log_normal(x, in.mean, v_in) - log_normal(x, out.mean, v_out)
                            : (x - out.mean) / sqrt(fmax(v_out, LEAST_VARIANCE));
    }
    return true;
}
