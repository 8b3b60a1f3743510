/* signals.h: attacks on numbers: what a model, and others that are known, say of every sample ->
 * a score of every sample, higher: rather a member. */
#ifndef AUDIT_SIGNALS_H
#define AUDIT_SIGNALS_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

/* What one model says of n samples. */
struct signal {
    double *loss;       /* [n]; of a classifier -log of the chance it gives to the true class */
    double *confidence; /* [n]; about normal: of a classifier log(p / (1 - p)); else -loss */
    bool *trained_on;   /* [n]; of a reference: the sample was in its training; NULL: none was */
};

/* False only if out of memory; free with signal_free. */
bool signal_new(int64_t n, struct signal *out, struct err *err);
void signal_free(struct signal *signal); /* also fine on a zeroed struct */

/* Loss threshold (Yeom et al. 2018): a low loss is a member. */
void attack_loss(const struct signal *model, int64_t n, double *scores);

/* RMIA (Zarifzadeh, Liu and Shokri 2024), offline: the likelihood under the model over that under
 * the world, which references that did not see the sample stand for. The method then asks which
 * share of a population has a smaller ratio; that orders samples as the ratio does, so the ratio is
 * the score. likelihood: the loss is -log of a chance; else only differences of losses count. A
 * reference that was trained on a sample is not asked about it, unless no other is there. */
void attack_rmia(const struct signal *model, const struct signal *references, int n_references,
                 bool likelihood, int64_t n, double *scores);

/* LiRA (Carlini et al. 2022): Gaussians of the references' confidence, for those that were trained
 * on the sample and for those that were not; online if all samples have both kinds, else offline
 * (how far the model is above those that were not). Below LIRA_OWN references the variance is
 * shared by all samples. *online says which it was; false, with an error, if a sample has fewer
 * than two references that were not trained on it. */
#define LIRA_OWN 16
bool attack_lira(const struct signal *model, const struct signal *references, int n_references,
                 int64_t n, double *scores, bool *online, struct err *err);
#endif
