/* model_prepare.c: see model_prepare.h. */
#include "net/model/model_prepare.h"

#include <string.h>

int64_t model_crop_start(int64_t side_px, int64_t crop_px)
{
    int64_t rest = side_px - crop_px, half = rest / 2;
    return rest % 2 ? half + half % 2 : half;
}

static bool sizing_size(const struct model_sizing *sizing, int64_t *width, int64_t *height,
                        struct err *err)
{
    int64_t shorter = *width < *height ? *width : *height;
    if (sizing->kind == MODEL_RESIZE_SHORTER) {
        *width = *width * sizing->height / shorter;
        *height = *height * sizing->height / shorter;
        return true;
    }
    if (sizing->kind == MODEL_CENTER_CROP && (*width < sizing->width || *height < sizing->height))
        return err_set(err, ERR_FORMAT,
                       "a patch of %lld x %lld px is smaller than the %lld x %lld px the model "
                       "crops from it; use larger patches",
                       (long long)*width, (long long)*height, (long long)sizing->width,
                       (long long)sizing->height);
    *width = sizing->width;
    *height = sizing->height;
    return true;
}

bool model_sized(const struct model_config *config, int n_sizings, int64_t width, int64_t height,
                 int64_t *out_width, int64_t *out_height, struct err *err)
{
    *out_width = width;
    *out_height = height;
    for (int i = 0; i < n_sizings; i++)
        if (!sizing_size(&config->sizings[i], out_width, out_height, err))
            return false;
    return true;
}

bool model_input_size(const struct model_config *config, int64_t width, int64_t height,
                      int64_t *input_width, int64_t *input_height, struct err *err)
{
    int64_t side = config->patch_size_pixels;
    if (config->whole.set && (width != side || height != side))
        return err_set(err, ERR_FORMAT,
                       "the model was trained on whole slides, not on patches; use 'microtome "
                       "predict --mode whole' or 'microtome model run --memory stream'");
    if (config->n_sizings == 0 && side > 0 && (width != side || height != side))
        return err_set(err, ERR_FORMAT,
                       "a patch of %lld x %lld px: the model expects patches of %lld px, and its "
                       "config.json neither crops nor resizes",
                       (long long)width, (long long)height, (long long)side);
    return model_sized(config, config->n_sizings, width, height, input_width, input_height, err);
}

/* Rows move towards the front of the same memory. */
static void crop(struct image *image, int64_t width, int64_t height)
{
    int64_t left = model_crop_start(image->width, width),
            top = model_crop_start(image->height, height);
    size_t row_bytes = (size_t)width * (size_t)image->channels;
    for (int64_t y = 0; y < height; y++)
        memmove(image->px + (size_t)y * row_bytes, image_at(image, left, top + y), row_bytes);
    image->width = width;
    image->height = height;
}

bool model_resize(const struct model_config *config, int n_sizings, struct image *image,
                  struct err *err)
{
    for (int i = 0; i < n_sizings; i++) {
        int64_t width = image->width, height = image->height;
        if (!sizing_size(&config->sizings[i], &width, &height, err))
            return false;
        if (width == image->width && height == image->height)
            continue;
        if (config->sizings[i].kind == MODEL_CENTER_CROP) {
            crop(image, width, height);
            continue;
        }
        struct image resized = { 0 };
        if (!image_resize(image, width, height, &resized, err))
            return false;
        image_free(image);
        *image = resized;
    }
    return true;
}

void model_normalize(const struct model_config *config, const struct image *image, float *out)
{
    int64_t plane = image->width * image->height;
    for (int c = 0; c < 3; c++) {
        float table[256];
        float mean = (float)config->mean[c], std = (float)config->std[c];
        for (int v = 0; v < 256; v++)
            table[v] = ((float)v / 255.0f - mean) / std;
        for (int64_t i = 0; i < plane; i++)
            out[c * plane + i] = table[image->px[3 * i + c]];
    }
}

bool model_prepare(const struct model_config *config, const struct image *image, float *out,
                   struct err *err)
{
    int64_t width = 0, height = 0;
    struct image own = { 0 };
    if (!model_input_size(config, image->width, image->height, &width, &height, err))
        return false;
    if (config->n_sizings == 0) {
        model_normalize(config, image, out);
        return true;
    }
    if (!image_new(&own, image->width, image->height, image->channels, err))
        return false;
    memcpy(own.px, image->px, image_bytes(image));
    bool ok = model_resize(config, config->n_sizings, &own, err);
    if (ok)
        model_normalize(config, &own, out);
    image_free(&own);
    return ok;
}

int64_t model_crop_only(const struct model_config *config, int64_t patch_px)
{
    int64_t side = patch_px;
    for (int i = 0; i < config->n_sizings; i++) {
        const struct model_sizing *sizing = &config->sizings[i];
        if (sizing->kind != MODEL_CENTER_CROP && sizing->height == side && sizing->width == side)
            continue; /* changes nothing */
        if (sizing->kind != MODEL_CENTER_CROP || sizing->height != sizing->width ||
            sizing->width > side || (side - sizing->width) % 2)
            return 0;
        side = sizing->width;
    }
    return side;
}

void model_lay(const float *from, int64_t maps, int64_t side_px, int way, float *to)
{
    int64_t next_column = way & 4 ? side_px : 1, next_row = way & 4 ? 1 : side_px;
    for (int64_t map = 0; map < maps; map++)
        for (int64_t y = 0; y < side_px; y++) {
            const float *row = from + map * side_px * side_px +
                               (way & 2 ? side_px - 1 - y : y) * next_row +
                               (way & 1 ? (side_px - 1) * next_column : 0);
            float *out = to + (map * side_px + y) * side_px;
            for (int64_t x = 0; x < side_px; x++)
                out[x] = row[(way & 1 ? -x : x) * next_column];
        }
}
