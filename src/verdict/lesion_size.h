/* lesion_size.h: a mask of tumour -> its lesions with their sizes, and the type of a metastasis by
 * the size of its largest lesion, as in CAMELYON17. */
#ifndef VERDICT_LESION_SIZE_H
#define VERDICT_LESION_SIZE_H
#include <stdint.h>
#include "base/err.h"
#include "base/image.h"

/* In the order of their severity. */
enum metastasis { METASTASIS_NONE, METASTASIS_ITC, METASTASIS_MICRO, METASTASIS_MACRO };
#define METASTASES 4
extern const char *const metastasis_names[]; /* negative, itc, micro, macro; NULL-terminated */

struct size_rules {
    double join_um;  /* pieces nearer than this are one lesion: 75, as in CAMELYON16's rules */
    double least_um; /* smaller lesions are dropped: 0 */
    double itc_um;   /* isolated tumour cells are smaller: 200 */
    double macro_um; /* macro-metastases are larger: 2000 */
};
struct size_rules size_rules_camelyon17(void);

struct lesion_size {
    double diameter_um; /* major axis of the ellipse with the same second moments (regions.h) */
    double area_um2;
    double x_px, y_px; /* centre, mask px */
    double score;      /* highest value; 0 without values */
    enum metastasis type;
};

struct lesion_sizes {
    struct lesion_size *items; /* largest diameter first */
    int32_t n;
};

/* The type of a lesion. That isolated tumour cells are also fewer than 200 cells is not checked:
 * cells are not counted. */
enum metastasis metastasis_of(double diameter_um, const struct size_rules *rules);

/* mask: 255 is tumour, 0 is not; values [height, width] may be NULL. A lesion is all tumour whose
 * pieces, each nearer than join_um to the next, are connected; gaps between them are closed with a
 * disc of that diameter and holes are filled before it is measured. *out is the caller's; free with
 * lesion_sizes_free. */
bool lesion_sizes_of_mask(const struct image *mask, const float *values, double um_per_px,
                          const struct size_rules *rules, struct lesion_sizes *out,
                          struct err *err);
void lesion_sizes_free(struct lesion_sizes *sizes); /* also fine on a zeroed struct */
/* That of the largest lesion. */
enum metastasis lesion_sizes_type(const struct lesion_sizes *sizes);
#endif
