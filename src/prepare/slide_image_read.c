/* slide_image_read.c: regions of a slide that is read as an image (slide_image.h), part by part:
 * the pixels of the file, stains, augmentation, white where there is no tissue, then their places
 * in the view. Parts without tissue are not read. */
#include <stdlib.h>
#include <string.h>
#include "prepare/slide_image_state.h"

#define PART_PX 256

/* A part of the image, in px; with what it depends on around it. */
struct part {
    int64_t x, y, width, height;
    int64_t left, top; /* more px on these sides in memory */
    int64_t full_width, full_height;
};

struct slide_walk slide_image_walk(const struct slide_image_facts *facts,
                                   const struct augment_placing *placing)
{
    const int quarters = placing->quarters & 3;
    const bool turned = quarters & 1;
    /* Mirrored, then transposed, then mirrored again (augment_turn). */
    bool back_column = quarters >= 2, back_row = quarters == 1 || quarters == 2;
    bool back_x = placing->left_right != (turned ? back_row : back_column);
    bool back_y = placing->top_bottom != (turned ? back_column : back_row);
    int64_t x_step = back_x ? -1 : 1, y_step = back_y ? -1 : 1;
    return (struct slide_walk){ .x = back_x ? facts->width - 1 : 0,
                                .y = back_y ? facts->height - 1 : 0,
                                .x_by_column = turned ? 0 : x_step,
                                .y_by_column = turned ? y_step : 0,
                                .x_by_row = turned ? x_step : 0,
                                .y_by_row = turned ? 0 : y_step };
}

static bool fill_places(struct slide_image *image, struct err *err)
{
    const struct slide_image_facts *f = &image->facts;
    image->columns = malloc((size_t)f->width * sizeof *image->columns);
    image->rows = malloc((size_t)f->height * sizeof *image->rows);
    if (!image->columns || !image->rows)
        return err_memory(err, image->entry.path);
    for (int64_t x = 0; x < f->width; x++)
        image->columns[x] = slide_image_tissue_at(image, 0, x);
    for (int64_t y = 0; y < f->height; y++)
        image->rows[y] = slide_image_tissue_at(image, 1, y);
    return true;
}

static size_t part_room(const struct slide_image *image)
{
    size_t side = (size_t)(PART_PX + 2 * image->view.reach_px);
    return 3 * side * side;
}

bool slide_image_wake(struct slide_image *image, struct err *err)
{
    if (!image->slide && !slide_open_entry(&image->entry, &image->access, &image->slide, err))
        return false;
    image->raster.slide = image->slide;
    if (!image->columns && !fill_places(image, err))
        return false;
    if (part_room(image) > image->part_bytes) {
        uint8_t *part = realloc(image->part, part_room(image));
        if (!part)
            return err_memory(err, image->entry.path);
        image->part = part;
        image->part_bytes = part_room(image);
    }
    if (image->reader)
        return true;
    if (!region_reader_open(&image->raster, image->options.cache_bytes, &image->reader, err))
        return false;
    image->reader_bytes = region_reader_bytes(image->reader);
    return true;
}

void slide_image_rest(struct slide_image *image)
{
    image->decoded = slide_image_tiles_decoded(image);
    region_reader_close(image->reader);
    slide_close(image->slide);
    free(image->part);
    free(image->columns);
    free(image->rows);
    image->reader = NULL;
    image->slide = image->raster.slide = NULL;
    image->part = NULL;
    image->part_bytes = 0;
    image->columns = image->rows = NULL;
}

int64_t slide_image_tiles_decoded(const struct slide_image *image)
{
    return image->decoded + (image->reader ? region_reader_decoded(image->reader) : 0);
}

size_t slide_image_bytes(const struct slide_image *image)
{
    const struct slide_image_facts *f = &image->facts;
    return sizeof *image + (size_t)(image->tissue.height * image->tissue.row_bytes) +
           (size_t)(f->width + f->height) * sizeof *image->rows + part_room(image) +
           image->reader_bytes;
}

/* Is there any tissue under a part, and is there any that is not? */
static void look(const struct slide_image *image, const struct part *part, bool *some, bool *all)
{
    const int64_t first = image->columns[part->x];
    const int64_t last = image->columns[part->x + part->width - 1];
    *some = false;
    *all = true;
    for (int64_t row = image->rows[part->y]; row <= image->rows[part->y + part->height - 1]; row++)
        for (int64_t column = first; column <= last; column++) {
            bool tissue = tissue_bit(&image->tissue, column, row);
            *some |= tissue;
            *all &= tissue;
        }
}

static uint8_t *part_at(const struct slide_image *image, const struct part *part, int64_t x,
                        int64_t y)
{
    return image->part +
           3 * ((y - part->y + part->top) * part->full_width + x - part->x + part->left);
}

static void whiten(const struct slide_image *image, const struct part *part)
{
    for (int64_t y = part->y; y < part->y + part->height; y++) {
        uint8_t *px = part_at(image, part, part->x, y);
        for (int64_t x = part->x; x < part->x + part->width; x++, px += 3)
            if (!tissue_bit(&image->tissue, image->columns[x], image->rows[y]))
                memset(px, 255, 3);
    }
}

/* What it depends on, within the image. */
static void widen(const struct slide_image *image, struct part *part)
{
    const struct slide_image_facts *f = &image->facts;
    const int64_t reach = image->view.reach_px;
    int64_t right = f->width - part->x - part->width, below = f->height - part->y - part->height;
    part->left = part->x < reach ? part->x : reach;
    part->top = part->y < reach ? part->y : reach;
    part->full_width = part->left + part->width + (right < reach ? right : reach);
    part->full_height = part->top + part->height + (below < reach ? below : reach);
}

/* The part's pixels, in image->part. */
static bool load(struct slide_image *image, struct part *part, struct err *err)
{
    const struct image_view *view = &image->view;
    bool some = true, all = true;
    widen(image, part);
    if (!image->options.background)
        look(image, part, &some, &all);
    if (!some) {
        memset(image->part, 255, (size_t)(3 * part->full_width * part->full_height));
        return true;
    }
    struct image pixels = {
        .px = image->part, .width = part->full_width, .height = part->full_height, .channels = 3
    };
    if (!region_read(image->reader, image->facts.x + part->x - part->left,
                     image->facts.y + part->y - part->top, part->full_width, part->full_height,
                     image->part, 3 * part->full_width, err))
        return false;
    if (image->transform)
        stain_apply(image->transform, pixels.px, pixels.width * pixels.height);
    if (view->coloured && !augment_part(&view->options, view->key, view->grey, &pixels, err))
        return false;
    if (!all)
        whiten(image, part);
    return true;
}

/* Where what is read goes: floats [3, h, w] or bytes [h, w, 3]. */
struct region_out {
    float *floats;
    uint8_t *bytes;
    int64_t width, plane;
};

static void put(const struct slide_image *image, const uint8_t *px, int64_t step, int64_t n,
                const struct region_out *out, int64_t at)
{
    for (int c = 0; out->floats && c < 3; c++) {
        float *to = out->floats + c * out->plane + at;
        const float *table = image->table[c];
        for (int64_t i = 0; i < n; i++)
            to[i] = table[px[i * step + c]];
    }
    for (int64_t i = 0; out->bytes && i < n; i++)
        memcpy(out->bytes + 3 * (at + i), px + i * step, 3);
}

/* Rows [y, y + h), columns [x, x + w) of the view, at most PART_PX each; they are written from
 * `at`. */
static bool read_part(struct slide_image *image, int64_t y, int64_t x, int64_t h, int64_t w,
                      const struct region_out *out, int64_t at, struct err *err)
{
    const struct slide_walk walk = slide_image_walk(&image->facts, &image->view.placing);
    int64_t x0 = walk.x + x * walk.x_by_column + y * walk.x_by_row;
    int64_t y0 = walk.y + x * walk.y_by_column + y * walk.y_by_row;
    int64_t x1 = x0 + (w - 1) * walk.x_by_column + (h - 1) * walk.x_by_row;
    int64_t y1 = y0 + (w - 1) * walk.y_by_column + (h - 1) * walk.y_by_row;
    struct part part = { .x = x0 < x1 ? x0 : x1,
                         .y = y0 < y1 ? y0 : y1,
                         .width = llabs(x1 - x0) + 1,
                         .height = llabs(y1 - y0) + 1 };
    if (!load(image, &part, err))
        return false;
    const int64_t step = 3 * (walk.x_by_column + walk.y_by_column * part.full_width);
    for (int64_t i = 0; i < h; i++)
        put(image, part_at(image, &part, x0 + i * walk.x_by_row, y0 + i * walk.y_by_row), step, w,
            out, at + i * out->width);
    return true;
}

static bool read_region(struct slide_image *image, int64_t y, int64_t x, int64_t h, int64_t w,
                        const struct region_out *out, struct err *err)
{
    int64_t height = 0, width = 0;
    slide_image_size(image, &height, &width);
    if (y < 0 || x < 0 || h < 1 || w < 1 || y + h > height || x + w > width)
        return err_set(err, ERR_USAGE,
                       "%s: rows %lld to %lld, columns %lld to %lld are not within the image of "
                       "%lld x %lld px",
                       image->entry.path, (long long)y, (long long)(y + h), (long long)x,
                       (long long)(x + w), (long long)width, (long long)height);
    if (!slide_image_wake(image, err))
        return false;
    for (int64_t top = 0; top < h; top += PART_PX)
        for (int64_t left = 0; left < w; left += PART_PX)
            if (!read_part(image, y + top, x + left, h - top < PART_PX ? h - top : PART_PX,
                           w - left < PART_PX ? w - left : PART_PX, out, top * w + left, err))
                return false;
    return true;
}

static bool read_floats(void *arg, int64_t y, int64_t x, int64_t h, int64_t w, float *out,
                        struct err *err)
{
    struct region_out to = { .floats = out, .width = w, .plane = h * w };
    return read_region(arg, y, x, h, w, &to, err);
}

struct plan_source slide_image_source(struct slide_image *image)
{
    return (struct plan_source){ .arg = image, .read = read_floats };
}

bool slide_image_rgb(struct slide_image *image, int64_t y, int64_t x, int64_t h, int64_t w,
                     uint8_t *out, struct err *err)
{
    struct region_out to = { .bytes = out, .width = w };
    return read_region(image, y, x, h, w, &to, err);
}
