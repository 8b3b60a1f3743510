/* preview.c: see preview.h. */
#include "patch/preview.h"

#include <stdlib.h>
#include <string.h>
#include "base/class_colour.h"
#include "base/image.h"
#include "patch/store.h"

#define COLUMNS 8
#define MAX_PICTURES 40
#define PICTURE_PX 112
#define FRAME_PX 4
#define GAP_PX 4
#define CELL_PX (PICTURE_PX + 2 * FRAME_PX + GAP_PX)

/* Of a label in a store that names its classes or not. */
static void frame_colour(const struct class_names *classes, int8_t label, uint8_t out[3])
{
    static const uint8_t plain[3][3] = { { 150, 150, 150 }, { 40, 160, 60 }, { 210, 30, 40 } };
    uint8_t colours[INT8_MAX + 1][3];
    memcpy(out, plain[label < 0 ? 0 : label == 0 ? 1 : 2], 3);
    if (label < 0 || label >= classes->n)
        return;
    class_colours(classes->items, classes->n, colours);
    memcpy(out, colours[label], 3);
}

static void draw_frame(const struct image *sheet, int64_t x0, int64_t y0, const uint8_t colour[3])
{
    for (int64_t y = 0; y < PICTURE_PX + 2 * FRAME_PX; y++)
        for (int64_t x = 0; x < PICTURE_PX + 2 * FRAME_PX; x++)
            memcpy(image_at(sheet, x0 + x, y0 + y), colour, 3);
}

static bool draw_patch(const struct image *sheet, int64_t x0, int64_t y0, struct image *patch,
                       struct err *err)
{
    struct image small = { 0 };
    int64_t side = patch->width < PICTURE_PX ? patch->width : PICTURE_PX;
    if (!image_shrink(patch, side, side, &small, err))
        return false;
    for (int64_t y = 0; y < PICTURE_PX; y++) /* smaller patches are drawn larger */
        for (int64_t x = 0; x < PICTURE_PX; x++)
            memcpy(image_at(sheet, x0 + x, y0 + y),
                   image_at(&small, x * side / PICTURE_PX, y * side / PICTURE_PX), 3);
    image_free(&small);
    return true;
}

static bool draw_sheet(struct store *store, struct image *sheet, struct image *patch,
                       struct err *err)
{
    int64_t all = store_patches(store)->n, n = all < MAX_PICTURES ? all : MAX_PICTURES;
    memset(sheet->px, 255, image_bytes(sheet));
    for (int64_t i = 0; i < n; i++) {
        int64_t index = i * all / n;
        int64_t x = i % COLUMNS * CELL_PX + GAP_PX, y = i / COLUMNS * CELL_PX + GAP_PX;
        uint8_t colour[3];
        frame_colour(store_classes(store), store_patches(store)->items[index].label, colour);
        draw_frame(sheet, x, y, colour);
        if (!store_read(store, index, 1, patch->px, err) ||
            !draw_patch(sheet, x + FRAME_PX, y + FRAME_PX, patch, err))
            return false;
    }
    return true;
}

bool preview_write(const char *store_path, const char *png_path, struct err *err)
{
    struct store *store = NULL;
    struct image sheet = { 0 }, patch = { 0 };
    if (!store_open(store_path, &store, err))
        return false;
    int64_t n = store_patches(store)->n, side = store_patch_px(store);
    n = n < MAX_PICTURES ? n : MAX_PICTURES;
    int64_t rows = (n + COLUMNS - 1) / COLUMNS;
    bool ok = n == 0 ||
              (image_new(&sheet, COLUMNS * CELL_PX + GAP_PX, rows * CELL_PX + GAP_PX, 3, err) &&
               image_new(&patch, side, side, 3, err) && draw_sheet(store, &sheet, &patch, err) &&
               image_write_png(png_path, &sheet, err));
    image_free(&sheet);
    image_free(&patch);
    store_close(store);
    return ok;
}
