/* cover.c: see cover.h. A row of blocks begins at the first row of cells with tissue below the
 * last one. In it a block begins at the first wanted column, takes the width that costs least for
 * each wanted cell, and is cut down to the rows and columns that have tissue. */
#include "heatmap/cover.h"

#include <stdlib.h>
#include <string.h>

#define UNIT_PX 16 /* tissue is not asked for in finer steps: masks are no finer */

struct planner {
    const struct source *source;
    const struct ensemble *ensemble;
    struct part_plan *plan;
    int64_t room;
    int64_t row, n_rows;   /* of the present row of blocks, cells */
    int64_t *first, *last; /* [width]: wanted rows of a column; last -1: none */
    int64_t *count;        /* [width]: wanted cells of a column */
    bool *line;            /* [width] */
};

/* Cells that share one answer, in each direction. */
static int64_t unit_cells(const struct source *source, const struct ensemble *ensemble)
{
    return source->store ? 1 : (UNIT_PX + ensemble->stride - 1) / ensemble->stride;
}

static int64_t largest_window(const struct ensemble *ensemble)
{
    int64_t window = 0;
    for (int i = 0; i < ensemble->n; i++)
        window = ensemble->models[i].window > window ? ensemble->models[i].window : window;
    return window;
}

/* One row of cells from `column` on. */
static void wanted_line(const struct source *source, const struct ensemble *ensemble,
                        int64_t column, int64_t row, int64_t width, bool *out)
{
    int64_t unit = unit_cells(source, ensemble), side = unit * ensemble->stride;
    int64_t window = largest_window(ensemble);
    for (int64_t c = column; c < column + width;) {
        int64_t next = (c / unit + 1) * unit, end = next < column + width ? next : column + width;
        bool wanted = source_wants(source, c / unit * side, row / unit * side, side, window);
        for (; c < end; c++)
            out[c - column] = wanted;
    }
}

void cover_wanted(const struct source *source, const struct ensemble *ensemble,
                  const struct part_block *block, bool *wanted)
{
    int64_t unit = unit_cells(source, ensemble);
    for (int64_t y = 0; y < block->height; y++) {
        bool *line = wanted + y * block->width;
        if (y > 0 && (block->row + y) % unit)
            memcpy(line, line - block->width, (size_t)block->width * sizeof *line);
        else
            wanted_line(source, ensemble, block->column, block->row + y, block->width, line);
    }
}

static bool any_in(const bool *line, int64_t n)
{
    return memchr(line, true, (size_t)n) != NULL;
}

/* The next row of blocks: false if there is no more tissue. */
static bool next_rows(struct planner *p, int64_t from)
{
    const struct heatmap_info *info = &p->plan->info;
    int64_t unit = unit_cells(p->source, p->ensemble);
    for (p->row = from; p->row < info->height; p->row = (p->row / unit + 1) * unit) {
        wanted_line(p->source, p->ensemble, 0, p->row, info->width, p->line);
        if (any_in(p->line, info->width))
            break;
    }
    if (p->row >= info->height)
        return false;
    int64_t rest = info->height - p->row;
    p->n_rows = rest < p->ensemble->block ? rest : p->ensemble->block;
    for (int64_t c = 0; c < info->width; c++)
        p->first[c] = INT64_MAX, p->last[c] = -1, p->count[c] = 0;
    for (int64_t row = p->row; row < p->row + p->n_rows; row++) {
        if (row == p->row || row % unit == 0)
            wanted_line(p->source, p->ensemble, 0, row, info->width, p->line);
        for (int64_t c = 0; c < info->width; c++)
            if (p->line[c]) {
                p->first[c] = row < p->first[c] ? row : p->first[c];
                p->last[c] = row;
                p->count[c]++;
            }
    }
    return true;
}

/* The block of at most `width` columns from `column` on, cut down to its tissue. */
static struct part_block cut_down(const struct planner *p, int64_t column, int64_t width,
                                  int64_t *windows)
{
    int64_t first = INT64_MAX, last = -1, end = column;
    *windows = 0;
    for (int64_t c = column; c < column + width && c < p->plan->info.width; c++) {
        if (p->last[c] < 0)
            continue;
        first = p->first[c] < first ? p->first[c] : first;
        last = p->last[c] > last ? p->last[c] : last;
        *windows += p->count[c];
        end = c + 1;
    }
    struct part_block block = { column, first, end - column, last - first + 1, 0 };
    block.cost = ensemble_cost(p->ensemble, block.width, block.height, *windows);
    return block;
}

static struct part_block best_block(const struct planner *p, int64_t column)
{
    int64_t windows = 0;
    if (!p->ensemble->dense)
        return cut_down(p, column, p->ensemble->block, &windows);
    struct part_block best = { 0 };
    double best_price = 0;
    for (int i = p->ensemble->n_sizes - 1; i >= 0; i--) {
        struct part_block block = cut_down(p, column, p->ensemble->sizes[i], &windows);
        double price = (double)block.cost / (double)windows;
        if (best.width == 0 || price < best_price)
            best = block, best_price = price;
    }
    return best;
}

static bool add_block(struct planner *p, const struct part_block *block, struct err *err)
{
    struct part_plan *plan = p->plan;
    if (plan->n_blocks == p->room) {
        p->room = p->room ? 2 * p->room : 256;
        struct part_block *more = realloc(plan->blocks, (size_t)p->room * sizeof *more);
        if (!more)
            return err_memory(err, "the blocks of a slide");
        plan->blocks = more;
    }
    plan->blocks[plan->n_blocks++] = *block;
    return true;
}

bool cover_make(const struct source *source, const struct ensemble *ensemble,
                struct part_plan *plan, struct err *err)
{
    int64_t width = plan->info.width;
    struct planner p = { .source = source, .ensemble = ensemble, .plan = plan };
    p.first = malloc((size_t)width * sizeof *p.first);
    p.last = malloc((size_t)width * sizeof *p.last);
    p.count = malloc((size_t)width * sizeof *p.count);
    p.line = malloc((size_t)width * sizeof *p.line);
    bool ok = (p.first && p.last && p.count && p.line) || err_memory(err, "the grid of a slide");
    for (int64_t row = 0; ok && next_rows(&p, row); row = p.row + p.n_rows)
        for (int64_t c = 0; ok && c < width;) {
            if (p.last[c] < 0) {
                c++;
                continue;
            }
            struct part_block block = best_block(&p, c);
            ok = add_block(&p, &block, err);
            c += block.width;
        }
    free(p.first), free(p.last), free(p.count), free(p.line);
    return ok;
}
