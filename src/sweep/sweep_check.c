/* sweep_check.c: the configs of all combinations, before any is trained (sweep.h). */
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "base/file.h"
#include "base/text.h"
#include "sweep/sweep.h"
#include "train/network.h"
#include "train/objectives.h"

#define MAX_CONFIG_BYTES (4 << 20)

/* A combination that is complete is kept: it must be what would be trained now. One that is not is
 * checked by its training when it resumes. */
static bool check_kept(const struct sweep *sweep, size_t i, const struct train_config *config,
                       struct err *err)
{
    char *result = text_format("%s/%s/" SWEEP_RESULT, sweep->folder, sweep->items[i].name);
    char *path = text_format("%s/%s/config.yaml", sweep->folder, sweep->items[i].name);
    char *then = NULL, *now = config_text(config);
    bool ok = (result && path && now) || err_memory(err, "the sweep");
    if (ok && file_exists(result))
        ok = file_read(path, MAX_CONFIG_BYTES, &then, NULL, err) &&
             config_same(path, then, now, true, err);
    free(result);
    free(path);
    free(then);
    free(now);
    return ok;
}

/* The network is the same in all combinations unless one of its keys is swept. */
static bool needs_network(const struct sweep *sweep, size_t i)
{
    bool swept = i == 0;
    for (size_t a = 0; a < sweep->n_axes; a++)
        swept = swept || strncmp(sweep->axes[a].key->path, "network.", strlen("network.")) == 0;
    return swept;
}

/* It exists and takes patches of this size. A teacher's is not the config's. */
static bool check_network(const struct train_config *config, struct err *err)
{
    struct graph *graph = NULL;
    if (config->distill.teacher[0])
        return true;
    bool ok =
        config->truth == TRUTH_LABEL_IMAGES
            ? network_build_pixels(config, 1, &graph, err)
            : network_build(config, 1, "a network that can be trained on patches", &graph, err);
    graph_free(graph);
    return ok;
}

static bool check_one(const struct sweep *sweep, size_t i, const struct train_start *start,
                      struct err *err)
{
    char **own = sweep_settings(sweep, i), *folder = sweep_folder(sweep, i);
    const char **all = calloc(start->n_settings + sweep->n_axes + 1, sizeof *all);
    struct train_config config = { 0 };
    struct train_start one = *start;
    bool ok = (own && folder && all) || err_memory(err, "the sweep");
    for (size_t k = 0; ok && k < start->n_settings; k++)
        all[k] = start->settings[k];
    for (size_t a = 0; ok && a < sweep->n_axes; a++)
        all[start->n_settings + a] = own[a];
    one.settings = all;
    one.n_settings = start->n_settings + sweep->n_axes;
    one.folder = folder;
    ok = ok && train_start_config(&one, &config, err);
    ok = ok && (!needs_network(sweep, i) || check_network(&config, err));
    ok = ok && (start->overwrite || check_kept(sweep, i, &config, err));
    config_free(&config);
    sweep_settings_free(own, sweep->n_axes);
    free(folder);
    free(all);
    return ok || err_prefix(err, sweep->items[i].name);
}

/* The best of combinations that are validated on different patches may be the one with the easier
 * ones. */
static void warn_validation(const struct sweep *sweep, const struct ctx *ctx)
{
    static const char *const keys[] = { "seed",       "data.train",        "data.val",
                                        "data.split", "data.val_fraction", "data.patient" };
    for (size_t a = 0; a < sweep->n_axes; a++)
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            if (strcmp(sweep->axes[a].key->path, keys[i]) == 0)
                console_warn(ctx->console,
                             "%s may change which patches are used for validation; measures on "
                             "different patches are hard to compare",
                             keys[i]);
}

bool sweep_choose_measure(struct sweep *sweep, const struct train_start *start, struct err *err)
{
    static const char *const losses[] = { "train.loss", "distill.loss" };
    struct train_config config;
    struct train_start plain = *start;
    plain.folder = sweep->folder;
    if (!train_start_config(&plain, &config, err))
        return false;
    int monitor = config.train.monitor;
    sweep->measure =
        monitor == MONITOR_LAST ? objective_of(&config)->monitor : config_monitors[monitor];
    sweep->lowest = strcmp(sweep->measure, "loss") == 0;
    config_free(&config);
    for (size_t a = 0; sweep->lowest && a < sweep->n_axes; a++)
        for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
            if (strcmp(sweep->axes[a].key->path, losses[i]) == 0)
                return err_set(err, ERR_USAGE,
                               "--sweep: %s: combinations are compared by the loss, and different "
                               "losses cannot be compared; set train.monitor",
                               losses[i]);
    return true;
}

/* A sweep and a training in one folder would overwrite each other's model and state. */
static bool check_folder(const struct sweep *sweep, struct err *err)
{
    char *training = text_format("%s/config.yaml", sweep->folder);
    bool ok = training || err_memory(err, "the sweep");
    if (ok && file_exists(training))
        ok = err_set(err, ERR_USAGE,
                     "%s: already contains a training run; use another folder for the sweep",
                     sweep->folder);
    free(training);
    return ok;
}

bool sweep_check(struct sweep *sweep, const struct train_start *start, const struct ctx *ctx,
                 struct err *err)
{
    bool ok = sweep_choose_measure(sweep, start, err) && /* or what is wrong with all of them */
              check_folder(sweep, err);
    for (size_t i = 0; ok && i < sweep->n; i++)
        ok = ctx_stopped(ctx) ? err_stopped(err) : check_one(sweep, i, start, err);
    if (ok)
        warn_validation(sweep, ctx);
    return ok;
}
