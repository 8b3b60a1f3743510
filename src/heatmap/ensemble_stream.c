/* ensemble_stream.c: the size of blocks that are streamed, and of their tiles, such that a worker
 * on one of them takes no more memory than one on other blocks may; see ensemble.h. */
#include <math.h>
#include "base/divide.h"
#include "heatmap/ensemble.h"
#include "heatmap/scorer.h"

#define MOST_SIDE_PX 16384 /* what is computed twice at the borders is then below a tenth */
#define MOST_FLOATS (INT64_C(4) << 20) /* scores of a block, which are in memory as a whole */

/* Sides of tiles. Larger ones are hardly faster and leave out less of what has no tissue. */
static const int64_t tiles_px[] = { 512, 384, 256, 192, 128 };
#define N_TILES (sizeof tiles_px / sizeof *tiles_px)

/* The bytes of a worker; of scores and logits, too. */
static bool need(const struct ensemble *e, int64_t side, int64_t tile, int64_t *bytes,
                 struct err *err)
{
    if (!scorer_stream_measure(e, ceil_div(side, e->stride), tile, bytes, err))
        return false;
    *bytes += 2 * e->stream.cells * e->n_classes * (int64_t)sizeof(float);
    return true;
}

bool ensemble_choose_stream(struct ensemble *e, int64_t group_cost, int64_t bytes, struct err *err)
{
    int64_t most = (bytes - e->shared_bytes) / 2, least_side = ensemble_region(e, e->block);
    double px = (double)group_cost / (e->n * scorer_symmetries(e));
    px = fmax(px, (double)(least_side * least_side)); /* smaller ones gain nothing */
    int64_t side = (int64_t)fmin(MOST_SIDE_PX, 2 * sqrt(px));
    int64_t cells = (int64_t)(px / (double)(e->stride * e->stride)) + 1;
    cells = cells < MOST_FLOATS / e->n_classes ? cells : MOST_FLOATS / e->n_classes;
    e->stream = (struct ensemble_stream){ .cells = cells };
    for (; side >= least_side; side /= 2)
        for (size_t i = 0; i < N_TILES; i++) {
            int64_t took = 0;
            if (!need(e, side, tiles_px[i], &took, err))
                return false;
            if (took > most)
                continue;
            e->worker_bytes = took > e->worker_bytes ? took : e->worker_bytes;
            e->stream.tile = tiles_px[i];
            e->stream.side = side;
            e->stream.px = (int64_t)px;
            return true;
        }
    return true;
}
