/* config_texts.c: which settings go together where a training learns from tables of texts or
 * recordings (config.h), and the names of its classes. */
#include <stdlib.h>
#include <string.h>
#include "text/sequence.h"
#include "train/config.h"

bool texts_note(struct texts *texts, const char *item, struct err *err)
{
    for (size_t i = 0; i < texts->n; i++)
        if (strcmp(texts->items[i], item) == 0)
            return true;
    if (!item[0])
        return true;
    char **more = realloc(texts->items, (texts->n + 1) * sizeof *more);
    if (more)
        texts->items = more;
    if (!more || !(more[texts->n] = strdup(item)))
        return err_memory(err, "the config");
    texts->n++;
    return true;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

bool config_adopt_text_labels(struct train_config *config, struct err *err)
{
    struct texts found = { 0 };
    bool ok = config_text_labels(config, &found, err);
    if (ok && found.n < 2)
        ok = err_set(err, ERR_USAGE,
                     "data.train: %s in the column '%s', but training needs at least two classes",
                     found.n ? "all rows have the same label" : "there is no label",
                     config->data.label);
    if (ok) {
        qsort(found.items, found.n, sizeof *found.items, by_text);
        struct texts drop = config->classes;
        config->classes = found;
        found = drop;
    }
    for (size_t i = 0; i < found.n; i++)
        free(found.items[i]);
    free(found.items);
    return ok;
}

/* A setting that makes no sense here, and whether it is given. */
struct own_key {
    const char *key;
    bool given;
};

static bool refuse_first(const struct own_key *keys, size_t n, const char *why, struct err *err)
{
    for (size_t i = 0; i < n; i++)
        if (keys[i].given)
            return err_set(err, ERR_USAGE, "%s: %s; omit it", keys[i].key, why);
    return true;
}

static bool refuse_image_keys(const struct train_config *config, const char *why, struct err *err)
{
    const struct own_key keys[] = {
        { "network.head", config->network.head != HEAD_AUTO },
        { "network.norm", config->network.norm != NORM_BATCH },
        { "network.padding", config->network.padding != PADDING_ZERO },
        { "data.slides", config_whole(config) },
        { "data.resize_px", config->data.resize_px > 0 },
        { "data.spacing_um_px", config->data.spacing_um_px > 0 },
        { "data.patient", config->data.patient[0] != 0 },
        { "data.hard_negatives", config->data.hard_negatives[0] != 0 },
        { "data.synthetic", config->data.synthetic.n > 0 },
        { "data.stain", config->data.stain != STAIN_NONE },
        { "data.split: attribute", config->data.split == SPLIT_ATTRIBUTE },
        { "mine.stores", config->mine.stores.n > 0 },
        { "train.mixup", config->train.mixup > 0 },
        { "train.tta", config->train.tta },
        { "privacy.epsilon", config_private(config) },
        { "parallel.stages", config_staged(config) },
        { "parallel.space", config_divided(config) },
    };
    return refuse_first(keys, sizeof keys / sizeof *keys, why, err);
}

static bool check_recordings(const struct train_config *config, struct err *err)
{
    static const char why[] = "cannot be used with recordings (data.audio)";
    const struct own_key keys[] = {
        { "parallel: auto", config->pipeline.automatic },
        { "data.tokenizer", config->data.tokenizer[0] != 0 },
    };
    if (config->data.long_rule != SEQUENCE_TRUNCATE && config->data.long_rule != SEQUENCE_REFUSE)
        return err_set(err, ERR_USAGE,
                       "data.long: %s cannot be used with recordings (data.audio); use truncate or "
                       "refuse",
                       sequence_rule_names[config->data.long_rule]);
    return refuse_first(keys, sizeof keys / sizeof *keys, why, err) &&
           refuse_image_keys(config, why, err);
}

bool config_check_texts(const struct train_config *config, struct err *err)
{
    const struct own_key keys[] = {
        { "data.tokenizer", config->data.tokenizer[0] != 0 },
        { "data.patient_column", config->data.patient_column[0] != 0 },
        { "data.id", config->data.id[0] != 0 },
        { "data.long: windows", config->data.long_rule == SEQUENCE_WINDOWS },
    };
    if (config->data.long_rule != SEQUENCE_WINDOWS && config->data.window_overlap != 0.25)
        return err_set(err, ERR_USAGE,
                       "data.window_overlap: is for windows (data.long: windows); omit it");
    if (config_recordings(config))
        return check_recordings(config, err);
    if (config_texts(config))
        return refuse_image_keys(config, "cannot be used with texts (data.text)", err);
    return refuse_first(keys, sizeof keys / sizeof *keys, "is for texts (data.text)", err);
}
