/* concept_results.h: reads concepts.json, for tables on the terminal and in reports. */
#ifndef EXPLAIN_CONCEPT_RESULTS_H
#define EXPLAIN_CONCEPT_RESULTS_H
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

/* NaN: not tested, or not learnt. */
struct concept_result {
    char *layer, *concept, *verdict;
    bool answers; /* quality is an AUC instead of R2 */
    int64_t patches, patients;
    double quality, p_holm;
    double tcav, br, p_s_holm;
};

struct concept_results {
    char *model, *class_name, *pool, *fit;
    char *made_from; /* everything that decides the results */
    int64_t patches, patients, folds, permutations;
    struct concept_result *rows; /* by layer, then by concept */
    size_t n;
};

/* path: concepts.json. *out is the caller's; free with concept_results_free, also after a
 * failure. */
bool concept_results_read(const char *path, struct concept_results *out, struct err *err);
void concept_results_free(struct concept_results *results); /* also fine on a zeroed struct */
/* A p-value as a table shows it: "<.001", ".012"; "" if it is not a number. */
#define CONCEPT_P_TEXT 16
const char *concept_p_text(double p, char text[CONCEPT_P_TEXT]);
#endif
