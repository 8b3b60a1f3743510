/* objectives.c: see objectives.h. A new objective is a line in OBJECTIVES and the file that defines
 * objective_<name>. */
#include "train/objectives.h"

#include <stdio.h>
#include <string.h>
#include "base/file.h"
#include "base/names.h"

#define OBJECTIVES(LINE)                                                                           \
    LINE(classify)                                                                                 \
    LINE(classify_audio)                                                                           \
    LINE(classify_text)                                                                            \
    LINE(distill)                                                                                  \
    LINE(encode)                                                                                   \
    LINE(generate)                                                                                 \
    LINE(mask)                                                                                     \
    LINE(regress)                                                                                  \
    LINE(segment)

#define DECLARE(name) extern const struct objective objective_##name;
OBJECTIVES(DECLARE)

#define NUMBER(name) NUMBER_##name,
enum { OBJECTIVES(NUMBER) N_OBJECTIVES };

#define ENTRY(name) &objective_##name,
static const struct objective *const objectives[] = { OBJECTIVES(ENTRY) };

#define NAME(name) #name,
const char *const objective_names[] = { OBJECTIVES(NAME) NULL };

const struct objective *objective_of(const struct train_config *config)
{
    return objectives[config->objective];
}

int objective_measure(const struct objective *objective, const char *name)
{
    for (int i = 0; i < objective->n_measures; i++)
        if (strcmp(objective->measures[i].name, name) == 0)
            return i;
    return -1;
}

/* Recordings are another kind of sample, and so are texts. */
static bool choose_for_recordings(struct train_config *config, struct err *err)
{
    if (config_recordings(config) && config_texts(config))
        return err_set(err, ERR_USAGE,
                       "data.text: a table has texts or recordings (data.audio); omit one of them");
    if (config_recordings(config) && config->objective == NUMBER_classify)
        config->objective = NUMBER_classify_audio;
    if (!config_recordings(config) && config->objective == NUMBER_classify_audio)
        return err_set(err, ERR_USAGE,
                       "objective: classify_audio learns from recordings; set data.audio, the "
                       "column of the tables in data.train that has their files");
    return !config_recordings(config) || config->objective == NUMBER_classify_audio ||
           err_set(err, ERR_USAGE, "data.audio: recordings are for objective classify, not %s",
                   objective_of(config)->name);
}

/* A teacher means distillation, and the other way round; texts are another kind of sample. */
static bool choose_objective(struct train_config *config, struct err *err)
{
    bool taught = config->distill.teacher[0] != 0;
    if (!choose_for_recordings(config, err))
        return false;
    if (config_texts(config) && config->objective == NUMBER_classify)
        config->objective = NUMBER_classify_text;
    if (!config_texts(config) && config->objective == NUMBER_classify_text)
        return err_set(err, ERR_USAGE,
                       "objective: classify_text learns from texts; set data.text, the column of "
                       "the tables in data.train that has them");
    if (!config_texts(config) && config->objective == NUMBER_mask)
        return err_set(err, ERR_USAGE,
                       "objective: mask learns from texts; set data.text, the column of the tables "
                       "in data.train that has them");
    if (config_texts(config) && config->objective != NUMBER_classify_text &&
        config->objective != NUMBER_mask)
        return err_set(err, ERR_USAGE,
                       "data.text: texts are for the objectives classify and mask, not %s",
                       objective_of(config)->name);
    if (taught && config->objective == NUMBER_classify)
        config->objective = NUMBER_distill;
    if (taught && config->objective != NUMBER_distill)
        return err_set(err, ERR_USAGE,
                       "distill.teacher: objective %s has no teacher; omit it, or set objective: "
                       "distill",
                       objective_of(config)->name);
    if (!taught && config->objective == NUMBER_distill)
        return err_set(err, ERR_USAGE,
                       "objective: distill needs a teacher; set distill.teacher, or pass "
                       "--distill-dense");
    return true;
}

static int index_of(const char *const *names, const char *name)
{
    int i = 0;
    while (names[i] && strcmp(names[i], name) != 0)
        i++;
    return i;
}

static bool refuse_monitor(const char *name, const struct objective *objective, struct err *err)
{
    const char *fit[OBJECTIVE_MOST_MEASURES + 1];
    char list[200];
    size_t n = 0;
    for (int i = 0; i < objective->n_measures; i++)
        if (config_monitors[index_of(config_monitors, objective->measures[i].name)])
            fit[n++] = objective->measures[i].name;
    fit[n++] = "loss";
    return err_set(err, ERR_USAGE,
                   "train.monitor: %s is not a measure of objective %s; use %s or last", name,
                   objective->name, names_join(fit, n, list, sizeof list));
}

static bool choose_monitor(struct train_config *config, struct err *err)
{
    const struct objective *objective = objective_of(config);
    const char *name = config_monitors[config->train.monitor];
    if (config->train.monitor == MONITOR_AUTO && config_private(config) &&
        !config_public(config, "val"))
        config->train.monitor = MONITOR_LAST;
    else if (config->train.monitor == MONITOR_AUTO)
        config->train.monitor = index_of(config_monitors, objective->monitor);
    else if (config->train.monitor != MONITOR_LOSS && config->train.monitor != MONITOR_LAST &&
             objective_measure(objective, name) < 0)
        return refuse_monitor(name, objective, err);
    return true;
}

/* All pairs that the objective takes, in words. */
static void list_losses(const struct objective *objective, char *text, size_t size)
{
    size_t used = 0;
    for (const struct objective_loss *pair = objective->losses; pair->loss && used < size; pair++)
        used +=
            (size_t)snprintf(text + used, size - used, "%s%s with activation %s",
                             pair == objective->losses ? "" : ", ", pair->loss, pair->activation);
}

/* The first pair that has what is given. */
static bool choose_loss(struct train_config *config, struct err *err)
{
    const struct objective *objective = objective_of(config);
    const char *loss = config_losses[config->train.loss];
    const char *activation = config_activations[config->network.activation];
    bool any_loss = config->train.loss == 0, any_activation = config->network.activation == 0;
    char list[300] = "";
    if (!objective->losses)
        return (any_loss && any_activation) ||
               err_set(err, ERR_USAGE, "%s: objective %s has its own; omit it",
                       any_loss ? "network.activation" : "train.loss", objective->name);
    const struct objective_loss *pair = objective->losses;
    while (pair->loss && ((!any_loss && strcmp(pair->loss, loss) != 0) ||
                          (!any_activation && strcmp(pair->activation, activation) != 0)))
        pair++;
    list_losses(objective, list, sizeof list);
    if (!pair->loss)
        return err_set(err, ERR_USAGE,
                       "train.loss: %s with network.activation: %s is not taken by objective %s; "
                       "it takes %s",
                       loss, activation, objective->name, list);
    config->train.loss = index_of(config_losses, pair->loss);
    config->network.activation = index_of(config_activations, pair->activation);
    return true;
}

bool objective_resolve(struct train_config *config, struct err *err)
{
    if (!choose_objective(config, err) || !choose_monitor(config, err) || !choose_loss(config, err))
        return false;
    config->truth = objective_of(config)->truth;
    return true;
}

/* What a file holds that is not patches, by its name; NULL: patches, or a file that others will
 * complain about. */
static const char *other_data(const char *path)
{
    static const struct {
        const char *what, *extensions;
    } kinds[] = {
        { "whole slides", ".svs .tif .tiff .ndpi .vms .vmu .scn .mrxs .svslide .bif " },
        { "features", ".pt .pth .npy .npz " },
        { "texts", ".txt .csv .tsv .json .jsonl " },
    };
    const char *extension = file_extension(path);
    size_t length = strlen(extension);
    for (size_t i = 0; length > 1 && i < sizeof kinds / sizeof *kinds; i++)
        for (const char *at = kinds[i].extensions; (at = strstr(at, extension)); at += length)
            if (at[length] == ' ')
                return kinds[i].what;
    return NULL;
}

static bool check_data(const struct train_config *config, struct err *err)
{
    const struct objective *objective = objective_of(config);
    const struct texts *const lists[] = { &config->data.train, &config->data.val,
                                          &config->data.test, &config->data.synthetic };
    static const char *const keys[] = { "data.train", "data.val", "data.test", "data.synthetic" };
    for (int k = 0; k < 4 && !config_whole(config) && !config_tables(config); k++)
        for (size_t i = 0; i < lists[k]->n; i++) {
            const char *path = lists[k]->items[i], *other = other_data(path);
            if (other && !file_is_folder(path))
                return err_set(err, ERR_USAGE,
                               "%s: %s: %s are not taken by objective %s; it takes %s", keys[k],
                               path, other, objective->name, objective->takes);
        }
    return true;
}

bool objective_settle(struct train_config *config, const char *path, struct err *err)
{
    if (!objective_resolve(config, err) || !config_check_texts(config, err) ||
        !config_check_slides(config, err) || !check_data(config, err) ||
        !config_check_private(config, err))
        return path ? err_prefix(err, path) : false;
    return !objective_of(config)->settle || objective_of(config)->settle(config, err);
}
