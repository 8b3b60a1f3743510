/* verdict.c: what an audit found, in plain words. */
#include <math.h>
#include <stdio.h>
#include "audit/study.h"

const struct study_attack *study_best(const struct study *study)
{
    const struct study_attack *best = NULL;
    for (int i = 0; i < study->n_attacks; i++) {
        const struct study_attack *a = &study->attacks[i];
        if (!a->control && (!best || a->power.roc.auc > best->power.roc.auc))
            best = a;
    }
    return best;
}

static const struct study_attack *find_control(const struct study *study)
{
    for (int i = 0; i < study->n_attacks; i++)
        if (study->attacks[i].control && !study->attacks[i].power.chance)
            return &study->attacks[i];
    return NULL;
}

/* The first attack that breaks the promise. */
static const struct study_attack *find_breach(const struct study *study)
{
    for (int i = 0; i < study->n_attacks; i++) {
        const struct study_attack *a = &study->attacks[i];
        bool above = a->power.at[0].above || a->power.at[1].above ||
                     a->power.one_run.epsilon > study->promise.epsilon;
        if (!a->control && above)
            return a;
    }
    return NULL;
}

static bool any_leak(const struct study *study)
{
    for (int i = 0; i < study->n_attacks; i++)
        if (!study->attacks[i].control && !study->attacks[i].power.chance)
            return true;
    return false;
}

static void say_quiet(struct study *study, const struct study_attack *best)
{
    const struct roc *roc = &best->power.roc;
    int used =
        snprintf(study->sentence, STUDY_TEXT,
                 "No attack is better than chance, as far as %lld patches can tell: the "
                 "best, %s, has an AUC of %.3f (%.3f to %.3f).",
                 (long long)study->set.n, best->name, roc->auc, roc->delong_low, roc->delong_high);
    if (isfinite(study->promise.epsilon) && used > 0 && used < STUDY_TEXT)
        snprintf(study->sentence + used, STUDY_TEXT - (size_t)used,
                 " The promised epsilon of %.3g is not contradicted.", study->promise.epsilon);
}

static void say_leak(struct study *study, const struct study_attack *best)
{
    const struct roc *roc = &best->power.roc;
    int used = snprintf(study->sentence, STUDY_TEXT,
                        "This model gives away which patches it was trained on: %s tells members "
                        "from others with an AUC of %.3f (%.3f to %.3f), and finds %.1f %% of the "
                        "members at 1 %% false alarms.",
                        best->name, roc->auc, roc->delong_low, roc->delong_high,
                        100 * best->power.at[0].tpr.value);
    if (isfinite(study->promise.epsilon) && used > 0 && used < STUDY_TEXT)
        snprintf(study->sentence + used, STUDY_TEXT - (size_t)used,
                 " That is within its promise, epsilon %.3g.", study->promise.epsilon);
}

void study_judge(struct study *study)
{
    const struct study_attack *best = study_best(study), *control = find_control(study),
                              *breach = find_breach(study);
    if (control) {
        study->verdict = STUDY_SHIFTED;
        snprintf(study->sentence, STUDY_TEXT,
                 "This audit says nothing: %s, which knows nothing of the training, has an AUC of "
                 "%.3f. Members and others differ by themselves; draw both at random from the same "
                 "patients.",
                 control->name, control->power.roc.auc);
    } else if (breach) {
        study->verdict = STUDY_BROKEN;
        snprintf(study->sentence, STUDY_TEXT,
                 "This model gives away more than it promises: %s is above what epsilon %.3g "
                 "allows. Do not share it; something in its training was not private.",
                 breach->name, study->promise.epsilon);
    } else if (any_leak(study)) {
        study->verdict = STUDY_LEAKS;
        say_leak(study, best);
    } else {
        study->verdict = STUDY_QUIET;
        say_quiet(study, best);
    }
}
