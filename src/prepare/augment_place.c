/* augment_place.c: crops, flips and quarter turns: pixels only change places. */
#include <string.h>
#include "prepare/augment_ops.h"

void augment_crop(struct image *patch, int64_t left, int64_t top, int64_t side_px)
{
    size_t row_bytes = (size_t)(side_px * 3);
    for (int64_t y = 0; y < side_px; y++) /* a target never lies behind its source */
        memmove(patch->px + (size_t)y * row_bytes, image_at(patch, left, top + y), row_bytes);
    patch->width = patch->height = side_px;
}

static void swap_pixels(uint8_t *a, uint8_t *b)
{
    for (int c = 0; c < 3; c++) {
        uint8_t kept = a[c];
        a[c] = b[c];
        b[c] = kept;
    }
}

static void mirror_row(uint8_t *row, int64_t width)
{
    for (uint8_t *a = row, *b = row + 3 * (width - 1); a < b; a += 3, b -= 3)
        swap_pixels(a, b);
}

static void swap_rows(uint8_t *restrict a, uint8_t *restrict b, int64_t n_bytes)
{
    for (int64_t i = 0; i < n_bytes; i++) {
        uint8_t kept = a[i];
        a[i] = b[i];
        b[i] = kept;
    }
}

void augment_flip(struct image *patch, bool left_right, bool top_bottom)
{
    for (int64_t y = 0; left_right && y < patch->height; y++)
        mirror_row(image_at(patch, 0, y), patch->width);
    for (int64_t y = 0; top_bottom && y < patch->height / 2; y++)
        swap_rows(image_at(patch, 0, y), image_at(patch, 0, patch->height - 1 - y),
                  3 * patch->width);
}

void augment_turn(struct image *patch, int quarters)
{
    if (quarters & 1)
        for (int64_t y = 0; y < patch->height; y++)
            for (int64_t x = 0; x < y; x++)
                swap_pixels(image_at(patch, x, y), image_at(patch, y, x));
    augment_flip(patch, (quarters & 3) >= 2, (quarters & 3) == 1 || (quarters & 3) == 2);
}
