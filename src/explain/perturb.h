/* perturb.h: what a network says of many changed copies of one input. */
#ifndef EXPLAIN_PERTURB_H
#define EXPLAIN_PERTURB_H
#include "explain/explainer.h"

struct perturbation {
    int64_t n; /* copies */
    /* Writes copy i, [3, height, width] normalised. Called by several threads at once. */
    void (*write)(const void *arg, int64_t i, float *out);
    const void *arg;
    bool logits; /* logits of the class instead of its scores */
};

/* out [n]: for the view's class. Copies are written straight into the batches of the probe, of
 * which only the forward pass is used. The same on any number of threads. */
bool perturb(const struct explain_settings *settings, struct probe *probe,
             const struct explain_view *view, const struct perturbation *perturbation,
             const struct ctx *ctx, double *out, struct err *err);
#endif
