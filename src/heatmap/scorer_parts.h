/* scorer_parts.h: what the files of a scorer share. Private to scorer*.c. */
#ifndef HEATMAP_SCORER_PARTS_H
#define HEATMAP_SCORER_PARTS_H
#include "heatmap/scorer.h"

/* One of the eight ways to lay a square on itself, as model_lay: transposed, then mirrored in x, y.
 */
struct symmetry {
    bool transpose, flip_x, flip_y;
};

static inline struct symmetry scorer_symmetry(int i)
{
    return (struct symmetry){ i & 4, i & 1, i & 2 };
}

/* The rectangle at (x, y) of the region, as the network wants it, laid by a symmetry:
 * out [3, h, w], where h and w are already exchanged if it is transposed. */
void scorer_fill(const struct ensemble_model *m, const struct image *region, int64_t x, int64_t y,
                 int64_t h, int64_t w, struct symmetry s, float *out);

/* Adds the scores of one model in one symmetry. logits [height, width, classes] are changed where
 * the model is calibrated; p [classes] is scratch. */
bool scorer_add(const struct ensemble *e, const struct ensemble_model *m, float *logits,
                const struct scorer_block *block, double *p, float *scores, struct err *err);
/* The mean of what was added; NaN, which means no tissue, where no score is wanted. */
bool scorer_finish(const struct ensemble *e, const struct scorer_block *block, float *scores,
                   struct err *err);

const struct ensemble *scorer_ensemble(const struct scorer *scorer);
/* The memory for activations, ensemble->arena_bytes, for a plan that is not the scorer's; its own
 * ones are given up and made again when they are needed. */
void *scorer_lend(struct scorer *scorer);
#endif
