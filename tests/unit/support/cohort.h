/* cohort.h: small labelled patches for tests of training: pink ground with few (label 0) or many
 * (label 1) dark nuclei. What a patch looks like depends on (patient, number) alone. */
#ifndef TESTS_UNIT_SUPPORT_COHORT_H
#define TESTS_UNIT_SUPPORT_COHORT_H
#include <stdint.h>
#include "base/image.h"

/* [side, side, 3], label is number % 2. The caller's; image_free. */
void cohort_patch(int patient, int number, int64_t side, struct image *out);

/* How many nuclei a patch has. */
int64_t cohort_nuclei(int number, int64_t side);

/* SCRATCH/name, created again, empty; the caller's. */
char *cohort_folder(const char *name);

/* folder/{normal,tumor}/p<patient>_<number>_0.png */
void cohort_write_images(const char *folder, int patients, int patches, int64_t side);

/* folder/s<patient>.h5, with patient name "p<patient>" and this split; groups of `group`. Targets
 * are the nuclei. The last patch of each store has neither label nor target. */
void cohort_write_store(const char *folder, int patient, int patches, int64_t side, int64_t group,
                        const char *split);
#endif
