/* text_probe.h: a model of texts prepared to be looked into: which tokens of a sequence its score
 * comes from. Two methods: the attention of the last layer, and integrated gradients with respect
 * to the embeddings of the tokens. Used by one thread at a time; itself runs on `threads`. */
#ifndef EXPLAIN_TEXT_PROBE_H
#define EXPLAIN_TEXT_PROBE_H
#include "train/text_model.h"

enum { TEXT_PROBE_BATCH = 8 }; /* of the model's graph: places on the way of the integral */

struct text_probe;

/* The model, opened with TEXT_PROBE_BATCH, must outlive it. steps: of integrated gradients. *out is
 * the caller's. */
bool text_probe_new(const struct text_model *model, int64_t steps, int threads,
                    struct text_probe **out, struct err *err);
void text_probe_free(struct text_probe *probe); /* NULL-safe */

/* Runs a sequence: ids and mask [tokens]. logits [classes]; attention [tokens]: how much is taken
 * from each token by the first one, which is classified, or, where the mean of all is, on average
 * by all that are seen; the mean over the heads of the last layer. Its sum is 1. */
bool text_probe_run(struct text_probe *probe, const float *ids, const float *mask, double *logits,
                    double *attention, struct err *err);

/* What should be equal: the sum of all weights, and the logit less that of the baseline. */
struct text_integral {
    double logit, baseline, sum;
};
/* Integrated gradients (Sundararajan et al. 2017) of the logit of a class, by Gauss-Legendre
 * quadrature, with respect to the embeddings of the tokens; weights [tokens]. The baseline has the
 * embedding of [PAD], or zeros if there is no such token, in place of every token of the text; own
 * [tokens]: which ones are of the text. Those that begin and end it stay, and have weight 0. */
bool text_probe_integrate(struct text_probe *probe, const float *ids, const float *mask,
                          const bool *own, int64_t class_index, double *weights,
                          struct text_integral *out, struct err *err);
#endif
