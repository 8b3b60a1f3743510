/* slide_image.h: a slide as the image that a network of whole images takes, of which only what is
 * being read is in memory: the bounding box of its tissue at one resolution, white where there is
 * no tissue, with stains, augmentation and normalisation as patches have them.
 *
 * A pixel depends on the slide, the options and the view alone, never on the region it is read
 * with. What is known of a slide is found once, by slide_image_open; the file itself is open only
 * from a read to slide_image_rest, so all slides of a cohort can be kept. Used by one thread at a
 * time; different images by different threads. */
#ifndef PREPARE_SLIDE_IMAGE_H
#define PREPARE_SLIDE_IMAGE_H
#include "base/ctx.h"
#include "net/model/model_config.h"
#include "net/plan/plan.h"
#include "prepare/augment.h"
#include "slide/slide_list.h"
#include "stain/stain.h"
#include "tissue/tissue.h"

struct slide_image;

struct slide_image_options {
    double mpp;                /* um/px of the image; 0: long_side_px decides */
    double mpp_tolerance;      /* how much coarser the slide may be, as a fraction of mpp */
    int64_t long_side_px;      /* of the image, if mpp is 0; both 0: level 0 as it is */
    enum tissue_method method; /* TISSUE_NONE: all of the slide, nothing is made white */
    const char *mask;          /* PNG of the tissue instead; NULL: it is found */
    unsigned omit;             /* kinds of bad areas that are not tissue (tissue/quality.h) */
    double margin_um;          /* what is as near as this to tissue counts as tissue */
    bool background;           /* pixels without tissue stay as they are in the file */
    struct stain_fit target;   /* what stains are normalised to; STAIN_NONE: as they are */
    struct stain_fit fitted;   /* the slide's stains, if they are known; else they are found */
    double mean[3], std[3];    /* of RGB / 255: the network's */
    bool of_config;            /* messages name data.mpp and data.long_side_px of a training's
                                * config instead of options */
    size_t cache_bytes;        /* for decoded tiles of the file; at least what one row of small
                                * regions needs */
};
#define SLIDE_IMAGE_MARGIN_UM 50
#define SLIDE_IMAGE_CACHE_BYTES ((size_t)64 << 20)
/* mpp, long_side_px and target unset; mean 0 and std 1; the rest as usual. */
struct slide_image_options slide_image_defaults(void);

/* As a model of whole slides expects them, without its stains (stain_need.h): its config says so.
 */
bool slide_image_of_model(const struct model_config *config, struct slide_image_options *out,
                          struct err *err);
/* Writes to the config of a model how its slides were read: all but stains. */
void slide_image_put(const struct slide_image_options *options, struct model_config *config);

/* Opens the slide, finds its tissue and, where stains are normalised, its stains. A slide without
 * tissue is an error. The strings of entry and access must outlive *out, which is the caller's;
 * free with slide_image_close. */
bool slide_image_open(const struct slide_entry *entry, const struct slide_access *access,
                      const struct slide_image_options *options, const struct ctx *ctx,
                      struct slide_image **out, struct err *err);
void slide_image_close(struct slide_image *image); /* NULL-safe */

/* Where the image lies on its slide, before flips and turns. */
struct slide_image_facts {
    int64_t width, height;       /* px */
    double mpp;                  /* um/px; 0 if the slide has none */
    double downsample;           /* level-0 pixels per px */
    int64_t x, y;                /* its first pixel, in px of the whole slide at this scale */
    int64_t width_l0, height_l0; /* of the slide */
    double mpp_l0;
    double tissue;          /* fraction of its pixels */
    struct stain_fit stain; /* of the slide; STAIN_NONE: not normalised */
};
const struct slide_image_facts *slide_image_facts(const struct slide_image *image);

/* Warns if the slide is smaller than the image and was enlarged. */
void slide_image_warn(const struct slide_image *image, struct console *console);

/* How the image is seen from now on: flipped, turned and coloured as `key` draws (key.sample: the
 * slide); options NULL: as it is. One set of choices for all of the slide; contrast is about the
 * mean of its tissue, which is not known with a mask. A crop is an error. */
bool slide_image_view(struct slide_image *image, const struct augment_options *options,
                      struct augment_key key, struct err *err);
/* Of the image as it is seen: a turn by 90 degrees swaps them. */
void slide_image_size(const struct slide_image *image, int64_t *height, int64_t *width);
/* rows [height]: the fraction of tissue in each row, as it is seen. */
void slide_image_tissue_rows(const struct slide_image *image, double *rows);

/* Reads regions of [3, height, width] as it is seen; valid while the image is open. */
struct plan_source slide_image_source(struct slide_image *image);
/* The same region as bytes, RGB [h, w, 3], before normalisation with mean and std. */
bool slide_image_rgb(struct slide_image *image, int64_t y, int64_t x, int64_t h, int64_t w,
                     uint8_t *out, struct err *err);

/* Closes the file and frees what reading has allocated. The next read opens it again. */
void slide_image_rest(struct slide_image *image);
/* The most bytes that reading allocates, besides the caller's floats and what the
 * file's reader keeps; for any regions. At rest it takes a bit for every pixel of the mask. */
size_t slide_image_bytes(const struct slide_image *image);
/* Tiles of the file that were decoded so far. */
int64_t slide_image_tiles_decoded(const struct slide_image *image);
#endif
