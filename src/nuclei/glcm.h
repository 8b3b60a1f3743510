/* glcm.h: grey levels of some pixels -> co-occurrence matrix -> texture (Haralick), as
 * scikit-image's graycomatrix and graycoprops define it. Of nuclei, and in likeness/ of patches. */
#ifndef NUCLEI_GLCM_H
#define NUCLEI_GLCM_H
#include "nuclei/nuclei.h"

/* Some pixels of a label image: their indices, and the label all of them have. */
struct glcm_pixels {
    const struct nuclei_labels *labels;
    const int32_t *px;
    int64_t n;
};

/* counts [n_levels, n_levels] is overwritten: how often level i is (dx, dy) from level j, in either
 * direction (symmetric), both pixels having the same label. levels [height, width]: below n_levels.
 * Returns the sum of the counts. */
int64_t glcm_count(const struct glcm_pixels *pixels, const uint8_t *levels, int n_levels, int dx,
                   int dy, uint32_t *counts);

struct glcm_texture {
    double second_moment; /* sum P^2 */
    double contrast;      /* sum P (i - j)^2 */
    double correlation;   /* 1 if all pixels have one level, as scikit-image has it */
};

/* total: the sum of the counts, above 0. */
struct glcm_texture glcm_texture(const uint32_t *counts, int n_levels, int64_t total);
#endif
