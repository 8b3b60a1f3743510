/* winograd_tiles.c: the positions of the tiles of a Winograd convolution, and their points; see
 * winograd_loops.h. */
#include "net/kernels/winograd_loops.h"
#include "base/divide.h"

int64_t winograd_odd_lines(int64_t floats)
{
    return (ceil_div(floats, 16) | 1) * 16;
}

void winograd_count_tiles(struct winograd_conv *w)
{
    bool small_ends = w->tile < 6; /* those of 6 x 6 have transforms for whole ones only */
    int64_t rows = ceil_div(w->out_height, w->dilation); /* of the largest phase */
    int64_t columns = ceil_div(w->out_width, w->dilation);
    w->lanes = winograd_loops_of(w->level)->lanes;
    w->in_blocks = ceil_div(w->in_channels, w->lanes);
    w->out_blocks = ceil_div(w->out_channels, w->lanes);
    w->panels = ceil_div(w->out_blocks, 2);
    w->tiles_y = ceil_div(rows, w->tile);
    w->tiles_x = ceil_div(columns, w->tile);
    w->end_rows = small_ends ? (int)(rows - (w->tiles_y - 1) * w->tile) : w->tile;
    w->end_columns = small_ends ? (int)(columns - (w->tiles_x - 1) * w->tile) : w->tile;
    w->tiles = w->batch * w->dilation * w->dilation * w->tiles_y * w->tiles_x;
}

double winograd_count_points(const struct winograd_conv *w)
{
    int64_t side_y = (w->tiles_y - 1) * (w->tile + 2) + w->end_rows + 2;
    int64_t side_x = (w->tiles_x - 1) * (w->tile + 2) + w->end_columns + 2;
    return (double)(w->batch * w->dilation * w->dilation * side_y * side_x);
}

/* `image`: of all images and phases of the dilation; a dilation of d makes d x d phases, each with
 * every d rows and columns. */
static struct winograd_tile tile_at(const struct winograd_conv *w, int64_t image, int64_t tile_y,
                                    int64_t tile_x)
{
    int64_t d = w->dilation, phase_x = image % d, phase_y = image / d % d;
    int64_t y = phase_y + d * w->tile * tile_y, x = phase_x + d * w->tile * tile_x;
    int64_t rows = y < w->out_height ? ceil_div(w->out_height - y, d) : 0;
    int64_t columns = x < w->out_width ? ceil_div(w->out_width - x, d) : 0;
    struct winograd_tile t = { .y = y - w->pad_top, .x = x - w->pad_left };
    image /= d * d;
    t.in = (image * w->in_blocks * w->height * w->width + t.y * w->width + t.x) * w->lanes;
    t.out =
        (image * w->out_blocks * w->out_height * w->out_width + y * w->out_width + x) * w->lanes;
    t.rows = (int)(rows < w->tile ? rows : w->tile);
    t.columns = (int)(columns < w->tile ? columns : w->tile);
    t.made_rows = tile_y + 1 < w->tiles_y ? w->tile : w->end_rows;
    t.made_columns = tile_x + 1 < w->tiles_x ? w->tile : w->end_columns;
    t.inside = t.y >= 0 && t.x >= 0 && t.y + (t.made_rows + 1) * d < w->height &&
               t.x + (t.made_columns + 1) * d < w->width;
    return t;
}

static enum winograd_place place_of(const struct winograd_conv *w, const struct winograd_tile *t)
{
    static const enum winograd_place places[2][2] = { { WINOGRAD_WHOLE, WINOGRAD_END_COLUMN },
                                                      { WINOGRAD_END_ROW, WINOGRAD_CORNER } };
    return places[t->made_rows < w->tile][t->made_columns < w->tile];
}

void winograd_find_block(const struct winograd_conv *w, int64_t first, int64_t n,
                         struct winograd_block *block)
{
    struct winograd_tile found[WINOGRAD_MOST_TILES];
    int64_t next[WINOGRAD_PLACES + 1] = { 0 }, across = w->tiles_x, down = w->tiles_y;
    for (int64_t i = 0, at = first; i < n; i++, at++) {
        found[i] = tile_at(w, at / across / down, at / across % down, at % across);
        next[place_of(w, &found[i]) + 1]++;
    }
    for (int p = 0; p < WINOGRAD_PLACES; p++)
        next[p + 1] += next[p], block->begin[p] = next[p];
    for (int64_t i = 0; i < n; i++)
        block->tiles[next[place_of(w, &found[i])]++] = found[i];
    block->n = n;
}

/* A rectangle of the tiles of every image. */
struct tile_box {
    int64_t y, x, height, width;
};

void winograd_find_block_by_place(const struct winograd_conv *w, int64_t first, int64_t n,
                                  struct winograd_block *block)
{
    int64_t rows = w->tiles_y - (w->end_rows < w->tile);
    int64_t columns = w->tiles_x - (w->end_columns < w->tile);
    int64_t last_rows = w->tiles_y - rows, last_columns = w->tiles_x - columns;
    const struct tile_box boxes[WINOGRAD_PLACES] = { { 0, columns, rows, last_columns },
                                                     { 0, 0, rows, columns },
                                                     { rows, 0, last_rows, columns },
                                                     { rows, columns, last_rows, last_columns } };
    int64_t images = w->batch * w->dilation * w->dilation, begin = 0;
    block->n = 0;
    for (int p = 0; p < WINOGRAD_PLACES; p++) {
        const struct tile_box *b = &boxes[p];
        int64_t each = b->height * b->width, end = begin + images * each;
        block->begin[p] = block->n;
        for (int64_t i = first + block->n; block->n < n && i < end; i++) {
            int64_t at = (i - begin) % each;
            block->tiles[block->n++] =
                tile_at(w, (i - begin) / each, b->y + at / b->width, b->x + at % b->width);
        }
        begin = end;
    }
}

void winograd_tiles_of_point(const struct winograd_conv *w, const struct winograd_block *block,
                             int64_t point, int64_t *from, int64_t *to)
{
    int64_t i = point / (w->tile + 2), j = point % (w->tile + 2), last = w->tile + 1;
    bool in_end_rows = i <= w->end_rows || i == last;
    bool in_end_columns = j <= w->end_columns || j == last;
    int64_t first = in_end_columns ? 0 : block->begin[WINOGRAD_WHOLE];
    int64_t end = in_end_rows ? in_end_columns ? block->n : block->begin[WINOGRAD_CORNER]
                              : block->begin[WINOGRAD_END_ROW];
    *from = *from > first ? *from : first;
    *to = *to < end ? *to : end;
}
