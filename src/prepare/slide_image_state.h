/* slide_image_state.h: what slide_image*.c share. */
#ifndef PREPARE_SLIDE_IMAGE_STATE_H
#define PREPARE_SLIDE_IMAGE_STATE_H
#include "prepare/slide_image.h"
#include "slide/raster.h"
#include "slide/region.h"

/* Which pixels have tissue: a part of the slide's mask, a bit for each of its pixels. */
struct tissue_bits {
    uint8_t *bits;               /* [height, row_bytes] */
    int64_t x, y, width, height; /* in pixels of the mask */
    int64_t row_bytes;
    double l0_per_px_x, l0_per_px_y;
};

static inline bool tissue_bit(const struct tissue_bits *t, int64_t column, int64_t row)
{
    return t->bits[row * t->row_bytes + column / 8] >> column % 8 & 1;
}

/* How it is seen; zeroed: as it is. */
struct image_view {
    bool coloured;
    struct augment_options options;
    struct augment_key key;
    struct augment_placing placing;
    int64_t reach_px;
    double grey;
};

struct slide_image {
    struct slide_entry entry;
    struct slide_access access;
    struct slide_image_options options;
    struct slide_image_facts facts;
    struct raster raster; /* its slide: NULL at rest */
    struct tissue_bits tissue;
    double *fractions[2];              /* of tissue: of its columns, of its rows */
    struct image sample;               /* [1, n, 3]: of tissue, stains normalised */
    struct stain_transform *transform; /* NULL: stains are not changed */
    float table[3][256];
    struct image_view view;
    /* reading: */
    struct slide *slide;
    struct region_reader *reader;
    uint8_t *part;
    size_t part_bytes;
    int32_t *columns, *rows; /* of the tissue, for each column and row of the image */
    int64_t decoded;         /* before the last rest */
    size_t reader_bytes;
};

/* Where the first pixel of the view lies in the image, and what the next column and the next row of
 * the view add to that. */
struct slide_walk {
    int64_t x, y;
    int64_t x_by_column, y_by_column, x_by_row, y_by_row;
};
struct slide_walk slide_image_walk(const struct slide_image_facts *facts,
                                   const struct augment_placing *placing);

/* Opens what reading needs. */
bool slide_image_wake(struct slide_image *image, struct err *err);

/* Of the mask's columns (axis 0) or rows (1): where px `at` of the image lies. */
int32_t slide_image_tissue_at(const struct slide_image *image, int axis, int64_t at);
#endif
