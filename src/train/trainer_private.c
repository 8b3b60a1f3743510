/* trainer_private.c: the privacy of a training (trainer.h): how much noise it needs, its key, the
 * noise of a step, and what is said about it. Sums of clipped gradients come from runner_private.c.
 */
#include <math.h>
#include <string.h>
#include <stdlib.h>
#include "base/console.h"
#include "base/json.h"
#include "net/graph/transform.h"
#include "privacy/noise.h"
#include "train/trainer.h"

#define PIECE 8192 /* gradients for which a thread makes noise at a time */

static const char *const accountants[] = { [PRIVACY_RDP] = "rdp", [PRIVACY_PRV] = "prv" };

/* --- noise for a number of steps --- */

/* What an accountant says: sigma given in the config, or the smallest that keeps to epsilon; and
 * epsilon of it. */
static bool ask(const struct train_config *config, enum privacy_accountant accountant,
                struct private_plan *out, struct err *err)
{
    out->accountant = accountant;
    return (config->privacy.sigma > 0 || privacy_sigma(accountant, config->privacy.epsilon,
                                                       &out->cost, &out->cost.sigma, err)) &&
           privacy_epsilon(accountant, &out->cost, &out->epsilon, err);
}

/* By the accountant of the config; auto: the one that needs less noise, or that finds less epsilon
 * for it. Both are bounds that hold. */
static bool find_noise(struct trainer *trainer, struct err *err)
{
    const struct train_config *config = trainer->config;
    struct private_plan *plan = &trainer->private, tight = *plan;
    int by = config->privacy.accountant;
    if (!ask(config, by == BY_PRV ? PRIVACY_PRV : PRIVACY_RDP, plan, err))
        return err_prefix(err, "privacy.epsilon");
    if (by == BY_AUTO && ask(config, PRIVACY_PRV, &tight, NULL) &&
        (tight.cost.sigma < plan->cost.sigma ||
         (tight.cost.sigma == plan->cost.sigma && tight.epsilon < plan->epsilon)))
        *plan = tight;
    return true;
}

/* More steps than epsilon allows, which only a given sigma can lead to, are refused. */
static bool check_steps(const struct trainer *trainer, struct err *err)
{
    const struct train_config *config = trainer->config;
    const struct private_plan *plan = &trainer->private;
    double target = config->privacy.epsilon;
    int64_t most = 0;
    if (plan->epsilon <= target)
        return true;
    return privacy_steps(plan->accountant, target, &plan->cost, &most, err) &&
           err_set(err, ERR_USAGE,
                   "privacy.sigma: %g gives away epsilon %.4g in %lld epochs, more than "
                   "privacy.epsilon %g; after %lld steps (%.2f epochs) it would be reached: train "
                   "less, or raise privacy.sigma",
                   plan->cost.sigma, plan->epsilon, (long long)config->train.epochs, target,
                   (long long)most, (double)most / (double)trainer->steps_per_epoch);
}

static void say_plan(const struct trainer *trainer)
{
    const struct private_plan *plan = &trainer->private;
    const char *unit = privacy_units[trainer->config->privacy.unit];
    if (plan->cost.sigma == 0) {
        console_warn(trainer->ctx->console,
                     "privacy.epsilon is infinite: gradients are clipped, but without noise the "
                     "model may give everything away");
        return;
    }
    console_note(trainer->ctx->console,
                 "private: epsilon %.4g at delta %g for a %s (%s), after %lld steps in which each "
                 "of %lld is with probability %.4g; sigma %.4g",
                 plan->epsilon, plan->cost.delta, unit, accountants[plan->accountant],
                 (long long)plan->cost.steps, (long long)plan->units, plan->cost.rate,
                 plan->cost.sigma);
    console_note(trainer->ctx->console,
                 "private: loss and measures on these data are not shown; run.json lists what is "
                 "public and what is off");
    if (plan->cost.delta * (double)plan->units >= 1)
        console_warn(trainer->ctx->console,
                     "privacy.delta %g: with %lld units it must be less than %.1g to mean anything",
                     plan->cost.delta, (long long)plan->units, 1 / (double)plan->units);
}

bool trainer_private_plan(struct trainer *trainer, struct err *err)
{
    const struct train_config *config = trainer->config;
    struct private_plan *plan = &trainer->private;
    if (!config_private(config))
        return true;
    plan->cost =
        (struct privacy_cost){ .sigma = config->privacy.sigma,
                               .rate = (double)trainer_step_images(trainer) / (double)plan->units,
                               .steps = config->train.epochs * trainer->steps_per_epoch,
                               .delta = config->privacy.delta };
    plan->epsilon = INFINITY;
    if (!isinf(config->privacy.epsilon) &&
        (!find_noise(trainer, err) || !check_steps(trainer, err)))
        return false;
    if (trainer_leads(trainer))
        say_plan(trainer);
    return true;
}

double trainer_private_epsilon(const struct trainer *trainer)
{
    struct privacy_cost cost = trainer->private.cost;
    double epsilon = INFINITY;
    if (trainer->step == 0 && trainer->n_rows > 0 && trainer->n_rows == trainer->epoch)
        return trainer->rows[trainer->n_rows - 1].epsilon; /* a tenth of a second by PRV */
    cost.steps = trainer_steps(trainer);
    if (cost.sigma > 0)
        privacy_epsilon(trainer->private.accountant, &cost, &epsilon, NULL);
    return epsilon;
}

/* --- the key --- */

static bool find_key(struct trainer *trainer, bool resumed, struct err *err)
{
    char *path = trainer_path(trainer, "noise.key");
    if (!path)
        return err_memory(err, "the key");
    bool ok = resumed
                  ? secret_open(path, &trainer->private.secret, err) ||
                        err_prefix(err, "the training cannot go on with the same noise")
                  : secret_destroy(path, err) && secret_create(path, &trainer->private.secret, err);
    free(path);
    return ok;
}

static bool destroy_key(const struct trainer *trainer, struct err *err)
{
    char *path = trainer_path(trainer, "noise.key");
    bool ok = path ? secret_destroy(path, err) : err_memory(err, "the key");
    free(path);
    return ok;
}

bool trainer_private_begin(struct trainer *trainer, bool resumed, struct err *err)
{
    struct secret *secret = &trainer->private.secret;
    if (!config_private(trainer->config)) /* perhaps of a training that this one replaces */
        return resumed || trainer_lead(trainer, destroy_key, err);
    if (trainer->finished)
        return true;
    bool ok = secret_start(err) && (!trainer_leads(trainer) || find_key(trainer, resumed, err));
    return trainer_agree(trainer, ok, err) &&
           ranks_broadcast(trainer->request->ranks, secret->key, SECRET_BYTES, 0, err);
}

bool trainer_private_end(const struct trainer *trainer, struct err *err)
{
    return !config_private(trainer->config) || trainer_lead(trainer, destroy_key, err);
}

/* --- a step --- */

bool trainer_private_finish(struct trainer *trainer, struct err *err)
{
    const struct private_plan *plan = &trainer->private;
    if (!config_private(trainer->config))
        return true;
    if (trainer_steps(trainer) >= plan->cost.steps)
        return err_set(err, ERR_USAGE,
                       "privacy.epsilon: %lld steps are all that was planned; another one would "
                       "give away more",
                       (long long)plan->cost.steps);
    uint64_t step = (uint64_t)trainer_steps(trainer);
    double scale = plan->cost.sigma > 0 ? plan->cost.sigma * trainer->config->privacy.clip : 0;
    double factor = 1 / (double)trainer_step_images(trainer);
#pragma omp parallel for num_threads(trainer->threads) schedule(static)
    for (int64_t begin = 0; begin < trainer->n_gradients; begin += PIECE) {
        int64_t n = begin + PIECE < trainer->n_gradients ? PIECE : trainer->n_gradients - begin;
        float *to = trainer->gradients + begin;
        if (scale > 0)
            noise_add(&plan->secret, step, begin, n, scale, factor, to);
        for (int64_t i = 0; scale == 0 && i < n; i++)
            to[i] = (float)((double)to[i] * factor);
    }
    return true;
}

/* --- tuning --- */

/* *graph becomes what was made of it. */
static bool replace(struct graph **graph, bool ok, struct graph *const *made)
{
    if (!ok)
        return false;
    graph_free(*graph);
    *graph = *made;
    return true;
}

bool trainer_tune(struct trainer *trainer, struct err *err)
{
    const struct train_config *config = trainer->config;
    const struct texts *tune = &config->privacy.tune;
    struct graph **graph = &trainer->graph, *next = NULL;
    int64_t all = graph_parameter_count(*graph);
    if (!config_tunes(config))
        return true;
    if (config_adapts(config) && !replace(graph,
                                          transform_adapters(*graph, config->privacy.rank,
                                                             (uint64_t)config->seed, &next, err),
                                          &next))
        return err_prefix(err, "privacy.rank");
    if (!replace(graph,
                 transform_learn(*graph, (const char *const *)tune->items, tune->n, &next, err),
                 &next))
        return err_prefix(err, "privacy.tune");
    if (trainer_leads(trainer))
        console_note(trainer->ctx->console, "privacy.tune: %lld parameters are learnt, of %lld",
                     (long long)graph_parameter_count(*graph), (long long)all);
    return true;
}

bool trainer_merge(const struct trainer *trainer, struct graph **out, struct err *err)
{
    const struct graph *model = trainer_model(trainer);
    return config_adapts(trainer->config) ? transform_merge_adapters(model, out, err)
                                          : graph_copy(model, out, err);
}

/* --- what is said --- */

/* What others may know of the training data, since no noise protects it. */
static const char *const public_facts[] = {
    "how many units there are",
    "the names of classes and of data files in the config",
    "pixel size and um/px of the patches",
    "the settings, which were chosen before",
    NULL,
};
static const char *const off[] = {
    "loss and measures on the training data",
    "validation and test on data that are not public",
    "the choice of the best epoch without public validation data",
    "statistics of the training data: classes, targets, batch norm",
    NULL,
};

static void put_list(struct json_out *json, const char *key, const char *const *items)
{
    json_out_array(json, key);
    for (; *items; items++)
        json_out_text(json, NULL, *items);
    json_out_close_array(json);
}

void trainer_private_record(const struct trainer *trainer, struct json_out *json)
{
    const struct private_plan *plan = &trainer->private;
    const struct train_config *config = trainer->config;
    if (!config_private(config))
        return;
    json_out_object(json, "privacy");
    json_out_text(json, "unit", privacy_units[config->privacy.unit]);
    json_out_real(json, "epsilon", trainer_private_epsilon(trainer));
    json_out_real(json, "epsilon_planned", plan->epsilon);
    json_out_real(json, "epsilon_limit", config->privacy.epsilon);
    json_out_real(json, "delta", plan->cost.delta);
    json_out_text(json, "accountant", accountants[plan->accountant]);
    json_out_real(json, "sigma", plan->cost.sigma);
    json_out_real(json, "clip", config->privacy.clip);
    json_out_real(json, "rate", plan->cost.rate);
    json_out_int(json, "units", plan->units);
    json_out_int(json, "expected_batch", trainer_step_images(trainer));
    json_out_int(json, "multiplicity", config->privacy.multiplicity);
    json_out_int(json, "steps", trainer_steps(trainer));
    json_out_int(json, "steps_planned", plan->cost.steps);
    put_list(json, "public", public_facts);
    put_list(json, "off", off);
    json_out_close_object(json);
}

void trainer_private_describe(const struct trainer *trainer, struct model_privacy *out)
{
    const struct private_plan *plan = &trainer->private;
    const struct train_config *config = trainer->config;
    double epsilon = config_private(config) ? trainer_private_epsilon(trainer) : 0;
    if (!config_private(config))
        return;
    *out = (struct model_privacy){ .set = true,
                                   .epsilon = isfinite(epsilon) ? epsilon : 0,
                                   .delta = plan->cost.delta,
                                   .sigma = plan->cost.sigma,
                                   .clip = config->privacy.clip,
                                   .rate = plan->cost.rate,
                                   .steps = trainer_steps(trainer) };
    snprintf(out->unit, sizeof out->unit, "%s", privacy_units[config->privacy.unit]);
    snprintf(out->accountant, sizeof out->accountant, "%s", accountants[plan->accountant]);
}
