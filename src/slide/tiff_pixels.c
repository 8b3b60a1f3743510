/* tiff_pixels.c: see tiff_pixels.h. Row by row, so that a row stays in the cache. */
#include "slide/tiff_pixels.h"

#include <string.h>
#include <tiff.h>
#include "slide/codec.h"

static int colours_of(const struct tiff_directory *d)
{
    return d->samples - (d->alpha != ALPHA_NONE);
}

/* Codecs that give colours have converted YCbCr. */
static bool is_rgb(const struct tiff_directory *d)
{
    return d->photometric == PHOTOMETRIC_RGB ||
           (d->photometric == PHOTOMETRIC_YCBCR && d->codec->gives == CODEC_COLOURS);
}

const char *tiff_pixels_why_unfit(const struct tiff_directory *d)
{
    bool grey =
        d->photometric == PHOTOMETRIC_MINISBLACK || d->photometric == PHOTOMETRIC_MINISWHITE;
    bool palette = d->photometric == PHOTOMETRIC_PALETTE;
    if (d->sample_format == SAMPLEFORMAT_IEEEFP)
        return "its samples are floating-point numbers";
    if (d->sample_format != SAMPLEFORMAT_UINT)
        return "its samples are signed or complex numbers";
    if (d->bits != 8 && d->bits != 16 &&
        !(d->samples == 1 && d->bits > 0 && d->bits < 8 && 8 % d->bits == 0))
        return "its samples do not have 1, 2, 4, 8 or 16 bits";
    if (d->photometric == PHOTOMETRIC_YCBCR && !is_rgb(d))
        return "its colours are YCbCr, which is supported in JPEG and JPEG 2000 only";
    if (!grey && !palette && !is_rgb(d))
        return "its colours are neither grey, RGB nor a palette";
    if (palette && (!d->palette || d->samples != 1))
        return "its palette is missing or has more than 256 colours";
    if (colours_of(d) != (grey || palette ? 1 : 3))
        return "it has more or fewer channels than its colours need";
    if (d->predictor != PREDICTOR_NONE && (d->predictor != PREDICTOR_HORIZONTAL || d->bits < 8))
        return "its predictor is not supported";
    return NULL;
}

static void swap_bytes(uint8_t *row, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint8_t first = row[2 * i];
        row[2 * i] = row[2 * i + 1];
        row[2 * i + 1] = first;
    }
}

/* Horizontal differences -> samples; the loops are inlined with a constant step. */
static inline void add_left_8(uint8_t *to, const uint8_t *from, int64_t n, int step)
{
    memcpy(to, from, (size_t)(step < n ? step : n));
    for (int64_t i = step; i < n; i++)
        to[i] = (uint8_t)(from[i] + to[i - step]);
}

static void undo_predictor_8(uint8_t *to, const uint8_t *from, int64_t n, int step)
{
    if (step == 3) { /* three sums in registers */
        uint8_t r = 0, g = 0, b = 0;
        for (int64_t i = 0; i + 2 < n; i += 3) {
            to[i] = r = (uint8_t)(r + from[i]);
            to[i + 1] = g = (uint8_t)(g + from[i + 1]);
            to[i + 2] = b = (uint8_t)(b + from[i + 2]);
        }
    } else if (step == 1) {
        add_left_8(to, from, n, 1);
    } else {
        add_left_8(to, from, n, step);
    }
}

static void undo_predictor_16(uint16_t *row, int64_t n, int step)
{
    for (int64_t i = step; i < n; i++)
        row[i] = (uint16_t)(row[i] + row[i - step]);
}

/* Byte order and predictor of one row, in place. */
static void undo_row(const struct tiff_directory *d, uint8_t *row)
{
    int step = d->planar ? 1 : d->samples;
    int64_t n = d->tile_width * step;
    if (d->swapped)
        swap_bytes(row, n);
    if (d->predictor != PREDICTOR_HORIZONTAL)
        return;
    if (d->bits == 16)
        undo_predictor_16((uint16_t *)(void *)row, n, step);
    else
        undo_predictor_8(row, row, n, step);
}

/* Samples of any width -> 8 bits each; may work in place. */
static void to_8_bits(const struct tiff_directory *d, const uint8_t *row, int64_t n, uint8_t *out)
{
    if (d->bits == 16) {
        const uint16_t *wide = (const uint16_t *)(const void *)row;
        if (colours_of(d) == 1)
            for (int64_t i = 0; i < n; i++)
                out[i] = (uint8_t)(wide[i] >> 8);
        else /* v / 257, rounded, exactly */
            for (int64_t i = 0; i < n; i++)
                out[i] = (uint8_t)((wide[i] * 255U + 32895U) >> 16);
    } else if (d->bits < 8) {
        int a_byte = 8 / d->bits, most = (1 << d->bits) - 1;
        int times = d->photometric == PHOTOMETRIC_PALETTE ? 1 : 255 / most;
        for (int64_t i = 0; i < n; i++) {
            int shift = 8 - d->bits * (int)(i % a_byte + 1);
            out[i] = (uint8_t)((row[i / a_byte] >> shift & most) * times);
        }
    } else {
        memcpy(out, row, (size_t)n);
    }
}

/* One row of every plane -> `scratch` [tile_width, samples], 8 bits each. */
static void gather_row(const struct tiff_directory *d, uint8_t *samples, int64_t y,
                       uint8_t *scratch)
{
    int64_t n = d->tile_width;
    if (!d->planar) {
        uint8_t *row = samples + y * d->row_bytes;
        undo_row(d, row);
        to_8_bits(d, row, n * d->samples, scratch);
        return;
    }
    for (int p = 0; p < d->samples; p++) {
        uint8_t *row = samples + p * d->tile_bytes + y * d->row_bytes;
        undo_row(d, row);
        if (d->bits == 16)
            to_8_bits(d, row, n, row);
        for (int64_t i = 0; i < n; i++)
            scratch[i * d->samples + p] = row[i];
    }
}

static uint8_t lay_on_white(uint8_t value, uint8_t alpha, enum tiff_alpha kind)
{
    int under = 255 - alpha;
    int over = kind == ALPHA_UNASSOCIATED ? (value * alpha + 127) / 255 : value;
    return (uint8_t)(over + under > 255 ? 255 : over + under);
}

/* Grey or RGB, with or without alpha. */
static void colour_row(const struct tiff_directory *d, const uint8_t *px, uint8_t *dst)
{
    if (d->samples == 1) { /* masks: the common case of these */
        uint8_t mask = d->photometric == PHOTOMETRIC_MINISWHITE ? 255 : 0;
        for (int64_t x = 0; x < d->tile_width; x++)
            dst[3 * x] = dst[3 * x + 1] = dst[3 * x + 2] = px[x] ^ mask;
        return;
    }
    bool inverted = d->photometric == PHOTOMETRIC_MINISWHITE;
    int n_colours = colours_of(d);
    for (int64_t x = 0; x < d->tile_width; x++, px += d->samples, dst += 3)
        for (int c = 0; c < 3; c++) {
            uint8_t value = px[n_colours == 3 ? c : 0];
            value = inverted ? (uint8_t)(255 - value) : value;
            dst[c] = d->alpha ? lay_on_white(value, px[d->samples - 1], d->alpha) : value;
        }
}

static void palette_row(const struct tiff_directory *d, const uint8_t *px, uint8_t *dst)
{
    for (int64_t x = 0; x < d->tile_width; x++)
        memcpy(dst + 3 * x, d->palette + 3 * px[x], 3);
}

void tiff_pixels_convert(const struct tiff_directory *d, uint8_t *samples, uint8_t *scratch,
                         uint8_t *dst, int64_t stride_bytes)
{
    bool plain = is_rgb(d) && d->samples == 3 && !d->planar;
    for (int64_t y = 0; y < d->tile_height; y++, dst += stride_bytes) {
        uint8_t *row = samples + y * d->row_bytes;
        if (plain && d->bits == 8 && d->predictor == PREDICTOR_HORIZONTAL) {
            undo_predictor_8(dst, row, d->row_bytes, 3);
        } else if (plain) {
            gather_row(d, samples, y, dst);
        } else {
            gather_row(d, samples, y, scratch);
            if (d->photometric == PHOTOMETRIC_PALETTE)
                palette_row(d, scratch, dst);
            else
                colour_row(d, scratch, dst);
        }
    }
}
