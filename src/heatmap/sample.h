/* sample.h: a heatmap -> the scores at the pixels of a small picture of its slide, read row by row.
 */
#ifndef HEATMAP_SAMPLE_H
#define HEATMAP_SAMPLE_H
#include "base/ctx.h"
#include "heatmap/heatmap.h"

struct heatmap_picture {
    int64_t width, height; /* px, of the whole slide */
    int64_t class_index;   /* whose scores; unused with winners */
    int64_t memory_bytes;  /* for rows of the heatmap */
    float *scores;         /* [height, width]: NaN where there is no tissue; the caller's */
    int32_t *winners;      /* [height, width]: the class with the highest score, which is then the
                            * score of the pixel; NULL: the scores of one class. The caller's */
};

/* Fills scores, and winners if not NULL: the score under the middle of every pixel; where a pixel
 * is larger than a cell, the mean of a block of cells of about its size. */
bool heatmap_sample(const struct heatmap *heatmap, const struct heatmap_picture *picture,
                    const struct ctx *ctx, struct err *err);
#endif
