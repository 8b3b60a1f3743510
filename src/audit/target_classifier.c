/* target_classifier.c: classifiers under attack: the chance that they give to the true class. */
#include <math.h>
#include <stdlib.h>
#include "audit/target.h"
#include "base/console.h"
#include "base/pool.h"
#include "net/model/classifier.h"
#include "net/model/model_run.h"

#define LEAST_CHANCE 1e-15

static void close_classifier(struct target *target)
{
    model_close(target->state);
    target->state = NULL;
}

static bool open_classifier(struct target *target, const char *path, bool untrained, uint64_t seed,
                            const struct ctx *ctx, struct err *err)
{
    const struct model_source source = { .file = path };
    struct model *model = NULL;
    (void)ctx;
    if (!model_open_classifier(&source, &model, err))
        return false;
    target->state = model;
    target->config = &model->config;
    if (model_predicts_number(model))
        return err_set(err, ERR_USAGE, "%s predicts a number; an audit takes classifiers", path);
    return !untrained || graph_initialize(model->graph, seed, err);
}

struct measuring {
    const struct model *model;
    const struct audit_set *set;
    const struct ctx *ctx;
    struct model_run *runs; /* of every worker */
    struct signal *out;
};

/* The chance of the true class, and of all others together. */
static void chances(const struct model *model, const double *scores, int32_t label, double *right,
                    double *wrong)
{
    int64_t classes = model->config.num_classes;
    *right = classes == 1 && label == 0 ? 1 - scores[0] : scores[classes == 1 ? 0 : label];
    *wrong = 0;
    for (int64_t c = 0; c < classes; c++)
        *wrong += c == label ? 0 : scores[c];
    if (classes == 1 || model->config.independent)
        *wrong = 1 - *right;
    *right = fmax(*right, LEAST_CHANCE);
    *wrong = fmax(*wrong, LEAST_CHANCE);
}

static bool measure_one(void *arg, int64_t i, int worker, struct err *err)
{
    const struct measuring *m = arg;
    int64_t classes = m->model->config.num_classes;
    double right, wrong, *scores = malloc((size_t)classes * sizeof *scores);
    if (!scores)
        return err_memory(err, "scores");
    bool ok = model_classify(m->model, &m->runs[worker], 1, &m->set->images[i], scores, err);
    if (ok) {
        chances(m->model, scores, m->set->label[i], &right, &wrong);
        m->out->loss[i] = -log(right);
        m->out->confidence[i] = log(right) - log(wrong);
        console_advance(m->ctx->console, 1);
    }
    free(scores);
    return ok;
}

static bool measure_classifier(struct target *target, const struct audit_set *set,
                               const struct ctx *ctx, struct signal *out, struct err *err)
{
    int workers = pool_workers(ctx->pool);
    struct measuring m = { target->state, set, ctx, calloc((size_t)workers, sizeof *m.runs), out };
    if (!m.runs)
        return err_memory(err, "scores");
    console_begin(ctx->console, "losses", set->n, "patches");
    bool ok = pool_for(ctx->pool, set->n, measure_one, &m, ctx->stop, err);
    console_end(ctx->console);
    for (int w = 0; w < workers; w++)
        model_run_free(&m.runs[w]);
    free(m.runs);
    return ok;
}

const struct audited_kind target_classifier = {
    .name = "classifier",
    .labels = true,
    .likelihood = true,
    .n_signals = 1,
    .signals = { { "loss threshold", "a low loss is a member (Yeom et al. 2018)" } },
    .open = open_classifier,
    .close = close_classifier,
    .measure = measure_classifier,
};
