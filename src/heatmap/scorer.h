/* scorer.h: pixels of a block -> scores of its cells. A scorer belongs to one worker: it keeps the
 * plans of the most recent shapes, each on one thread, so that scores never depend on how many
 * threads there are. Private to this folder. */
#ifndef HEATMAP_SCORER_H
#define HEATMAP_SCORER_H
#include "base/image.h"
#include "heatmap/ensemble.h"
#include "net/plan/plan.h"

struct scorer;

/* The ensemble must outlive it. NULL if no memory. */
struct scorer *scorer_new(const struct ensemble *ensemble);
void scorer_free(struct scorer *scorer); /* NULL-safe */

/* Which cells of a block are wanted: [height, width], row-major. */
struct scorer_block {
    int64_t width, height; /* cells */
    const bool *wanted;
};

/* region: RGB, ensemble_region(n) px wide and high, where n is the block's side, or for a dense
 * ensemble its ensemble_size. The first cell's window has its centre at (before, before).
 * scores [height, width, classes]; NaN where not wanted. */
bool scorer_run(struct scorer *scorer, const struct image *region, const struct scorer_block *block,
                float *scores, struct err *err);

/* The pixels of a block that is streamed: RGB of a rectangle of its region, as the network is to
 * see it. *out is the caller's. Not called from two threads at once, but from another one. */
struct scorer_pixels {
    void *arg;
    bool (*read)(void *arg, int64_t x, int64_t y, int64_t width, int64_t height, struct image *out,
                 struct err *err);
};
/* The same for a dense block of any size, tile by tile in one pass for each model and symmetry:
 * every cell of every map is computed once, but those that no wanted score depends on. threads: no
 * bit of the scores depends on them. Its region is ensemble_region of its own width and height. */
bool scorer_stream(struct scorer *scorer, const struct scorer_pixels *pixels,
                   const struct scorer_block *block, int threads, float *scores, struct err *err);
/* px that pass through the networks then; ensemble_cost for blocks that are streamed. */
bool scorer_stream_cost(const struct ensemble *ensemble, const struct scorer_block *block,
                        int64_t *cost, struct err *err);
/* Bytes of a streamed block of cells x cells with tiles of `tile` px, but those of weights that
 * are shared, and of the model that takes most. Refuses models that cannot be streamed. */
bool scorer_stream_measure(const struct ensemble *ensemble, int64_t cells, int64_t tile,
                           int64_t *bytes, struct err *err);

/* In how many ways the ensemble looks at a block: 8 with test-time augmentation, else 1. */
int scorer_symmetries(const struct ensemble *ensemble);
/* Raw logits of one model in one of these, [height, width, classes], densely or by windows whatever
 * the ensemble's mode, without calibration; for measuring the difference. The region is that of a
 * dense block of exactly width x height cells. */
bool scorer_logits(struct scorer *scorer, int model, bool dense, int symmetry,
                   const struct image *region, int64_t width, int64_t height, float *logits,
                   struct err *err);

/* Memory of the plan for a dense input of `input` px, or of the batch of windows where it is 0. */
bool scorer_measure(const struct ensemble *ensemble, int model, int64_t input,
                    struct plan_memory *memory, struct err *err);
#endif
