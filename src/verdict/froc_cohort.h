/* froc_cohort.h: a folder of lesion lists and the truth of its slides -> an FROC curve. */
#ifndef VERDICT_FROC_COHORT_H
#define VERDICT_FROC_COHORT_H
#include "base/ctx.h"
#include "verdict/froc.h"
#include "verdict/truth_list.h"

struct froc_cohort {
    int64_t slides, with_tumour; /* with_tumour: slides with at least one lesion that counts */
    int64_t lesions, isolated;   /* lesions that count, and groups of isolated tumour cells */
    int64_t calls, ignored;      /* ignored: calls on isolated cells */
    int64_t left_out;            /* slides without a list or without truth */
    struct froc froc;
};

/* With rules->mpp 0 the um/px of a slide come from the truth list, else they are CAMELYON16's.
 * folder contains <slide>.csv (lesions.h) for every slide, including those without lesions. Slides
 * with only a list or only truth are an error or, with allow_missing, skipped. *out is the
 * caller's; free with froc_free(&out->froc). */
bool froc_of_folder(const char *folder, const struct truth_list *truth,
                    const struct froc_rules *rules, bool allow_missing, const struct ctx *ctx,
                    struct froc_cohort *out, struct err *err);
#endif
