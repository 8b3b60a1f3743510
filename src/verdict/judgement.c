/* judgement.c: see judgement.h. */
#include "verdict/judgement.h"

#include <stdlib.h>

#define MOST_DRAWS 200000000 /* of a bootstrap; with more scores there are fewer replicates */
#define LEAST_REPLICATES 200

int64_t judgement_replicates(int64_t wanted, int64_t n)
{
    if (n == 0 || wanted * n <= MOST_DRAWS)
        return wanted;
    int64_t fitting = MOST_DRAWS / n;
    int64_t fewer = fitting > LEAST_REPLICATES ? fitting : LEAST_REPLICATES;
    return fewer < wanted ? fewer : wanted;
}

static struct judgement counts_of(const struct scores_part *part)
{
    return (struct judgement){ .n = part->n,
                               .positives = part->positives,
                               .patients = part->n_patients,
                               .clustered = part->clusters != NULL };
}

bool judgement_make(const struct scores_part *part, const struct judgement_options *options,
                    const struct ctx *ctx, struct judgement *out, struct err *err)
{
    const struct roc_options roc = { judgement_replicates(options->replicates, part->n),
                                     options->seed, part->clusters };
    *out = counts_of(part);
    bool ok = roc_compute(part->values, part->positive, part->n, &roc, ctx, &out->roc, err) &&
              precision_compute(part->values, part->positive, part->n, &out->precision, err) &&
              calibration_compute(part->values, part->positive, part->n, options->bins,
                                  &out->calibration, err);
    if (!ok)
        judgement_free(out);
    return ok;
}

void judgement_free(struct judgement *judgement)
{
    roc_free(&judgement->roc);
    precision_free(&judgement->precision);
    calibration_free(&judgement->calibration);
    *judgement = (struct judgement){ 0 };
}

static const char *flaw_of(const struct scores_part *part)
{
    bool differ = false;
    for (int64_t i = 1; i < part->n; i++)
        differ = differ || part->values[i] != part->values[0];
    return part->positives == 0         ? "no positives"
           : part->positives == part->n ? "no negatives"
           : differ                     ? NULL
                                        : "all scores are equal";
}

static bool judge_group(const struct scores *scores, const struct judgement_options *options,
                        const struct ctx *ctx, struct judged_group *group, struct err *err)
{
    struct scores_part part;
    if (!scores_part(scores, group->value, &part, err))
        return false;
    group->flaw = flaw_of(&part);
    group->small = part.positives < GROUP_SMALL || part.n - part.positives < GROUP_SMALL;
    group->judgement = counts_of(&part);
    bool ok = group->flaw || judgement_make(&part, options, ctx, &group->judgement, err);
    scores_part_free(&part);
    return ok;
}

bool judged_groups_make(const struct scores *scores, const struct judgement_options *options,
                        const struct ctx *ctx, struct judged_groups *out, struct err *err)
{
    const char **values = NULL;
    size_t n = 0;
    *out = (struct judged_groups){ 0 };
    if (!scores_groups(scores, &values, &n, err))
        return false;
    out->items = calloc(n + 1, sizeof *out->items);
    bool ok = out->items || err_memory(err, "the groups");
    for (size_t i = 0; ok && i < n; i++) {
        out->items[i].value = values[i];
        out->n++;
        ok = judge_group(scores, options, ctx, &out->items[i], err);
    }
    free(values);
    if (!ok)
        judged_groups_free(out);
    return ok;
}

void judged_groups_free(struct judged_groups *groups)
{
    for (size_t i = 0; i < groups->n; i++)
        judgement_free(&groups->items[i].judgement);
    free(groups->items);
    *groups = (struct judged_groups){ 0 };
}
