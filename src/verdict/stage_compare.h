/* stage_compare.h: predicted and true stages -> confusion matrices and quadratic weighted kappa, as
 * CAMELYON17 is evaluated. */
#ifndef VERDICT_STAGE_COMPARE_H
#define VERDICT_STAGE_COMPARE_H
#include "verdict/confusion.h"
#include "verdict/stage_table.h"

struct stage_agreement {
    struct confusion confusion;
    int64_t replicates; /* of the bootstrap of quadratic kappa; 0: none, or kappa is undefined */
    double low, high;
};

struct stage_comparison {
    bool with_patients, with_slides;         /* both tables have them */
    struct stage_agreement patients, slides; /* of the five stages; of the four types */
    int64_t left_out;                        /* rows that only one of the tables has */
};

/* Two tables (stage_table.h). A patient, or a slide if both tables have slides, that one of them
 * lacks is an error, or with allow_missing is skipped. *out is the caller's; free with
 * stage_comparison_free. */
bool stage_compare(const char *path, const char *truth_path, bool allow_missing, int64_t replicates,
                   uint64_t seed, struct stage_comparison *out, struct err *err);
void stage_comparison_free(struct stage_comparison *comparison); /* also fine on a zeroed struct */
#endif
