/* froc.h: called lesions and true lesions -> the free-response ROC curve and its score, by the
 * rules of the CAMELYON16 challenge:
 * - The truth of a slide is a mask of tumour. Pixels nearer than half of 75 um to tumour join it,
 *   holes are filled, and pieces that touch by edges or corners are one lesion.
 * - A lesion whose longest axis is below 275 um is a group of isolated tumour cells: it is not
 *   counted, and hits on it are neither right nor wrong.
 * - A call within a lesion is a hit; if there are several, the highest score counts. A call
 *   elsewhere is a false positive.
 * - Thresholds are all scores except the lowest (a lesion without a hit has score 0, which is one
 *   of them); sensitivity is hits over lesions, the other axis false positives over slides.
 * - The score is the mean sensitivity at 1/4, 1/2, 1, 2, 4 and 8 false positives per slide, linear
 *   between points and constant beyond the ends of the curve. */
#ifndef VERDICT_FROC_H
#define VERDICT_FROC_H
#include <stdbool.h>
#include <stdint.h>
#include "base/image.h"
#include "verdict/lesions.h"

/* How a lesion and a false positive with the same score are treated. */
enum froc_ties {
    FROC_TIES_EQUAL,    /* one threshold, which both pass */
    FROC_TIES_OFFICIAL, /* as in the challenge's program, which keeps the scores of lesions in
                         * single precision and those of false positives in double: both are
                         * thresholds. False positives are compared with them in double precision,
                         * lesions in single. If the rounded score of a lesion is the higher one,
                         * there is a threshold that the lesion passes and the false positive does
                         * not. */
};
extern const char *const froc_ties_names[]; /* NULL-terminated, in the order of the enum */

struct froc_rules {
    double mpp;         /* um per level-0 px: 0.243; 0: per slide (froc_cohort.h) */
    double downsample;  /* level-0 px per mask px: 32 */
    double join_um;     /* 75 */
    double isolated_um; /* 275 */
    enum froc_ties ties;
};
struct froc_rules froc_camelyon16(void);

/* The lesions of one slide. */
struct froc_truth {
    int64_t width, height;      /* of the mask */
    int64_t origin_x, origin_y; /* of the mask on the slide, mask px; 0 unless set afterwards */
    double downsample;
    int32_t *labels; /* [height, width]: 0 or the number of a lesion, from 1; NULL: no tumour */
    int32_t n;
    bool *isolated;  /* [n] */
    int64_t counted; /* lesions that are not isolated cells */
};

/* mask: 255 is tumour, 0 is not; it is changed. Distances to the tumour: 0.4 s for 3000 x 6000 px,
 * and 4 bytes for each. *out is the caller's; free with froc_truth_free. */
bool froc_truth_of_mask(struct image *mask, const struct froc_rules *rules, struct froc_truth *out,
                        struct err *err);
void froc_truth_free(struct froc_truth *truth);

/* All slides so far. */
struct froc_data {
    double *wrong; /* [n_wrong] scores of false positives */
    int64_t n_wrong, room_wrong;
    double *found; /* [n_found] the score of every lesion, including isolated ones; 0: no hit */
    int64_t n_found, room_found;
    int64_t slides, lesions; /* lesions that are counted */
};

struct froc_slide {
    int64_t calls, hits, wrong, ignored; /* hits: lesions that were hit, ignored: isolated cells */
};

/* truth NULL: a slide without tumour. *slide may be NULL. */
bool froc_add(struct froc_data *data, const struct froc_truth *truth,
              const struct lesion_list *calls, struct froc_slide *slide, struct err *err);
void froc_data_free(struct froc_data *data);

struct froc_point {
    double wrong_per_slide, sensitivity, threshold; /* infinite at (0, 0) */
};

#define FROC_RATES 6
extern const double froc_rates[FROC_RATES]; /* 1/4 .. 8 false positives per slide */

struct froc {
    double score;
    double at[FROC_RATES];     /* sensitivity at froc_rates */
    struct froc_point *points; /* from the lowest threshold to (0, 0) */
    int64_t n_points;
};

/* No lesions at all is an error. *out is the caller's; free with froc_free. */
bool froc_compute(const struct froc_data *data, enum froc_ties ties, struct froc *out,
                  struct err *err);
/* Linear between points, constant beyond the ends. */
double froc_sensitivity(const struct froc *froc, double wrong_per_slide);
void froc_free(struct froc *froc);
#endif
