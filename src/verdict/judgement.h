/* judgement.h: scores with their truth -> everything `microtome evaluate roc` reports: the ROC
 * curve with its intervals, precision and recall, calibration; for all slides and by group. */
#ifndef VERDICT_JUDGEMENT_H
#define VERDICT_JUDGEMENT_H
#include "verdict/calibration.h"
#include "verdict/precision.h"
#include "verdict/roc.h"
#include "verdict/scores.h"

struct judgement_options {
    int64_t replicates; /* of the bootstrap; for very many scores fewer are drawn */
    uint64_t seed;
    int64_t bins; /* of the calibration curve; 0: none */
};

/* Replicates that are drawn for n scores. */
int64_t judgement_replicates(int64_t wanted, int64_t n);

struct judgement {
    int64_t n, positives; /* rows: slides or patients */
    int64_t patients;     /* 0: not known */
    bool clustered;       /* the bootstrap drew patients because some have several rows */
    struct roc roc;
    struct precision precision;
    struct calibration calibration;
};

bool judgement_make(const struct scores_part *part, const struct judgement_options *options,
                    const struct ctx *ctx, struct judgement *out, struct err *err);
void judgement_free(struct judgement *judgement); /* also fine on a zeroed struct */

enum { GROUP_SMALL = 10 }; /* with fewer positives or negatives the intervals mean little */

struct judged_group {
    const char *value; /* points into the scores */
    const char *flaw;  /* why there is no judgement, e.g. "no positives"; NULL: there is one */
    bool small;        /* fewer than GROUP_SMALL of a class */
    struct judgement judgement; /* with a flaw: counts only */
};

struct judged_groups {
    struct judged_group *items;
    size_t n;
};

/* One for each value of scores->groups. *out is the caller's; free with judged_groups_free. */
bool judged_groups_make(const struct scores *scores, const struct judgement_options *options,
                        const struct ctx *ctx, struct judged_groups *out, struct err *err);
void judged_groups_free(struct judged_groups *groups); /* also fine on a zeroed struct */
#endif
