/* fold.c: artefact_find_folds. A fold is two layers of the same tissue: nearly twice the optical
 * density of what surrounds it, in the same colour. Dense cells are darker too, but bluer. */
#include "tissue/artefact.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/divide.h"
#include "tissue/morphology.h"

#define CELL_UM 16.0
#define GLASS_GREY 245.0 /* where a slide shows no glass */

/* Chosen with bench/quality.py. Density is that of 3 x 3 cells (48 um), compared with that of the
 * tissue within 0.4 mm and on the whole slide; colour is the share of red light absorbed relative
 * to green, compared in the same way. */
#define CORE_DENSITY 1.4
#define RIM_DENSITY 1.2
#define LEAST_OF_SLIDE 1.25
#define LEAST_COLOUR 0.75
#define MOST_COLOUR 1.3
#define MOST_COLOUR_OF_PIECE 1.14
#define MIN_AREA_UM2 6000.0

enum { BLOCK_CELLS = 4, BLOCKS_AROUND = 6, AROUND_CELLS = 6, RIM_CELLS = 2, CHANNELS = 3 };

/* Sums of optical density (all, red, green) and how many cells they are of. */
struct density {
    double all, red, green, n;
};

struct fold_grid {
    int64_t step; /* mask pixels per cell, in both directions */
    int64_t width, height;
    float
        *cells; /* [height, width, 3]: mean density of its tissue: all, red, green; all < 0: none */
    int64_t across, down;
    struct density *blocks; /* [down + 1, across + 1]: sums above and left */
    double slide_mean;
    float of_grey[CHANNELS][256];
};

double artefact_px_um(const struct tissue_mask *tissue)
{
    double mpp = tissue->mpp > 0 ? tissue->mpp : TISSUE_ASSUMED_MPP;
    return mpp * sqrt(tissue->l0_per_px_x * tissue->l0_per_px_y);
}

/* Density of each grey value relative to the glass: the most frequent grey outside the tissue. */
static void calibrate(const struct tissue_mask *tissue, struct fold_grid *grid)
{
    int64_t n = tissue->mask.width * tissue->mask.height;
    int64_t counts[CHANNELS][256] = { 0 };
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < CHANNELS; c++)
            counts[c][tissue->overview.px[3 * i + c]] += !tissue->mask.px[i];
    for (int c = 0; c < CHANNELS; c++) {
        int glass = 0;
        for (int grey = 200; grey < 256; grey++)
            glass = counts[c][grey] > (glass ? counts[c][glass] : n / 100) ? grey : glass;
        for (int grey = 0; grey < 256; grey++)
            grid->of_grey[c][grey] =
                (float)fmax(0, log((glass ? glass : GLASS_GREY) / (grey > 1 ? grey : 1)));
    }
}

static void fill_cell(const struct tissue_mask *tissue, struct fold_grid *grid, int64_t column,
                      int64_t row)
{
    float *cell = grid->cells + 3 * (row * grid->width + column), red = 0, green = 0, all = 0;
    int64_t x1 = (column + 1) * grid->step, y1 = (row + 1) * grid->step, n = 0;
    x1 = x1 < tissue->mask.width ? x1 : tissue->mask.width;
    y1 = y1 < tissue->mask.height ? y1 : tissue->mask.height;
    for (int64_t y = row * grid->step; y < y1; y++)
        for (int64_t x = column * grid->step; x < x1; x++) {
            if (!*image_at(&tissue->mask, x, y))
                continue;
            const uint8_t *px = image_at(&tissue->overview, x, y);
            red += grid->of_grey[0][px[0]];
            green += grid->of_grey[1][px[1]];
            all += grid->of_grey[0][px[0]] + grid->of_grey[1][px[1]] + grid->of_grey[2][px[2]];
            n++;
        }
    cell[0] = n ? all / (float)n : -1;
    cell[1] = n ? red / (float)n : 0;
    cell[2] = n ? green / (float)n : 0;
}

static void add(struct density *to, const float *cell)
{
    if (cell[0] < 0)
        return;
    to->all += (double)cell[0], to->red += (double)cell[1], to->green += (double)cell[2];
    to->n += 1;
}

static void sum_blocks(struct fold_grid *grid)
{
    int64_t stride = grid->across + 1;
    for (int64_t row = 0; row < grid->height; row++)
        for (int64_t column = 0; column < grid->width; column++)
            add(&grid->blocks[(row / BLOCK_CELLS + 1) * stride + column / BLOCK_CELLS + 1],
                grid->cells + 3 * (row * grid->width + column));
    for (int64_t j = 1; j <= grid->down; j++)
        for (int64_t i = 1; i <= grid->across; i++) {
            struct density *at = &grid->blocks[j * stride + i];
            const struct density *left = at - 1, *up = at - stride, *both = up - 1;
            at->all += left->all + up->all - both->all;
            at->red += left->red + up->red - both->red;
            at->green += left->green + up->green - both->green;
            at->n += left->n + up->n - both->n;
        }
    const struct density *whole = &grid->blocks[grid->down * stride + grid->across];
    grid->slide_mean = whole->n > 0 ? whole->all / whole->n : 0;
}

static bool make_grid(const struct tissue_mask *tissue, struct fold_grid *grid, struct err *err)
{
    int64_t step = llround(CELL_UM / artefact_px_um(tissue));
    grid->step = step > 1 ? step : 1;
    grid->width = ceil_div(tissue->mask.width, grid->step);
    grid->height = ceil_div(tissue->mask.height, grid->step);
    grid->across = ceil_div(grid->width, BLOCK_CELLS);
    grid->down = ceil_div(grid->height, BLOCK_CELLS);
    grid->cells = malloc((size_t)(grid->width * grid->height) * 3 * sizeof *grid->cells);
    grid->blocks = calloc((size_t)((grid->across + 1) * (grid->down + 1)), sizeof *grid->blocks);
    if (!grid->cells || !grid->blocks)
        return err_memory(err, "the folds of a slide");
    calibrate(tissue, grid);
    for (int64_t row = 0; row < grid->height; row++)
        for (int64_t column = 0; column < grid->width; column++)
            fill_cell(tissue, grid, column, row);
    sum_blocks(grid);
    return true;
}

static struct density around(const struct fold_grid *grid, int64_t column, int64_t row)
{
    int64_t i = column / BLOCK_CELLS, j = row / BLOCK_CELLS, stride = grid->across + 1;
    int64_t x0 = i > BLOCKS_AROUND ? i - BLOCKS_AROUND : 0, x1 = i + BLOCKS_AROUND + 1;
    int64_t y0 = j > BLOCKS_AROUND ? j - BLOCKS_AROUND : 0, y1 = j + BLOCKS_AROUND + 1;
    x1 = x1 < grid->across ? x1 : grid->across;
    y1 = y1 < grid->down ? y1 : grid->down;
    const struct density *a = &grid->blocks[y0 * stride + x0], *b = &grid->blocks[y0 * stride + x1];
    const struct density *c = &grid->blocks[y1 * stride + x0], *d = &grid->blocks[y1 * stride + x1];
    return (struct density){ .all = d->all - b->all - c->all + a->all,
                             .red = d->red - b->red - c->red + a->red,
                             .green = d->green - b->green - c->green + a->green,
                             .n = d->n - b->n - c->n + a->n };
}

/* How many times denser than its surroundings a cell is; 0 if it cannot be a fold. */
static double excess(const struct fold_grid *grid, int64_t column, int64_t row)
{
    struct density here = { 0 };
    if (grid->cells[3 * (row * grid->width + column)] < 0)
        return 0;
    for (int64_t j = row - 1; j <= row + 1; j++)
        for (int64_t i = column - 1; i <= column + 1; i++)
            if (i >= 0 && j >= 0 && i < grid->width && j < grid->height)
                add(&here, grid->cells + 3 * (j * grid->width + i));
    struct density near = around(grid, column, row);
    double colour = here.red * near.green / fmax(here.green * near.red, 1e-9);
    if (colour < LEAST_COLOUR || colour > MOST_COLOUR ||
        here.all < LEAST_OF_SLIDE * grid->slide_mean * here.n)
        return 0;
    return here.all * near.n / fmax(near.all * here.n, 1e-9);
}

/* A candidate: its bounding box, how many cells of it are certain, and its density. */
struct piece {
    int64_t x0, y0, x1, y1, core;
    struct density density;
};

static struct piece *list_pieces(const struct fold_grid *grid, const int32_t *labels, int32_t n,
                                 const struct image *core)
{
    struct piece *pieces = calloc((size_t)n + 1, sizeof *pieces);
    for (int64_t y = 0; pieces && y < grid->height; y++)
        for (int64_t x = 0; x < grid->width; x++) {
            int64_t at = y * grid->width + x;
            struct piece *p = &pieces[labels[at]];
            bool first = p->x1 == 0;
            p->x0 = first || x < p->x0 ? x : p->x0;
            p->y0 = first ? y : p->y0;
            p->x1 = x >= p->x1 ? x + 1 : p->x1;
            p->y1 = y + 1;
            p->core += core->px[at] != 0;
            add(&p->density, grid->cells + 3 * at);
        }
    return pieces;
}

/* Compared with the other tissue of the rectangle around it, is the piece as dense as two layers,
 * and of the same colour? */
static bool is_fold(const struct fold_grid *grid, const int32_t *labels, const struct piece *p,
                    double least_core)
{
    int64_t x0 = p->x0 > AROUND_CELLS ? p->x0 - AROUND_CELLS : 0;
    int64_t y0 = p->y0 > AROUND_CELLS ? p->y0 - AROUND_CELLS : 0;
    int64_t x1 = p->x1 + AROUND_CELLS < grid->width ? p->x1 + AROUND_CELLS : grid->width;
    int64_t y1 = p->y1 + AROUND_CELLS < grid->height ? p->y1 + AROUND_CELLS : grid->height;
    struct density near = { 0 };
    if ((double)p->core < least_core)
        return false;
    for (int64_t y = y0; y < y1; y++)
        for (int64_t x = x0; x < x1; x++)
            if (!labels[y * grid->width + x])
                add(&near, grid->cells + 3 * (y * grid->width + x));
    if (near.n < least_core)
        return false;
    double colour = p->density.red * near.green / fmax(p->density.green * near.red, 1e-9);
    double times = p->density.all * near.n / fmax(near.all * p->density.n, 1e-9);
    return colour <= MOST_COLOUR_OF_PIECE && times >= CORE_DENSITY;
}

/* Of the candidates, keeps those that are folds. */
static bool keep_folds(const struct fold_grid *grid, const struct image *core, double least_core,
                       struct image *marked, struct err *err)
{
    int32_t *labels = NULL, n = 0;
    if (!morphology_label(marked, true, &labels, &n, err))
        return false;
    struct piece *pieces = list_pieces(grid, labels, n, core);
    bool *wanted = calloc((size_t)n + 1, sizeof *wanted);
    bool ok = (pieces && wanted) || err_memory(err, "the folds of a slide");
    for (int32_t i = 1; ok && i <= n; i++)
        wanted[i] = is_fold(grid, labels, &pieces[i], least_core);
    for (int64_t i = 0; ok && i < grid->width * grid->height; i++)
        marked->px[i] = wanted[labels[i]] ? 255 : 0;
    free(wanted);
    free(pieces);
    free(labels);
    return ok;
}

static bool mark_cells(const struct fold_grid *grid, double cell_um, struct image *marked,
                       struct err *err)
{
    struct image core = { 0 };
    if (!image_new(&core, grid->width, grid->height, 1, err))
        return false;
    for (int64_t row = 0; row < grid->height; row++)
        for (int64_t column = 0; column < grid->width; column++) {
            double times = excess(grid, column, row);
            *image_at(&core, column, row) = times >= CORE_DENSITY ? 255 : 0;
            *image_at(marked, column, row) = times >= RIM_DENSITY ? 255 : 0;
        }
    double least = MIN_AREA_UM2 / (cell_um * cell_um);
    bool ok = morphology_remove_small(&core, least, err) &&
              keep_folds(grid, &core, least, marked, err) &&
              morphology_dilate(&core, RIM_CELLS, err);
    for (int64_t i = 0; ok && i < grid->width * grid->height; i++)
        marked->px[i] &= core.px[i];
    ok = ok && morphology_close(marked, 1, err);
    image_free(&core);
    return ok;
}

bool artefact_find_folds(const struct tissue_mask *tissue, struct image *folds, struct err *err)
{
    struct fold_grid grid = { 0 };
    struct image marked = { 0 };
    bool ok = make_grid(tissue, &grid, err) &&
              image_new(&marked, grid.width, grid.height, 1, err) &&
              mark_cells(&grid, artefact_px_um(tissue) * (double)grid.step, &marked, err);
    for (int64_t y = 0; ok && y < folds->height; y++)
        for (int64_t x = 0; x < folds->width; x++)
            if (*image_at(&tissue->mask, x, y))
                *image_at(folds, x, y) = *image_at(&marked, x / grid.step, y / grid.step);
    image_free(&marked);
    free(grid.cells);
    free(grid.blocks);
    return ok;
}
