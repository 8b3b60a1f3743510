/* slide_image.c: what is known of a slide that is read as an image: where its tissue is, its scale,
 * its stains, and how it is seen. See slide_image.h; slide_image_read.c reads it. */
#include "prepare/slide_image.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "patch/stain_sample.h"
#include "prepare/slide_image_state.h"
#include "tissue/morphology.h"
#include "tissue/quality.h"

#define STAIN_BAND_BYTES (INT64_C(96) << 20)
#define SAMPLE_PX 4096

struct slide_image_options slide_image_defaults(void)
{
    return (struct slide_image_options){ .method = tissue_defaults().method,
                                         .margin_um = SLIDE_IMAGE_MARGIN_UM,
                                         .std = { 1, 1, 1 },
                                         .cache_bytes = SLIDE_IMAGE_CACHE_BYTES };
}

static bool find_tissue(struct slide_image *image, const struct ctx *ctx, struct tissue_mask *mask,
                        struct err *err)
{
    const struct slide_image_options *options = &image->options;
    struct tissue_options how = tissue_defaults();
    how.method = options->method;
    bool ok = options->mask ? tissue_read(image->slide, options->mask, mask, err)
                            : tissue_find(image->slide, &how, ctx, mask, err);
    return ok && quality_omit_found(image->slide, options->method, options->omit, ctx, mask, err) &&
           (mask->tissue_px > 0 ||
            err_set(err, ERR_MISSING, "%s: no tissue found; remove it from the list%s",
                    image->entry.path,
                    options->of_config
                        ? ""
                        : ", or choose another tissue method (see 'microtome tissue')"));
}

/* Pixels of tissue at even distances, as the overview shows them. */
static bool take_sample(struct slide_image *image, const struct tissue_mask *mask, struct err *err)
{
    if (!mask->overview.px)
        return true;
    const struct image *rgb = &mask->overview, *tissue = &mask->mask;
    int64_t n = mask->tissue_px < SAMPLE_PX ? mask->tissue_px : SAMPLE_PX, seen = 0, taken = 0;
    if (!image_new(&image->sample, n, 1, 3, err))
        return false;
    for (int64_t y = 0; y < tissue->height; y++)
        for (int64_t x = 0; x < tissue->width && taken < n; x++) {
            if (!*image_at(tissue, x, y) || seen++ * n / mask->tissue_px < taken)
                continue;
            memcpy(image->sample.px + 3 * taken++,
                   image_at(rgb, x * rgb->width / tissue->width, y * rgb->height / tissue->height),
                   3);
        }
    image->sample.width = taken;
    if (image->transform)
        stain_apply(image->transform, image->sample.px, taken);
    return true;
}

static bool fit_stain(struct slide_image *image, const struct tissue_mask *mask,
                      const struct ctx *ctx, struct err *err)
{
    const struct slide_image_options *options = &image->options;
    bool usual = !options->mask && !options->omit && options->method == tissue_defaults().method;
    if (options->target.method == STAIN_NONE)
        return true;
    if (options->fitted.method != STAIN_NONE) {
        image->facts.stain = options->fitted;
        return stain_transform_new(&options->fitted, &options->target, &image->transform, err);
    }
    return (stain_sample_fit(options->target.method, image->slide, usual ? mask : NULL,
                             STAIN_BAND_BYTES, ctx, &image->facts.stain, err) &&
            stain_transform_new(&image->facts.stain, &options->target, &image->transform, err)) ||
           err_prefix(err, image->entry.path);
}

static bool grow(const struct slide_image *image, struct tissue_mask *mask, struct err *err)
{
    const struct slide_level *whole = &slide_info(image->slide)->levels[0];
    double mpp = mask->mpp > 0 ? mask->mpp : TISSUE_ASSUMED_MPP;
    double px_um = sqrt(mask->l0_per_px_x * mask->l0_per_px_y) * mpp;
    if (!morphology_dilate(&mask->mask, image->options.margin_um / px_um, err))
        return false;
    tissue_measure(mask, whole->width, whole->height);
    return true;
}

static void place(int64_t box_l0, int64_t side_l0, double downsample, int64_t limit, int64_t *at,
                  int64_t *side)
{
    *at = llround((double)box_l0 / downsample);
    *side = llround((double)side_l0 / downsample);
    *side = *side < 1 ? 1 : *side > limit ? limit : *side;
    *at = *at < limit - *side ? *at : limit - *side;
}

/* What raster_open would refuse, for those who write a config. */
static bool check_config_scale(const struct slide_image *image, double downsample, struct err *err)
{
    const struct slide_image_options *options = &image->options;
    double mpp_l0 = slide_info(image->slide)->mpp;
    if (!options->of_config)
        return true;
    if (options->mpp > 0 && mpp_l0 <= 0)
        return err_set(err, ERR_MISSING,
                       "%s: no um/px in the file; add the column mpp to the slide list, or set "
                       "data.long_side_px instead of data.mpp",
                       image->entry.path);
    if (options->mpp > 0 && mpp_l0 > options->mpp * (1 + RASTER_TOLERANCE))
        return err_set(err, ERR_USAGE,
                       "%s: has %g um/px, coarser than data.mpp: %g; set data.mpp to at least %g, "
                       "or remove the slide from the list",
                       image->entry.path, mpp_l0, options->mpp, mpp_l0);
    if (downsample > 0 && downsample * RASTER_MAX_ENLARGE < 1)
        return err_set(err, ERR_USAGE,
                       "%s: data.long_side_px: %lld is more than %d times as large as its tissue "
                       "at full resolution; lower it, or remove the slide from the list",
                       image->entry.path, (long long)options->long_side_px, RASTER_MAX_ENLARGE);
    return true;
}

static bool choose_scale(struct slide_image *image, const struct tissue_mask *mask, struct err *err)
{
    const struct slide_image_options *options = &image->options;
    const struct slide_info *info = slide_info(image->slide);
    struct slide_image_facts *facts = &image->facts;
    int64_t long_l0 = mask->box_width > mask->box_height ? mask->box_width : mask->box_height;
    struct raster_request request = { .mpp = options->mpp,
                                      .mpp_tolerance = options->mpp_tolerance };
    if (options->mpp <= 0 && options->long_side_px > 0)
        request.downsample = (double)long_l0 / (double)options->long_side_px;
    if (!check_config_scale(image, request.downsample, err) ||
        !raster_open(image->slide, &request, &image->raster, err))
        return false;
    const struct raster *raster = &image->raster;
    place(mask->box_x, mask->box_width, raster->downsample, raster->width, &facts->x,
          &facts->width);
    place(mask->box_y, mask->box_height, raster->downsample, raster->height, &facts->y,
          &facts->height);
    facts->mpp = raster->mpp;
    facts->downsample = raster->downsample;
    facts->mpp_l0 = info->mpp;
    facts->width_l0 = info->levels[0].width;
    facts->height_l0 = info->levels[0].height;
    return true;
}

static int64_t mask_px(double at, double downsample, double l0_per_px, int64_t n)
{
    int64_t px = (int64_t)((at + 0.5) * downsample / l0_per_px);
    return px < n ? px : n - 1;
}

/* Keeps the part of the mask under the image. */
static bool keep_bits(struct slide_image *image, const struct tissue_mask *mask, struct err *err)
{
    const struct slide_image_facts *f = &image->facts;
    struct tissue_bits *t = &image->tissue;
    t->l0_per_px_x = mask->l0_per_px_x;
    t->l0_per_px_y = mask->l0_per_px_y;
    t->x = mask_px((double)f->x, f->downsample, t->l0_per_px_x, mask->mask.width);
    t->y = mask_px((double)f->y, f->downsample, t->l0_per_px_y, mask->mask.height);
    t->width =
        mask_px((double)(f->x + f->width - 1), f->downsample, t->l0_per_px_x, mask->mask.width) -
        t->x + 1;
    t->height =
        mask_px((double)(f->y + f->height - 1), f->downsample, t->l0_per_px_y, mask->mask.height) -
        t->y + 1;
    t->row_bytes = (t->width + 7) / 8;
    t->bits = calloc((size_t)t->height, (size_t)t->row_bytes);
    if (!t->bits)
        return err_memory(err, image->entry.path);
    for (int64_t y = 0; y < t->height; y++)
        for (int64_t x = 0; x < t->width; x++)
            if (*image_at(&mask->mask, t->x + x, t->y + y))
                t->bits[y * t->row_bytes + x / 8] |= (uint8_t)(1u << x % 8);
    return true;
}

int32_t slide_image_tissue_at(const struct slide_image *image, int axis, int64_t at)
{
    const struct slide_image_facts *f = &image->facts;
    const struct tissue_bits *t = &image->tissue;
    return axis ? (int32_t)(mask_px((double)(f->y + at), f->downsample, t->l0_per_px_y,
                                    t->y + t->height) -
                            t->y)
                : (int32_t)(mask_px((double)(f->x + at), f->downsample, t->l0_per_px_x,
                                    t->x + t->width) -
                            t->x);
}

/* shares [n of the mask's columns or rows]: how many px of the image lie in each. */
static void count_px(const struct slide_image *image, int axis, int64_t side, double *shares)
{
    for (int64_t i = 0; i < side; i++)
        shares[slide_image_tissue_at(image, axis, i)] += 1;
}

/* Of every column (axis 0) or row (1) of the mask: its fraction of tissue. */
static bool measure(const struct slide_image *image, int axis, double **out, struct err *err)
{
    const struct tissue_bits *t = &image->tissue;
    const struct slide_image_facts *f = &image->facts;
    int64_t n = axis ? t->height : t->width, across = axis ? t->width : t->height;
    int64_t px = axis ? f->width : f->height;
    double *fractions = calloc((size_t)n, sizeof *fractions);
    double *shares = calloc((size_t)across, sizeof *shares);
    bool ok = (fractions && shares) || err_memory(err, image->entry.path);
    if (ok)
        count_px(image, !axis, px, shares);
    for (int64_t i = 0; ok && i < n; i++) {
        for (int64_t j = 0; j < across; j++)
            if (tissue_bit(t, axis ? j : i, axis ? i : j))
                fractions[i] += shares[j];
        fractions[i] /= (double)px;
    }
    free(shares);
    *out = ok ? fractions : (free(fractions), NULL);
    return ok;
}

static bool measure_tissue(struct slide_image *image, struct err *err)
{
    struct slide_image_facts *f = &image->facts;
    double sum = 0;
    for (int axis = 0; axis < 2; axis++)
        if (!measure(image, axis, &image->fractions[axis], err))
            return false;
    for (int64_t y = 0; y < f->height; y++)
        sum += image->fractions[1][slide_image_tissue_at(image, 1, y)];
    f->tissue = sum / (double)f->height;
    return true;
}

static void fill_table(struct slide_image *image)
{
    for (int c = 0; c < 3; c++) {
        float mean = (float)image->options.mean[c], std = (float)image->options.std[c];
        for (int v = 0; v < 256; v++)
            image->table[c][v] = ((float)v / 255.0f - mean) / std; /* as model_normalize */
    }
}

bool slide_image_open(const struct slide_entry *entry, const struct slide_access *access,
                      const struct slide_image_options *options, const struct ctx *ctx,
                      struct slide_image **out, struct err *err)
{
    struct slide_image *image = calloc(1, sizeof *image);
    struct tissue_mask mask = { 0 };
    if (!image)
        return err_memory(err, entry->path);
    image->entry = *entry;
    image->access = *access;
    image->options = *options;
    image->facts.stain.method = STAIN_NONE;
    fill_table(image);
    bool ok = slide_open_entry(entry, access, &image->slide, err) &&
              find_tissue(image, ctx, &mask, err) && fit_stain(image, &mask, ctx, err) &&
              take_sample(image, &mask, err) && grow(image, &mask, err) &&
              choose_scale(image, &mask, err) && keep_bits(image, &mask, err) &&
              measure_tissue(image, err) && slide_image_wake(image, err);
    tissue_mask_free(&mask);
    slide_image_rest(image);
    if (ok)
        *out = image;
    else
        slide_image_close(image);
    return ok;
}

void slide_image_close(struct slide_image *image)
{
    if (!image)
        return;
    slide_image_rest(image);
    stain_transform_free(image->transform);
    image_free(&image->sample);
    free(image->tissue.bits);
    free(image->fractions[0]);
    free(image->fractions[1]);
    free(image);
}

void slide_image_warn(const struct slide_image *image, struct console *console)
{
    const struct slide_image_options *options = &image->options;
    double times = 1 / image->facts.downsample;
    if (options->mpp <= 0 && options->long_side_px > 0 && times > 1.01)
        console_warn(console,
                     "%s: is enlarged %.1f times: %s %lld px, but its tissue has %.0f px at full "
                     "resolution; this adds no detail",
                     image->entry.path, times,
                     options->of_config ? "data.long_side_px is" : "the model takes",
                     (long long)options->long_side_px, (double)options->long_side_px / times);
}

const struct slide_image_facts *slide_image_facts(const struct slide_image *image)
{
    return &image->facts;
}

bool slide_image_view(struct slide_image *image, const struct augment_options *options,
                      struct augment_key key, struct err *err)
{
    struct image sample = image->sample;
    image->view = (struct image_view){ 0 };
    if (!options)
        return true;
    if (options->crop_px)
        return err_set(err, ERR_USAGE, "a whole slide cannot be cropped; remove augment.crop");
    if (options->contrast > 0 && !sample.px)
        return err_set(err, ERR_USAGE,
                       "%s: contrast is not changed where the tissue is given as a mask",
                       image->entry.path);
    sample.px = malloc(image_bytes(&sample) + 1);
    if (!sample.px)
        return err_memory(err, image->entry.path);
    if (image->sample.px)
        memcpy(sample.px, image->sample.px, image_bytes(&sample));
    struct image_view view = { .coloured = true,
                               .options = *options,
                               .key = key,
                               .placing = augment_placing(options, key),
                               .reach_px = augment_reach_px(options, key) };
    bool ok = augment_grey(options, key, &sample, &view.grey, err);
    free(sample.px);
    if (ok)
        image->view = view;
    return ok;
}

void slide_image_size(const struct slide_image *image, int64_t *height, int64_t *width)
{
    bool turned = image->view.placing.quarters & 1;
    *height = turned ? image->facts.width : image->facts.height;
    *width = turned ? image->facts.height : image->facts.width;
}

void slide_image_tissue_rows(const struct slide_image *image, double *rows)
{
    int64_t height = 0, width = 0;
    int axis = image->view.placing.quarters & 1 ? 0 : 1;
    slide_image_size(image, &height, &width);
    struct slide_walk walk = slide_image_walk(&image->facts, &image->view.placing);
    for (int64_t y = 0; y < height; y++) {
        int64_t at = axis ? walk.y + y * walk.y_by_row : walk.x + y * walk.x_by_row;
        rows[y] = image->fractions[axis][slide_image_tissue_at(image, axis, at)];
    }
}
