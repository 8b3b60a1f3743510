/* config_heads.c: attention heads divided over ranks in a config (config.h): what goes together. */
#include "train/objectives.h"

bool config_check_heads(const struct train_config *config, struct err *err)
{
    const struct {
        const char *key;
        bool given;
        const char *why;
    } refusals[] = {
        { "parallel.stages", config_staged(config), "use one of them and parallel.data" },
        { "parallel.space", config_divided(config), "use one of them and parallel.data" },
        { "parallel.bands", config->parallel[GRID_BANDS] > 1, "use one of them and parallel.data" },
        { "data.slides", config_whole(config), "whole slides are divided by parallel.bands" },
        { "objective", objective_of(config)->truth == TRUTH_NONE,
          "the teacher of distill is not divided" },
        { "privacy.epsilon", config_private(config),
          "gradients of single units are clipped by their norm, of which a rank has a part" },
        { "optimizer.name: lars", config->optimizer.kind == OPTIMIZER_LARS,
          "its rates follow from norms of whole weights; use another" },
        { "ranks.compress", config->ranks.compress, "omit it" },
        { "ranks.shard_optimizer", config->ranks.shard_optimizer,
          "every rank has only the optimizer of its part already; omit it" },
    };
    for (size_t i = 0; config->parallel[GRID_HEADS] > 1 && i < sizeof refusals / sizeof *refusals;
         i++)
        if (refusals[i].given)
            return err_set(err, ERR_USAGE, "%s: cannot be used with parallel.heads %lld: %s",
                           refusals[i].key, (long long)config->parallel[GRID_HEADS],
                           refusals[i].why);
    return true;
}
