/* cover_stream.c: blocks that are streamed; see cover.h. The wanted cells are divided into
 * rectangles that are as large as a task may be; of each, what is less work is taken: to stream it,
 * to cover it with blocks that are scored at once, or to halve it and ask again. Work is counted,
 * in px that pass through the networks, never timed: the same slide is always divided the same way.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/divide.h"
#include "heatmap/cover.h"
#include "heatmap/scorer.h"

#define HALVINGS 2 /* of a rectangle of the size of a task */
#define FULL 0.9   /* of a rectangle's cells are wanted: its halves cannot be less work */

struct dividing {
    const struct specimen *specimen;
    const struct ensemble *ensemble;
    int64_t step; /* cells */
};

/* --- rectangles --- */

static bool any_wanted(const struct dividing *d, const struct partition_block *line)
{
    bool wanted[256];
    int64_t most = (int64_t)sizeof wanted;
    for (int64_t y = 0; y < line->height; y += d->step)
        for (int64_t x = 0; x < line->width; x += most) {
            int64_t n = line->width - x < most ? line->width - x : most;
            struct partition_block part = {
                .column = line->column + x, .row = line->row + y, .width = n, .height = 1
            };
            cover_wanted(d->specimen, d->ensemble, &part, wanted);
            if (memchr(wanted, true, (size_t)n))
                return true;
        }
    return false;
}

/* Cuts off one step at a side, if nothing is wanted there. */
static bool cut_side(const struct dividing *d, struct partition_block *area, bool columns, bool end)
{
    int64_t extent = columns ? area->width : area->height;
    int64_t last = (extent - 1) % d->step + 1, n = end ? last : extent < d->step ? extent : d->step;
    struct partition_block line = *area;
    if (columns) {
        line.column += end ? extent - n : 0;
        line.width = n;
    } else {
        line.row += end ? extent - n : 0;
        line.height = n;
    }
    if (any_wanted(d, &line))
        return false;
    *(columns ? &area->width : &area->height) -= n;
    *(columns ? &area->column : &area->row) += end ? 0 : n;
    return true;
}

/* The rectangle around all wanted cells of an area; false: there are none. */
static bool trim(const struct dividing *d, struct partition_block *area)
{
    for (int side = 0; side < 4; side++)
        while (area->height > 0 && area->width > 0 && cut_side(d, area, side & 2, side & 1))
            ;
    return area->height > 0 && area->width > 0;
}

/* Two parts along the longer side, the first of about `share` of it; false: it is too small. */
static bool split(const struct dividing *d, const struct partition_block *area, double share,
                  struct partition_block parts[2])
{
    bool columns = area->width > area->height;
    int64_t extent = columns ? area->width : area->height;
    int64_t first = (int64_t)round(share * (double)extent / (double)d->step) * d->step;
    first = first < d->step ? d->step : first;
    parts[0] = parts[1] = *area;
    if (first >= extent)
        return false;
    *(columns ? &parts[0].width : &parts[0].height) = first;
    *(columns ? &parts[1].width : &parts[1].height) = extent - first;
    *(columns ? &parts[1].column : &parts[1].row) += first;
    return true;
}

/* In how many tasks a rectangle is to be divided. */
static int64_t parts_of(const struct dividing *d, const struct partition_block *area)
{
    const struct ensemble *e = d->ensemble;
    int64_t w = ensemble_region(e, area->width), h = ensemble_region(e, area->height);
    int64_t longest = w > h ? w : h, cells = area->width * area->height;
    int64_t n = ceil_div(w * h, e->stream.px), by_side = ceil_div(longest, e->stream.side);
    int64_t by_cells = ceil_div(cells, e->stream.cells);
    n = n > by_side ? n : by_side;
    return n > by_cells ? n : by_cells;
}

/* --- what is less work --- */

/* *full: hardly anything of it is not wanted. */
static bool stream_one(const struct dividing *d, const struct partition_block *area,
                       struct cover_list *out, bool *full, struct err *err)
{
    int64_t n = 0;
    struct partition_block block = *area;
    bool *wanted = malloc((size_t)(area->width * area->height) * sizeof *wanted);
    if (!wanted)
        return err_memory(err, "a block");
    cover_wanted(d->specimen, d->ensemble, area, wanted);
    for (int64_t i = 0; i < area->width * area->height; i++)
        n += wanted[i];
    *full = (double)n >= FULL * (double)(area->width * area->height);
    struct scorer_block shape = { area->width, area->height, wanted };
    block.streamed = true;
    bool ok =
        scorer_stream_cost(d->ensemble, &shape, &block.cost, err) && cover_add(out, &block, err);
    free(wanted);
    return ok;
}

/* The cheaper of two lists; the other is freed. */
static void take_cheaper(struct cover_list *best, struct cover_list *other)
{
    struct cover_list *worse = other->price < best->price ? best : other, freed = *worse;
    if (worse == best)
        *best = *other;
    *other = (struct cover_list){ 0 };
    free(freed.blocks);
}

static bool append(struct cover_list *to, const struct cover_list *from, struct err *err)
{
    bool ok = true;
    for (int64_t i = 0; ok && i < from->n; i++)
        ok = cover_add(to, &from->blocks[i], err);
    return ok;
}

/* A rectangle of the size of a task or less, and `halvings` of it. Sets *out. */
static bool choose(const struct dividing *d, const struct partition_block *area, int halvings,
                   struct cover_list *out, struct err *err)
{
    struct cover_list blocks = { 0 }, halves = { 0 };
    struct partition_block parts[2];
    bool full = false, ok = stream_one(d, area, out, &full, err);
    if (ok && !d->ensemble->stream.always) {
        ok = cover_area(d->specimen, d->ensemble, area, &blocks, err);
        take_cheaper(out, &blocks);
    }
    if (ok && halvings > 0 && !full && split(d, area, 0.5, parts)) {
        for (int i = 0; ok && i < 2; i++) {
            struct cover_list half = { 0 };
            ok = !trim(d, &parts[i]) ||
                 (choose(d, &parts[i], halvings - 1, &half, err) && append(&halves, &half, err));
            free(half.blocks);
        }
        if (ok)
            take_cheaper(out, &halves);
    }
    free(blocks.blocks), free(halves.blocks);
    return ok;
}

/* Any rectangle. Adds to *out. */
static bool divide(const struct dividing *d, struct partition_block area, struct cover_list *out,
                   struct err *err)
{
    struct partition_block parts[2];
    if (!trim(d, &area))
        return true;
    int64_t n = parts_of(d, &area);
    if (n > 1 && split(d, &area, (double)(n / 2) / (double)n, parts))
        return divide(d, parts[0], out, err) && divide(d, parts[1], out, err);
    struct cover_list best = { 0 };
    bool ok = choose(d, &area, HALVINGS, &best, err) && append(out, &best, err);
    free(best.blocks);
    return ok;
}

bool cover_streamed(const struct specimen *specimen, const struct ensemble *ensemble,
                    const struct partition_block *grid, struct cover_list *out, struct err *err)
{
    struct dividing d = { specimen, ensemble, cover_step(specimen, ensemble) };
    struct cover_list blocks = { 0 };
    bool ok = divide(&d, *grid, out, err);
    if (ok && !ensemble->stream.always) {
        ok = cover_area(specimen, ensemble, grid, &blocks, err);
        if (ok)
            take_cheaper(out, &blocks); /* blocks that no rectangle cuts may be fewer */
    }
    free(blocks.blocks);
    return ok;
}
