/* cover.c: see cover.h. A row of blocks starts at the first row of cells with tissue below the
 * previous one. For each possible height, the cheapest way to cover its columns is found by dynamic
 * programming; the height with the least cost per wanted cell is chosen. Every block is cut down to
 * the rows and columns that have tissue. */
#include "heatmap/cover.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/divide.h"

#define STREAM_PRICE                                                                               \
    1.1 /* of a px that is streamed: measured 1.09 to 1.13 (GoogLeNet, ResNet-18), for strips and  \
           smaller maps */
#define UNIT_PX 16 /* tissue is not sampled in finer steps: masks are no finer */

/* All in steps of `step` cells, within which tissue is not distinguished. */
struct covering {
    const struct specimen *specimen;
    const struct ensemble *ensemble;
    struct partition_block area;   /* cells; it begins at a multiple of the step */
    int64_t step, across, down;    /* cells; steps of the area */
    int64_t sizes[ENSEMBLE_SIZES]; /* steps, ascending: sides that blocks may have */
    int n_sizes;
    int64_t row, n_rows;            /* steps: the rows that `wanted` holds */
    bool *wanted;                   /* [largest size, across] */
    int64_t *first, *last;          /* [across]: wanted rows of a column; last -1: none */
    int64_t *count;                 /* [across]: wanted steps of a column */
    double *price;                  /* [across + 1]: of the cheapest cover from a column on */
    struct partition_block *choice; /* [across]: the block that begins it, cells */
};

/* Cells that share one answer, in each direction. */
static int64_t unit_cells(const struct specimen *specimen, const struct ensemble *ensemble)
{
    return specimen->store ? 1 : (UNIT_PX + ensemble->stride - 1) / ensemble->stride;
}

int64_t cover_step(const struct specimen *specimen, const struct ensemble *ensemble)
{
    int64_t unit = unit_cells(specimen, ensemble);
    return ensemble->block >= unit ? unit : 1;
}

static int64_t largest_window(const struct ensemble *ensemble)
{
    int64_t window = 0;
    for (int i = 0; i < ensemble->n; i++)
        window = ensemble->models[i].window > window ? ensemble->models[i].window : window;
    return window;
}

/* Cells in one direction whose windows are centred on the slide, which has `length` raster px. */
static int64_t centred_cells(const struct ensemble *ensemble, int64_t length)
{
    int64_t origin = ensemble->stride / 2;
    return length > origin ? ceil_div(length - origin, ensemble->stride) : 0;
}

/* One row of cells from `column` on. A window that is centred beyond the slide sees none of it, or
 * its edge: there is no tissue to tell of. */
static void wanted_line(const struct specimen *specimen, const struct ensemble *ensemble,
                        int64_t column, int64_t row, int64_t width, bool *out)
{
    int64_t unit = unit_cells(specimen, ensemble), side = unit * ensemble->stride;
    int64_t window = largest_window(ensemble);
    int64_t columns = centred_cells(ensemble, specimen->raster.width);
    bool on_slide = row < centred_cells(ensemble, specimen->raster.height);
    for (int64_t c = column; c < column + width;) {
        int64_t next = (c / unit + 1) * unit, end = next < column + width ? next : column + width;
        bool wanted =
            on_slide && specimen_wants(specimen, c / unit * side, row / unit * side, side, window);
        for (; c < end; c++)
            out[c - column] = wanted && c < columns;
    }
}

void cover_wanted(const struct specimen *specimen, const struct ensemble *ensemble,
                  const struct partition_block *block, bool *wanted)
{
    int64_t unit = unit_cells(specimen, ensemble);
    int64_t rows = centred_cells(ensemble, specimen->raster.height);
    for (int64_t y = 0; y < block->height; y++) {
        bool *line = wanted + y * block->width;
        if (y > 0 && (block->row + y) % unit && block->row + y < rows)
            memcpy(line, line - block->width, (size_t)block->width * sizeof *line);
        else
            wanted_line(specimen, ensemble, block->column, block->row + y, block->width, line);
    }
}

static bool any_in(const bool *line, int64_t n)
{
    return memchr(line, true, (size_t)n) != NULL;
}

/* One row of steps. */
static void step_line(const struct covering *p, int64_t row, bool *out)
{
    for (int64_t i = 0; i < p->across; i++)
        wanted_line(p->specimen, p->ensemble, p->area.column + i * p->step,
                    p->area.row + row * p->step, 1, &out[i]);
}

/* Fills `wanted` from the next row with tissue on: false if there is none. */
static bool next_rows(struct covering *p, int64_t from)
{
    int64_t most = p->sizes[p->n_sizes - 1];
    for (p->row = from; p->row < p->down; p->row++) {
        step_line(p, p->row, p->wanted);
        if (any_in(p->wanted, p->across))
            break;
    }
    if (p->row >= p->down)
        return false;
    p->n_rows = p->down - p->row < most ? p->down - p->row : most;
    for (int64_t y = 1; y < p->n_rows; y++)
        step_line(p, p->row + y, p->wanted + y * p->across);
    return true;
}

/* What the columns hold in the first `height` rows; returns the wanted steps. */
static int64_t count_columns(struct covering *p, int64_t height)
{
    int64_t all = 0;
    for (int64_t c = 0; c < p->across; c++)
        p->first[c] = INT64_MAX, p->last[c] = -1, p->count[c] = 0;
    for (int64_t y = 0; y < height; y++)
        for (int64_t c = 0; c < p->across; c++)
            if (p->wanted[y * p->across + c]) {
                p->first[c] = y < p->first[c] ? y : p->first[c];
                p->last[c] = y;
                p->count[c]++;
                all++;
            }
    return all;
}

/* Steps -> cells, cut at the edge of the area. */
static struct partition_block in_cells(const struct covering *p, int64_t column, int64_t first,
                                       int64_t end, int64_t last, int64_t windows)
{
    int64_t x1 = end * p->step, y0 = (p->row + first) * p->step;
    int64_t y1 = (p->row + last + 1) * p->step;
    x1 = x1 < p->area.width ? x1 : p->area.width;
    y1 = y1 < p->area.height ? y1 : p->area.height;
    struct partition_block block = { .column = p->area.column + column * p->step,
                                     .row = p->area.row + y0,
                                     .width = x1 - column * p->step,
                                     .height = y1 - y0 };
    block.cost = ensemble_cost(p->ensemble, block.width, block.height, windows * p->step * p->step);
    return block;
}

/* The cheapest block that begins at `column`, given the prices of all that lies right of it. */
static void best_block(struct covering *p, int64_t column)
{
    int64_t first = INT64_MAX, last = -1, end = column, windows = 0, c = column;
    p->price[column] = INFINITY;
    for (int i = 0; i < p->n_sizes; i++) {
        for (; c < column + p->sizes[i] && c < p->across; c++) {
            if (p->last[c] < 0)
                continue;
            first = p->first[c] < first ? p->first[c] : first;
            last = p->last[c] > last ? p->last[c] : last;
            windows += p->count[c];
            end = c + 1;
        }
        struct partition_block block = in_cells(p, column, first, end, last, windows);
        double price = (double)block.cost + p->price[end];
        if (price < p->price[column]) {
            p->price[column] = price;
            p->choice[column] = block;
        }
    }
}

/* The price of the row of blocks, of this height. */
static double cover_rows(struct covering *p, int64_t height, int64_t *windows)
{
    *windows = count_columns(p, height);
    p->price[p->across] = 0;
    for (int64_t c = p->across - 1; c >= 0; c--)
        if (p->last[c] < 0)
            p->price[c] = p->price[c + 1];
        else
            best_block(p, c);
    return p->price[0];
}

/* A height that a row of blocks may have; windows have one only, they cost the same anywhere. */
static int64_t best_height(struct covering *p)
{
    int64_t best = p->n_rows, windows = 0;
    double least = INFINITY;
    for (int i = p->ensemble->dense ? 0 : p->n_sizes - 1; i < p->n_sizes; i++) {
        int64_t height = p->sizes[i] < p->n_rows ? p->sizes[i] : p->n_rows;
        double price = cover_rows(p, height, &windows) / (double)windows;
        if (price <= least)
            least = price, best = height;
    }
    cover_rows(p, best, &windows);
    return best;
}

bool cover_add(struct cover_list *list, const struct partition_block *block, struct err *err)
{
    if (!array_grow(&list->blocks, &list->room, list->n + 1, sizeof *block, "the blocks of a slide",
                    err))
        return false;
    list->blocks[list->n++] = *block;
    list->price += (block->streamed ? STREAM_PRICE : 1) * (double)block->cost;
    return true;
}

static bool covering_init(struct covering *p, struct err *err)
{
    const struct ensemble *e = p->ensemble;
    p->step = cover_step(p->specimen, e);
    p->across = ceil_div(p->area.width, p->step);
    p->down = ceil_div(p->area.height, p->step);
    for (int i = 0; i < (e->dense ? e->n_sizes : 1); i++) {
        int64_t size = (e->dense ? e->sizes[i] : e->block) / p->step;
        if (size > 0 && (p->n_sizes == 0 || size > p->sizes[p->n_sizes - 1]))
            p->sizes[p->n_sizes++] = size;
    }
    size_t across = (size_t)p->across;
    p->wanted = malloc((size_t)p->sizes[p->n_sizes - 1] * across * sizeof *p->wanted);
    p->first = malloc(across * sizeof *p->first);
    p->last = malloc(across * sizeof *p->last);
    p->count = malloc(across * sizeof *p->count);
    p->price = malloc((across + 1) * sizeof *p->price);
    p->choice = malloc(across * sizeof *p->choice);
    return (p->wanted && p->first && p->last && p->count && p->price && p->choice) ||
           err_memory(err, "the grid of a slide");
}

bool cover_area(const struct specimen *specimen, const struct ensemble *ensemble,
                const struct partition_block *area, struct cover_list *out, struct err *err)
{
    struct covering p = { .specimen = specimen, .ensemble = ensemble, .area = *area };
    bool ok = covering_init(&p, err);
    int64_t height = 0;
    for (int64_t row = 0; ok && next_rows(&p, row); row = p.row + height) {
        height = best_height(&p);
        for (int64_t c = 0; ok && c < p.across;) {
            if (p.last[c] < 0) {
                c++;
                continue;
            }
            ok = cover_add(out, &p.choice[c], err);
            c = ceil_div(p.choice[c].column - area->column + p.choice[c].width, p.step);
        }
    }
    free(p.wanted), free(p.first), free(p.last), free(p.count), free(p.price), free(p.choice);
    return ok;
}

bool cover_make(const struct specimen *specimen, const struct ensemble *ensemble,
                struct partition *partition, struct err *err)
{
    struct partition_block all = { .width = partition->info.width,
                                   .height = partition->info.height };
    struct cover_list list = { 0 };
    bool ok = ensemble->stream.tile > 0 ? cover_streamed(specimen, ensemble, &all, &list, err)
                                        : cover_area(specimen, ensemble, &all, &list, err);
    partition->blocks = list.blocks;
    partition->n_blocks = list.n;
    return ok;
}
