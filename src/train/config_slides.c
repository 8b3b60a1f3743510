/* config_slides.c: which settings go together where a training learns from whole slides, and where
 * it learns from patches (config.h). */
#include "train/config.h"

/* A setting that is only for one of the two, and whether it is given. */
struct own_key {
    const char *key;
    bool given;
};

static const char *first_given(const struct own_key *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (keys[i].given)
            return keys[i].key;
    return NULL;
}

static bool check_patches(const struct train_config *config, struct err *err)
{
    const struct own_key keys[] = { { "data.mpp", config->data.mpp > 0 },
                                    { "data.long_side_px", config->data.long_side_px > 0 },
                                    { "train.tile_px", config->train.tile_px > 0 },
                                    { "train.spill", config->train.spill[0] != 0 } };
    const char *key = first_given(keys, sizeof keys / sizeof *keys);
    if (key)
        return err_set(err, ERR_USAGE, "%s: is for whole slides (data.slides); omit it", key);
    if (config->train.memory == MEMORY_STREAM)
        return err_set(err, ERR_USAGE,
                       "train.memory: stream is for whole slides (data.slides); patches take "
                       "plain, recompute or auto");
    if (config->train.memory == MEMORY_AUTO && config->train.store == STORE_BF16)
        return err_set(err, ERR_USAGE,
                       "train.store: bf16 changes gradients, so for patches it is not chosen "
                       "automatically; use train.memory: plain, or train.store: single");
    return true;
}

/* What needs many images of one size at once, or more of the image than a tile. */
static bool refuse_patch_keys(const struct train_config *config, struct err *err)
{
    const struct own_key keys[] = {
        { "data.resize_px", config->data.resize_px > 0 },
        { "data.spacing_um_px", config->data.spacing_um_px > 0 },
        { "data.patient", config->data.patient[0] != 0 },
        { "data.hard_negatives", config->data.hard_negatives[0] != 0 },
        { "data.synthetic", config->data.synthetic.n > 0 },
        { "augment.blur", config->augment.blur > 0 },
        { "train.mixup", config->train.mixup > 0 },
        { "train.tta", config->train.tta },
        { "ranks.sync_bn", config->ranks.sync_bn },
    };
    const char *key = first_given(keys, sizeof keys / sizeof *keys);
    return !key || err_set(err, ERR_USAGE, "%s: is for patches, not for data.slides; omit it", key);
}

static bool check_whole(const struct train_config *config, struct err *err)
{
    if (config->data.train.n > 0)
        return err_set(err, ERR_USAGE,
                       "data.train and data.slides: a training learns from patches or from whole "
                       "slides; omit one of them");
    if (config->truth != TRUTH_LABELS && config->truth != TRUTH_TARGETS)
        return err_set(err, ERR_USAGE,
                       "data.slides: whole slides are for objective classify or regress, not %s",
                       objective_names[config->objective]);
    if ((config->data.mpp > 0) == (config->data.long_side_px > 0))
        return err_set(err, ERR_USAGE,
                       "data.slides: set either data.mpp or data.long_side_px: at which size "
                       "slides are read");
    return refuse_patch_keys(config, err);
}

static bool check_memory(const struct train_config *config, struct err *err)
{
    if (config->train.memory == MEMORY_AUTO && config->train.memory_mb == 0)
        return err_set(err, ERR_USAGE,
                       "train.memory: auto chooses what fits train.memory_mb; set it, or use %s",
                       config_whole(config) ? "stream" : "plain");
    if (config->train.memory == MEMORY_RECOMPUTE && config->train.store == STORE_BF16)
        return err_set(err, ERR_USAGE,
                       "train.store: bf16 is for train.memory: plain, stream and auto, not for "
                       "recompute; omit one of them");
    return true;
}

bool config_check_slides(const struct train_config *config, struct err *err)
{
    if (!check_memory(config, err))
        return false;
    return config_whole(config) ? check_whole(config, err) : check_patches(config, err);
}
