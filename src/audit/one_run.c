/* one_run.c: see one_run.h. */
#include <math.h>
#include "audit/one_run.h"
#include <stdlib.h>
#include "audit/binomial.h"
#include "base/auc.h"

#define EPSILON_MOST 64.0

/* The chance of exactly k of n. */
static double binomial_exactly(int64_t k, int64_t n, double p)
{
    int sign;
    double chosen = lgamma_r((double)n + 1, &sign) - lgamma_r((double)k + 1, &sign) -
                    lgamma_r((double)(n - k) + 1, &sign);
    return exp(chosen + (double)k * log(p) + (double)(n - k) * log1p(-p));
}

/* An attacker who sees the answers of randomised response is right with chance e^eps / (1 + e^eps);
 * delta can add to that the largest mean chance of any counts just below. */
double one_run_chance(int64_t canaries, int64_t guesses, int64_t correct, double epsilon,
                      double delta)
{
    double right = 1 / (1 + exp(-epsilon)), near = 0, most = 0;
    for (int64_t i = 1; delta > 0 && i <= correct; i++) {
        near += binomial_exactly(correct - i, guesses, right);
        most = fmax(most, near / (double)i);
        if (near > 1 - 1e-12)
            break;
    }
    double chance = binomial_at_least(correct, guesses, right);
    return fmin(1, chance + 2 * (double)canaries * delta * most);
}

double one_run_epsilon(int64_t canaries, int64_t guesses, int64_t correct, double delta,
                       double confidence)
{
    double refuted = 0, high = EPSILON_MOST;
    if (guesses == 0 || one_run_chance(canaries, guesses, correct, 0, delta) > 1 - confidence)
        return 0;
    while (high - refuted > 1e-9) {
        double middle = (refuted + high) / 2;
        bool false_claim =
            one_run_chance(canaries, guesses, correct, middle, delta) <= 1 - confidence;
        *(false_claim ? &refuted : &high) = middle;
    }
    return refuted;
}

static int by_score(const void *a, const void *b)
{
    const struct auc_item *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? -1 : 1;
    return (int)y->positive - (int)x->positive; /* ties against the attack at the top */
}

bool one_run_audit(const double *scores, const bool *member, int64_t n, double delta,
                   double confidence, struct one_run *out, struct err *err)
{
    static const double shares[ONE_RUN_TRIES] = { 0.02, 0.2, 1 };
    struct auc_item *items = malloc((size_t)(n > 0 ? n : 1) * sizeof *items);
    if (!items)
        return err_memory(err, "the scores");
    for (int64_t i = 0; i < n; i++)
        items[i] = (struct auc_item){ scores[i], member[i] };
    qsort(items, (size_t)n, sizeof *items, by_score);
    *out = (struct one_run){ .canaries = n };
    for (int t = 0; t < ONE_RUN_TRIES; t++) {
        int64_t side = (int64_t)floor(shares[t] * (double)n / 2), correct = 0;
        for (int64_t i = 0; i < side; i++)
            correct += (int64_t)!items[i].positive + (int64_t)items[n - 1 - i].positive;
        double epsilon =
            one_run_epsilon(n, 2 * side, correct, delta, 1 - (1 - confidence) / ONE_RUN_TRIES);
        if (out->guesses == 0 || epsilon > out->epsilon) {
            out->guesses = 2 * side;
            out->correct = correct;
            out->epsilon = epsilon;
        }
    }
    free(items);
    return true;
}
