/* codec_jpeg.c: JPEG tiles -> RGB, straight into the caller's rows. One libjpeg object per thread;
 * the directory's tables are parsed once and stay in it. The colour space is that of the
 * photometric tag, as in OpenSlide. */
#include "slide/codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <jerror.h>
#include <tiff.h>
#include "base/jpeg_failure.h"
#include "slide/tiff_file.h"

#define ROWS_AT_ONCE 16

struct jpeg_state {
    const struct tiff_directory *directory;
    struct jpeg_decompress_struct jpeg;
    struct jpeg_failure failure; /* also of a warning, where pixels were made up: OpenSlide refuses
                                    such a tile, and so do we */
    struct jpeg_source_mgr input;
    bool created; /* jpeg is alive */
    bool clean;   /* its tables are the directory's and nothing else */
};

static void input_nothing(j_decompress_ptr jpeg)
{
    (void)jpeg;
}

static boolean input_ended(j_decompress_ptr jpeg)
{
    ERREXIT(jpeg, JERR_INPUT_EOF);
    return FALSE;
}

static void input_skip(j_decompress_ptr jpeg, long n)
{
    struct jpeg_source_mgr *input = jpeg->src;
    if (n <= 0)
        return;
    if ((size_t)n > input->bytes_in_buffer)
        ERREXIT(jpeg, JERR_INPUT_EOF);
    input->next_input_byte += n;
    input->bytes_in_buffer -= (size_t)n;
}

static void input_from(struct jpeg_state *state, const uint8_t *bytes, size_t size)
{
    state->input = (struct jpeg_source_mgr){ .next_input_byte = bytes,
                                             .bytes_in_buffer = size,
                                             .init_source = input_nothing,
                                             .fill_input_buffer = input_ended,
                                             .skip_input_data = input_skip,
                                             .resync_to_restart = jpeg_resync_to_restart,
                                             .term_source = input_nothing };
    state->jpeg.src = &state->input;
}

/* A fresh libjpeg object with the directory's tables loaded. May escape. */
static void begin_clean(struct jpeg_state *state)
{
    if (state->created)
        jpeg_destroy_decompress(&state->jpeg);
    state->created = false;
    state->jpeg.err = jpeg_failure_begin(&state->failure);
    jpeg_create_decompress(&state->jpeg);
    state->created = true;
    if (state->directory->tables) {
        input_from(state, state->directory->tables, state->directory->tables_size);
        if (jpeg_read_header(&state->jpeg, FALSE) != JPEG_HEADER_TABLES_ONLY)
            ERREXIT(&state->jpeg, JERR_NO_SOI);
    }
    state->clean = true;
}

/* Whether a JPEG defines its own tables, which would stay in the libjpeg object and change how
 * later tiles are decoded. Anything unexpected counts as yes: it only costs a fresh object. */
static bool brings_tables(const uint8_t *bytes, size_t size)
{
    size_t at = 2;
    while (at + 4 <= size && bytes[at] == 0xFF) {
        uint8_t marker = bytes[at + 1];
        if (marker == 0xDA) /* start of scan: the header ends */
            return false;
        if (marker == 0xDB || marker == 0xC4 || marker == 0xCC)
            return true;
        at += 2 + ((size_t)bytes[at + 2] << 8 | bytes[at + 3]);
    }
    return true;
}

/* May escape. */
static bool decode_rows(struct jpeg_state *state, const uint8_t *bytes, size_t size, uint8_t *dst,
                        int64_t stride_bytes)
{
    const struct tiff_directory *d = state->directory;
    struct jpeg_decompress_struct *jpeg = &state->jpeg;
    input_from(state, bytes, size);
    jpeg_read_header(jpeg, TRUE);
    if (jpeg->num_components != d->samples) {
        snprintf(state->failure.text, sizeof state->failure.text,
                 "the JPEG has %d components, the directory says %d", jpeg->num_components,
                 d->samples);
        return false;
    }
    jpeg->jpeg_color_space = d->photometric == PHOTOMETRIC_YCBCR ? JCS_YCbCr
                             : d->samples == 1                   ? JCS_GRAYSCALE
                                                                 : JCS_RGB;
    jpeg->out_color_space = JCS_EXT_RGB;
    /* before jpeg_start_decompress, which allocates the size the tile claims */
    if (jpeg->image_width != (JDIMENSION)d->tile_width ||
        jpeg->image_height != (JDIMENSION)d->tile_height) {
        snprintf(state->failure.text, sizeof state->failure.text,
                 "the JPEG is %u x %u px, not the tile's %lld x %lld", jpeg->image_width,
                 jpeg->image_height, (long long)d->tile_width, (long long)d->tile_height);
        return false;
    }
    jpeg_start_decompress(jpeg);
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW rows[ROWS_AT_ONCE];
        JDIMENSION n = jpeg->output_height - jpeg->output_scanline;
        n = n < ROWS_AT_ONCE ? n : ROWS_AT_ONCE;
        for (JDIMENSION i = 0; i < n; i++)
            rows[i] = dst + (int64_t)(jpeg->output_scanline + i) * stride_bytes;
        jpeg_read_scanlines(jpeg, rows, n);
    }
    return true;
}

/* All calls that may escape, with nothing local to clean up. */
static bool decode_bytes(struct jpeg_state *state, const uint8_t *bytes, size_t size, uint8_t *dst,
                         int64_t stride_bytes)
{
    if (setjmp(state->failure.jump)) {
        state->clean = false;
        return false;
    }
    if (!state->clean)
        begin_clean(state);
    if (brings_tables(bytes, size))
        state->clean = false;
    bool ok = decode_rows(state, bytes, size, dst, stride_bytes);
    jpeg_abort_decompress(&state->jpeg);
    return ok;
}

static bool jpeg_begin(const struct tiff_directory *directory, void **out, struct err *err)
{
    struct jpeg_state *state = calloc(1, sizeof *state);
    if (!state)
        return err_memory(err, "a JPEG decoder");
    state->directory = directory;
    *out = state;
    return true;
}

static void jpeg_end(void *arg)
{
    struct jpeg_state *state = arg;
    if (state && state->created)
        jpeg_destroy_decompress(&state->jpeg);
    free(state);
}

static bool jpeg_decode(void *arg, const struct tiff_directory *directory, const uint8_t *bytes,
                        size_t size, uint8_t *dst, int64_t stride_bytes, struct err *err)
{
    (void)directory;
    struct jpeg_state *state = arg;
    return decode_bytes(state, bytes, size, dst, stride_bytes) ||
           err_set(err, ERR_FORMAT, "damaged tile: %s", state->failure.text);
}

static const char *why_unfit(const struct tiff_directory *d)
{
    if (d->bits == 12)
        return "its JPEG tiles have 12 bit per sample";
    if (d->photometric == PHOTOMETRIC_SEPARATED)
        return "its JPEG tiles are CMYK";
    if (d->bits != 8 || (d->samples != 3 && d->samples != 1) || d->planar || d->depth != 1)
        return "its JPEG tiles are neither grey nor RGB of 8 bit";
    if (d->samples == 1 ? d->photometric != PHOTOMETRIC_MINISBLACK
                        : d->photometric != PHOTOMETRIC_RGB && d->photometric != PHOTOMETRIC_YCBCR)
        return "the colours of its JPEG tiles are neither grey, RGB nor YCbCr";
    return NULL;
}

const struct tile_codec codec_jpeg = {
    .name = "JPEG",
    .compressions = { COMPRESSION_JPEG },
    .gives = CODEC_RGB,
    .why_unfit = why_unfit,
    .begin = jpeg_begin,
    .end = jpeg_end,
    .decode = jpeg_decode,
};
