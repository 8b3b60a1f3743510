/* config_parallel.c: the section `parallel` of a config (config.h): how large micro-batches are,
 * and what goes together. */
#include "net/stages/program.h"
#include "train/objectives.h"

/* Pairs of micro-batches in a step, where the schedule has them and the config says how many; else
 * 0. */
static int64_t pairs(const struct train_config *config)
{
    if (config->pipeline.schedule == PROGRAM_MAST)
        return 1;
    return config->pipeline.schedule == PROGRAM_MASTER ? config->pipeline.times : 0;
}

static int64_t step_patches(const struct train_config *config)
{
    return config->train.batch * config->train.accumulate;
}

int64_t config_micro_batch(const struct train_config *config)
{
    if (config->pipeline.micro_batch > 0)
        return config->pipeline.micro_batch;
    return pairs(config) > 0 ? step_patches(config) / (2 * pairs(config)) : config->train.batch;
}

int64_t config_micro_batches(const struct train_config *config)
{
    return step_patches(config) / config_micro_batch(config);
}

static bool check_times(const struct train_config *config, struct err *err)
{
    int64_t times = config->pipeline.times;
    int schedule = config->pipeline.schedule;
    if (times > 0 && schedule != PROGRAM_MAST && schedule != PROGRAM_MASTER)
        return err_set(err, ERR_USAGE,
                       "parallel.times: %lld: only the schedules mast and master run pairs of "
                       "micro-batches, not %s; omit it, or set parallel.schedule: master",
                       (long long)times, program_names[schedule]);
    return times <= 1 || schedule != PROGRAM_MAST ||
           err_set(err, ERR_USAGE,
                   "parallel.times: %lld: mast runs one pair of micro-batches in a step; use "
                   "parallel.schedule: master",
                   (long long)times);
}

/* Do the patches of a step make whole micro-batches? */
static bool check_whole(const struct train_config *config, struct err *err)
{
    int64_t all = step_patches(config), micro = config->pipeline.micro_batch;
    if (micro > 0 && all % micro != 0)
        return err_set(err, ERR_USAGE,
                       "parallel.micro_batch: %lld: the %lld patches of a step (train.batch %lld x "
                       "train.accumulate %lld) are not a multiple of it",
                       (long long)micro, (long long)all, (long long)config->train.batch,
                       (long long)config->train.accumulate);
    if (micro == 0 && pairs(config) > 0 && all % (2 * pairs(config)) != 0)
        return err_set(err, ERR_USAGE,
                       "parallel.schedule: %s makes %lld micro-batches of a step, but its %lld "
                       "patches (train.batch %lld x train.accumulate %lld) are not a multiple of "
                       "that",
                       program_names[config->pipeline.schedule], (long long)(2 * pairs(config)),
                       (long long)all, (long long)config->train.batch,
                       (long long)config->train.accumulate);
    return true;
}

/* Are there as many micro-batches as the schedule takes? */
static bool check_pairs(const struct train_config *config, struct err *err)
{
    int64_t micros = config_micro_batches(config), wanted = 2 * pairs(config);
    if (wanted > 0 && micros != wanted)
        return err_set(err, ERR_USAGE,
                       "parallel.micro_batch: %lld makes %lld micro-batches of a step (train.batch "
                       "%lld x train.accumulate %lld), but %s takes %lld; omit it",
                       (long long)config->pipeline.micro_batch, (long long)micros,
                       (long long)config->train.batch, (long long)config->train.accumulate,
                       program_names[config->pipeline.schedule], (long long)wanted);
    return config->pipeline.schedule != PROGRAM_MASTER || micros % 2 == 0 ||
           err_set(err, ERR_USAGE,
                   "parallel.schedule: master takes pairs of micro-batches, but train.batch %lld x "
                   "train.accumulate %lld in micro-batches of %lld are %lld; set parallel.times or "
                   "parallel.micro_batch",
                   (long long)config->train.batch, (long long)config->train.accumulate,
                   (long long)config_micro_batch(config), (long long)micros);
}

/* A setting that a network in stages cannot have, whether it is given, and what to do. */
struct refusal {
    const char *key;
    bool given;
    const char *why;
};

static bool check_staged(const struct train_config *config, struct err *err)
{
    const bool half = config_half(config);
    const struct refusal refusals[] = {
        { "data.slides", config_whole(config),
          "whole slides are divided by parallel.bands; stages are for patches" },
        { "objective", objective_of(config)->truth == TRUTH_NONE,
          "the loss of distill needs the images, which only the first stage has" },
        { "ranks.compress", config->ranks.compress, "omit it" },
        { "ranks.shard_optimizer", config->ranks.shard_optimizer,
          "every rank has only the optimizer of its stages already; omit it" },
        { "train.memory: recompute", config->train.memory == MEMORY_RECOMPUTE,
          "use parallel.recompute" },
        { half ? "train.store or train.memory" : "",
          half && config->pipeline.recompute == RECOMPUTE_ALWAYS,
          "bfloat16 and parallel.recompute: true save the same memory; omit one of them" },
    };
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (refusals[i].given)
            return err_set(err, ERR_USAGE, "%s: cannot be used with parallel.stages %lld: %s",
                           refusals[i].key, (long long)config->parallel[GRID_STAGE],
                           refusals[i].why);
    int64_t cuts = (int64_t)config->pipeline.cut.n;
    return cuts == 0 || cuts == config->parallel[GRID_STAGE] - 1 ||
           err_set(err, ERR_USAGE,
                   "parallel.cut: %lld layer%s make%s %lld stages, but parallel.stages is %lld",
                   (long long)cuts, cuts == 1 ? "" : "s", cuts == 1 ? "s" : "", (long long)cuts + 1,
                   (long long)config->parallel[GRID_STAGE]);
}

bool config_check_parallel(const struct train_config *config, struct err *err)
{
    if (config_staged(config) && !check_staged(config, err))
        return false;
    return check_times(config, err) && check_whole(config, err) && check_pairs(config, err);
}
