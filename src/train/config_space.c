/* config_space.c: patches divided over ranks in a config (config.h): the grid of ranks that
 * follows, and what goes together. */
#include <string.h>
#include "train/objectives.h"

void config_grid(const struct train_config *config, int64_t asked[GRID_AXES])
{
    memcpy(asked, config->parallel, sizeof config->parallel);
    asked[GRID_SPACE] = config->space[1];
    if (config_divided(config))
        asked[GRID_BANDS] = config->space[0];
}

bool config_extents(const struct train_config *config, int ranks, int extent[GRID_AXES],
                    struct err *err)
{
    int64_t asked[GRID_AXES];
    config_grid(config, asked);
    if (rank_grid_extents(asked, ranks, extent, err))
        return true;
    return config_divided(config)
               ? err_set(
                     err, ERR_USAGE,
                     "parallel: data %lld x stages %lld x space %lldx%lld x heads %lld does not "
                     "make %d rank%s; data: 0 takes what the others leave",
                     (long long)asked[GRID_DATA], (long long)asked[GRID_STAGE],
                     (long long)config->space[0], (long long)config->space[1],
                     (long long)asked[GRID_HEADS], ranks, ranks == 1 ? "" : "s")
               : false;
}

bool config_check_space(const struct train_config *config, struct err *err)
{
    const struct {
        const char *key;
        bool given;
        const char *why;
    } refusals[] = {
        { "parallel.bands", config->parallel[GRID_BANDS] > 1,
          "bands divide whole slides, space divides patches; omit one of them" },
        { "data.slides", config_whole(config), "whole slides are divided by parallel.bands" },
        { "objective", objective_of(config)->truth == TRUTH_NONE,
          "the loss of distill compares windows with the teacher's, which needs whole patches" },
        { "ranks.compress", config->ranks.compress, "omit it" },
    };
    for (size_t i = 0; config_divided(config) && i < sizeof refusals / sizeof *refusals; i++)
        if (refusals[i].given)
            return err_set(err, ERR_USAGE, "%s: cannot be used with parallel.space %lldx%lld: %s",
                           refusals[i].key, (long long)config->space[0],
                           (long long)config->space[1], refusals[i].why);
    return true;
}
