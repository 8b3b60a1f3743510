/* config_private.c: what cannot be part of a private training (config.h): whatever looks at private
 * data without a budget, and whatever mixes several units before their gradients are clipped. */
#include <math.h>
#include <string.h>
#include "train/objectives.h"

bool config_public(const struct train_config *config, const char *data)
{
    for (size_t i = 0; i < config->privacy.public_data.n; i++)
        if (strcmp(config->privacy.public_data.items[i], data) == 0)
            return true;
    return false;
}

static bool tunes(const struct train_config *config, const char *what)
{
    for (size_t i = 0; i < config->privacy.tune.n; i++)
        if (strcmp(config->privacy.tune.items[i], what) == 0)
            return true;
    return false;
}

bool config_tunes(const struct train_config *config)
{
    return config_private(config) && !tunes(config, "all");
}

bool config_adapts(const struct train_config *config)
{
    return config_tunes(config) && tunes(config, "adapters");
}

/* A setting that a private training cannot have, whether it is given, and what to do. */
struct refusal {
    const char *key;
    bool given;
    const char *why;
};

static bool refuse_first(const struct refusal *refusals, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++)
        if (refusals[i].given)
            return err_set(err, ERR_USAGE, "%s: cannot be used with privacy.epsilon: %s",
                           refusals[i].key, refusals[i].why);
    return true;
}

/* What couples units, or divides one. */
static bool check_coupling(const struct train_config *config, struct err *err)
{
    const struct refusal refusals[] = {
        { "data.slides", config_whole(config), "private training takes patches" },
        { "objective", objective_of(config)->truth == TRUTH_NONE,
          "the loss of distill compares windows of many patches" },
        { "objective", objective_of(config)->truth == TRUTH_TARGETS,
          "regress learns from the mean and the deviation of all targets" },
        { "train.mixup", config->train.mixup > 0, "a mixed patch has parts of two; omit it" },
        { "data.balance", config->data.balance != BALANCE_NONE,
          "the classes of private patches would be counted; omit it" },
        { "data.hard_negatives", config->data.hard_negatives[0] != 0,
          "patches were chosen by a model that has seen them; omit it" },
        { "data.synthetic", config->data.synthetic.n > 0,
          "units are drawn from data.train alone; omit it" },
        { "train.clip", config->train.clip > 0, "gradients are clipped by privacy.clip; omit it" },
        { "train.memory: auto", config->train.memory == MEMORY_AUTO,
          "memory does not grow with the units of a step; use plain, half or recompute" },
        { "ranks.compress", config->ranks.compress, "omit it" },
        { "ranks.sync_bn", config->ranks.sync_bn, "batch norm couples patches; omit it" },
        { "parallel.stages", config_staged(config), "each rank runs whole networks; use 1" },
        { "parallel.auto", config->pipeline.automatic, "each rank runs whole networks; omit it" },
        { "parallel.space", config_divided(config), "each rank runs whole patches; use 1" },
    };
    return refuse_first(refusals, sizeof refusals / sizeof *refusals, err);
}

/* What is looked at without a budget. */
static bool check_looks(const struct train_config *config, struct err *err)
{
    bool val = config_public(config, "val"), test = config_public(config, "test");
    const struct refusal refusals[] = {
        { "data.val", config->data.val.n > 0 && !val,
          "validation would give these data away; omit it, or, if they are public, set "
          "privacy.public_data: [val]" },
        { "data.test", config->data.test.n > 0 && !test,
          "a test would give these data away; omit it, or, if they are public, set "
          "privacy.public_data: [test]" },
        { "data.split: attribute", config->data.split == SPLIT_ATTRIBUTE,
          "it keeps private data for validation; omit it" },
        { "data.folds", config->data.folds > 0, "they keep private data for validation; omit it" },
        { "train.monitor", config->train.monitor != MONITOR_LAST && !val,
          "without public validation data (privacy.public_data) no epoch can be chosen; use last" },
        { "schedule.name: plateau", config->schedule.kind == SCHEDULE_PLATEAU && !val,
          "without public validation data (privacy.public_data) there is nothing to watch" },
        { "schedule.stop_patience", config->schedule.stop_patience > 0 && !val,
          "without public validation data (privacy.public_data) there is nothing to watch" },
    };
    return refuse_first(refusals, sizeof refusals / sizeof *refusals, err);
}

static bool check_numbers(const struct train_config *config, struct err *err)
{
    for (size_t i = 0; i < config->privacy.public_data.n; i++) {
        const char *name = config->privacy.public_data.items[i];
        if (strcmp(name, "val") != 0 && strcmp(name, "test") != 0)
            return err_set(err, ERR_USAGE, "privacy.public_data: '%s' is not val or test", name);
    }
    if (config->privacy.tune.n == 0 || (tunes(config, "all") && config->privacy.tune.n > 1))
        return err_set(err, ERR_USAGE,
                       "privacy.tune: all, or a list of adapters, norms, biases and names");
    if (config_tunes(config) && !config->network.weights[0])
        return err_set(err, ERR_USAGE,
                       "privacy.tune: the rest of the network stays as it is, so it must have "
                       "learnt before; set network.weights");
    if (config->privacy.multiplicity > config->train.batch)
        return err_set(err, ERR_USAGE,
                       "privacy.multiplicity: %lld is more than train.batch, %lld; raise "
                       "train.batch and lower train.accumulate instead",
                       (long long)config->privacy.multiplicity, (long long)config->train.batch);
    if (isinf(config->privacy.clip) && !isinf(config->privacy.epsilon))
        return err_set(err, ERR_USAGE,
                       "privacy.clip: noise is a multiple of it, so it must be finite");
    return true;
}

bool config_check_private(const struct train_config *config, struct err *err)
{
    if (!config_private(config) && config->privacy.sigma > 0)
        return err_set(err, ERR_USAGE,
                       "privacy.sigma: without privacy.epsilon a training is not private; set "
                       "privacy.epsilon to the most that it may give away");
    if (!config_private(config) && !tunes(config, "all"))
        return err_set(err, ERR_USAGE,
                       "privacy.tune: is for private trainings; set privacy.epsilon (inf: without "
                       "noise)");
    return !config_private(config) ||
           (check_numbers(config, err) && check_coupling(config, err) && check_looks(config, err));
}
