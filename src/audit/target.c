/* target.c: see target.h. */
#include <stdlib.h>
#include "audit/target.h"
#include "base/file.h"
#include "base/text.h"

extern const struct audited_kind target_classifier, target_generator;

/* By the objective in the config.json of a folder; a model without one is a classifier. */
static bool find_kind(const char *path, const struct audited_kind **out, struct err *err)
{
    struct model_config config;
    char *file = text_format("%s/config.json", path);
    *out = &target_classifier;
    bool ok = file || err_memory(err, path), read = ok && file_exists(file);
    if (read) {
        model_config_init(&config);
        ok = model_config_read(file, &config, err);
        *out = config.objective == OBJECTIVE_GENERATE ? &target_generator : *out;
        if (ok && config.objective != OBJECTIVE_GENERATE && config.objective != OBJECTIVE_CLASSIFY)
            ok = err_set(err, ERR_USAGE,
                         "%s: an audit takes classifiers and models that make patches, not "
                         "objective %s",
                         path, model_config_objective(config.objective));
        model_config_free(&config);
    }
    free(file);
    return ok;
}

bool target_open(const char *path, const struct ctx *ctx, struct target *out, struct err *err)
{
    *out = (struct target){ 0 };
    return find_kind(path, &out->kind, err) && out->kind->open(out, path, false, 0, ctx, err);
}

bool target_untrained(const char *path, uint64_t seed, const struct ctx *ctx, struct target *out,
                      struct err *err)
{
    *out = (struct target){ 0 };
    return find_kind(path, &out->kind, err) && out->kind->open(out, path, true, seed, ctx, err);
}

void target_close(struct target *target)
{
    if (target->kind)
        target->kind->close(target);
    *target = (struct target){ 0 };
}

bool target_measure(struct target *target, const struct audit_set *set, const struct ctx *ctx,
                    struct signal *out, struct err *err)
{
    bool ok = true;
    for (int s = 0; s < target->kind->n_signals; s++)
        out[s] = (struct signal){ 0 };
    for (int s = 0; ok && s < target->kind->n_signals; s++)
        ok = signal_new(set->n, &out[s], err);
    ok = ok && target->kind->measure(target, set, ctx, out, err);
    for (int s = 0; !ok && s < target->kind->n_signals; s++)
        signal_free(&out[s]);
    return ok;
}
