/* perturb.c: copies of an input, written by all threads, batch after batch through the probe. */
#include "explain/perturb.h"
#include <stdlib.h>
#include "base/pool.h"
#include "net/model/classifier.h"

struct batch {
    const struct perturbation *perturbation;
    int64_t first, floats;
    float *input; /* [batch][floats] */
};

static bool write_copy(void *arg, int64_t i, int worker, struct err *err)
{
    (void)worker, (void)err;
    const struct batch *batch = arg;
    batch->perturbation->write(batch->perturbation->arg, batch->first + i,
                               batch->input + i * batch->floats);
    return true;
}

/* n logits or scores of the view's class; scratch [classes]. */
static bool read_class(const struct explain_settings *settings, const struct probe *probe,
                       const struct explain_view *view, bool logits, int64_t n, double *scratch,
                       double *out, struct err *err)
{
    int64_t classes = probe_classes(probe);
    for (int64_t i = 0; i < n; i++) {
        const float *outputs = probe_logits(probe) + i * classes;
        if (!logits && !model_score(settings->model, outputs, scratch, err))
            return false;
        out[i] = logits ? (double)outputs[view->class_index] : scratch[view->class_index];
    }
    return true;
}

bool perturb(const struct explain_settings *settings, struct probe *probe,
             const struct explain_view *view, const struct perturbation *perturbation,
             const struct ctx *ctx, double *out, struct err *err)
{
    const int64_t most = perturbation->n < settings->batch ? perturbation->n : settings->batch;
    struct batch batch = { perturbation, 0, 3 * settings->height * settings->width, NULL };
    double *scratch = calloc((size_t)probe_classes(probe), sizeof *scratch);
    batch.input = malloc((size_t)(most * batch.floats) * sizeof *batch.input);
    bool ok = (scratch && batch.input) || err_memory(err, "changed images; use a smaller batch");
    for (int64_t n; ok && batch.first < perturbation->n; batch.first += n) {
        n = perturbation->n - batch.first < most ? perturbation->n - batch.first : most;
        ok = pool_for(ctx->pool, n, write_copy, &batch, ctx->stop, err) &&
             probe_forward(probe, batch.input, n, err) &&
             read_class(settings, probe, view, perturbation->logits, n, scratch, out + batch.first,
                        err) &&
             (!ctx_stopped(ctx) || err_stopped(err));
    }
    free(scratch);
    free(batch.input);
    return ok;
}
