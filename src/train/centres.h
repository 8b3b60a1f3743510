/* centres.h: where samples come from (a hospital, a scanner), read from the names of their
 * patients. */
#ifndef TRAIN_CENTRES_H
#define TRAIN_CENTRES_H
#include "train/dataset.h"

struct centres {
    char **names; /* [n], sorted */
    int64_t n;
    int32_t *of_patient; /* [patients of the data set]: index in names */
};

/* pattern: an extended regular expression whose first group, in the name of a patient, is the
 * centre; "": there are none. *out is the caller's. */
bool centres_find(const struct dataset *dataset, const char *pattern, struct centres *out,
                  struct err *err);
void centres_free(struct centres *centres); /* also fine on a zeroed struct */

/* Of a sample: index in names. */
int32_t centres_of(const struct centres *centres, const struct dataset *dataset, int64_t sample);
#endif
