/* codec_webp.c: WebP tiles, lossy or lossless, RGB or RGBA, by libwebp. */
#include "slide/codec.h"

#include <tiff.h>
#include <webp/decode.h>
#include "slide/tiff_file.h"

static const char *status_name(VP8StatusCode status)
{
    return status == VP8_STATUS_NOT_ENOUGH_DATA || status == VP8_STATUS_SUSPENDED ? "truncated"
           : status == VP8_STATUS_OUT_OF_MEMORY                                   ? "out of memory"
           : status == VP8_STATUS_UNSUPPORTED_FEATURE ? "an unsupported feature"
                                                      : "the stream is invalid";
}

static bool webp_damaged(struct err *err, VP8StatusCode status)
{
    return err_set(err, status == VP8_STATUS_OUT_OF_MEMORY ? ERR_MEMORY : ERR_FORMAT,
                   "damaged WebP tile: %s", status_name(status));
}

static bool webp_decode(void *state, const struct tiff_directory *d, const uint8_t *bytes,
                        size_t size, uint8_t *dst, int64_t stride_bytes, struct err *err)
{
    (void)state, (void)stride_bytes;
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config))
        return err_set(err, ERR_FORMAT, "libwebp has another version than its headers");
    VP8StatusCode status = WebPGetFeatures(bytes, size, &config.input);
    if (status != VP8_STATUS_OK)
        return webp_damaged(err, status);
    /* before WebPDecode, which allocates the size the tile claims */
    if (config.input.width != d->tile_width || config.input.height != d->tile_height ||
        config.input.has_animation)
        return err_set(err, ERR_FORMAT,
                       "damaged WebP tile: the image is %d x %d px%s, not the tile's %lld x %lld",
                       config.input.width, config.input.height,
                       config.input.has_animation ? ", animated" : "", (long long)d->tile_width,
                       (long long)d->tile_height);
    config.output.colorspace = d->samples == 4 ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA =
        (WebPRGBABuffer){ .rgba = dst, .stride = (int)d->row_bytes, .size = (size_t)d->tile_bytes };
    status = WebPDecode(bytes, size, &config);
    WebPFreeDecBuffer(&config.output);
    return status == VP8_STATUS_OK || webp_damaged(err, status);
}

static const char *webp_unfit(const struct tiff_directory *d)
{
    if (d->bits != 8 || d->planar || d->depth != 1 || (d->samples != 3 && d->samples != 4) ||
        d->photometric != PHOTOMETRIC_RGB)
        return "its WebP tiles are neither RGB nor RGBA of 8 bit";
    return NULL;
}

const struct tile_codec codec_webp = {
    .name = "WebP",
    .compressions = { COMPRESSION_WEBP },
    .gives = CODEC_COLOURS,
    .why_unfit = webp_unfit,
    .decode = webp_decode,
};
