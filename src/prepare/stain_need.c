/* stain_need.c: see stain_need.h. */
#include "prepare/stain_need.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SAME_TARGET 1e-6 /* largest difference of two numbers of a target, as a share */

static bool method_of(const char *name, enum stain_method *out)
{
    for (int i = 0; stain_method_names[i]; i++)
        if (strcmp(stain_method_names[i], name) == 0) {
            *out = (enum stain_method)i;
            return true;
        }
    return false;
}

bool stain_need_of(const struct model_config *config, struct stain_need *out, struct err *err)
{
    const struct model_stain *said = &config->stain;
    *out = (struct stain_need){ .known = said->method[0] != 0, .per_patch = said->per_patch };
    if (!out->known)
        return true;
    if (!method_of(said->method, &out->target.method))
        return err_set(err, ERR_FORMAT,
                       "the model's stain normalisation '%s' is not known to this version",
                       said->method);
    memcpy(out->target.matrix, said->matrix, sizeof out->target.matrix);
    memcpy(out->target.concentration_p99, said->concentration_p99,
           sizeof out->target.concentration_p99);
    memcpy(out->target.lab_mean, said->lab_mean, sizeof out->target.lab_mean);
    memcpy(out->target.lab_std, said->lab_std, sizeof out->target.lab_std);
    return true;
}

void stain_need_put(const struct stain_need *need, struct model_config *config)
{
    struct model_stain *said = &config->stain;
    *said = (struct model_stain){ .per_patch = need->per_patch };
    if (!need->known)
        return;
    snprintf(said->method, sizeof said->method, "%s", stain_method_names[need->target.method]);
    memcpy(said->matrix, need->target.matrix, sizeof said->matrix);
    memcpy(said->concentration_p99, need->target.concentration_p99, sizeof said->concentration_p99);
    memcpy(said->lab_mean, need->target.lab_mean, sizeof said->lab_mean);
    memcpy(said->lab_std, need->target.lab_std, sizeof said->lab_std);
}

bool stain_need_target(enum stain_method method, const char *template, struct stain_fit *out,
                       struct err *err)
{
    struct image image = { 0 };
    *out = stain_default_target(method);
    if (method == STAIN_NONE || !template || !template[0])
        return true;
    if (!image_read(template, &image, err))
        return false;
    bool ok = stain_fit(method, image.px, image.width * image.height, out, err) ||
              err_prefix(err, template);
    image_free(&image);
    return ok;
}

static bool same(const double *a, const double *b, int n)
{
    for (int i = 0; i < n; i++)
        if (!(fabs(a[i] - b[i]) <= SAME_TARGET * fmax(1, fabs(a[i]))))
            return false;
    return true;
}

bool stain_same_target(const struct stain_fit *a, const struct stain_fit *b)
{
    if (a->method != b->method)
        return false;
    if (a->method == STAIN_NONE)
        return true;
    if (a->method == STAIN_REINHARD)
        return same(a->lab_mean, b->lab_mean, 3) && same(a->lab_std, b->lab_std, 3);
    return same(&a->matrix[0][0], &b->matrix[0][0], 6) &&
           same(a->concentration_p99, b->concentration_p99, 2);
}

struct stain_fit stain_of_store(const struct store_facts *facts)
{
    struct stain_fit fit = { .method = STAIN_NONE };
    if (!method_of(facts->stain_method, &fit.method))
        return fit;
    memcpy(fit.matrix, facts->target_matrix, sizeof fit.matrix);
    memcpy(fit.concentration_p99, facts->target_p99, sizeof fit.concentration_p99);
    memcpy(fit.lab_mean, facts->target_lab_mean, sizeof fit.lab_mean);
    memcpy(fit.lab_std, facts->target_lab_std, sizeof fit.lab_std);
    return fit;
}

/* "raw pixels", "macenko-normalised patches" */
static const char *words(enum stain_method method, char out[64])
{
    if (method == STAIN_NONE)
        return "raw pixels";
    snprintf(out, 64, "%s-normalised patches", stain_method_names[method]);
    return out;
}

bool stain_need_check(const struct stain_need *need, const struct stain_fit *have,
                      const char *model, const char *path, const char *remedy, struct err *err)
{
    static const struct stain_fit raw = { .method = STAIN_NONE };
    const struct stain_fit *wanted = need->per_patch ? &raw : &need->target;
    char expects[64], holds[64];
    if (!need->known || stain_same_target(wanted, have))
        return true;
    return err_set(err, ERR_USAGE, "%s: holds %s, but %s was trained on %s%s; %s", path,
                   words(have->method, holds), model, words(wanted->method, expects),
                   wanted->method == have->method ? " of another template" : "", remedy);
}

bool stain_need_patch(const struct stain_need *need, struct image *patch, struct err *err)
{
    const int64_t n_px = patch->width * patch->height;
    struct stain_fit source;
    struct stain_transform *transform = NULL;
    struct err why = { 0 };
    if (!need->per_patch || need->target.method == STAIN_NONE)
        return true;
    if (!stain_fit(need->target.method, patch->px, n_px, &source, &why))
        return why.kind != ERR_MEMORY || err_memory(err, "the stains of a patch");
    if (!stain_transform_new(&source, &need->target, &transform, err))
        return false;
    stain_apply(transform, patch->px, n_px);
    stain_transform_free(transform);
    return true;
}
