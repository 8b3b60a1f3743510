/* tile_decoder.c: the bytes of one JPEG tile -> RGB, straight into the caller's rows. One libjpeg
 * object per thread; the directory's tables are parsed once and stay in it. */
#include "slide/tiff_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <jerror.h>
#include "base/jpeg_failure.h"

#define ROWS_AT_ONCE 16

struct tile_decoder {
    const struct tiff_file *file;
    const struct tiff_directory *directory;
    struct jpeg_decompress_struct jpeg;
    struct jpeg_failure failure; /* also of a warning, where pixels were made up: OpenSlide refuses
                                    such a tile, and so do we */
    struct jpeg_source_mgr input;
    bool created; /* jpeg is alive */
    bool clean;   /* its tables are the directory's and nothing else */
    uint8_t *bytes;
    size_t room;
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

static void input_from(struct tile_decoder *decoder, const uint8_t *bytes, size_t size)
{
    decoder->input = (struct jpeg_source_mgr){ .next_input_byte = bytes,
                                               .bytes_in_buffer = size,
                                               .init_source = input_nothing,
                                               .fill_input_buffer = input_ended,
                                               .skip_input_data = input_skip,
                                               .resync_to_restart = jpeg_resync_to_restart,
                                               .term_source = input_nothing };
    decoder->jpeg.src = &decoder->input;
}

/* A fresh libjpeg object with the directory's tables loaded. May escape. */
static void begin_clean(struct tile_decoder *decoder)
{
    if (decoder->created)
        jpeg_destroy_decompress(&decoder->jpeg);
    decoder->created = false;
    decoder->jpeg.err = jpeg_failure_begin(&decoder->failure);
    jpeg_create_decompress(&decoder->jpeg);
    decoder->created = true;
    if (decoder->directory->tables) {
        input_from(decoder, decoder->directory->tables, decoder->directory->tables_size);
        if (jpeg_read_header(&decoder->jpeg, FALSE) != JPEG_HEADER_TABLES_ONLY)
            ERREXIT(&decoder->jpeg, JERR_NO_SOI);
    }
    decoder->clean = true;
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
static bool decode_rows(struct tile_decoder *decoder, size_t size, uint8_t *dst,
                        int64_t stride_bytes)
{
    const struct tiff_directory *d = decoder->directory;
    struct jpeg_decompress_struct *jpeg = &decoder->jpeg;
    input_from(decoder, decoder->bytes, size);
    jpeg_read_header(jpeg, TRUE);
    jpeg->jpeg_color_space = d->ycbcr ? JCS_YCbCr : JCS_RGB;
    jpeg->out_color_space = JCS_EXT_RGB;
    /* before jpeg_start_decompress, which allocates the size the tile claims */
    if (jpeg->image_width != (JDIMENSION)d->tile_width ||
        jpeg->image_height != (JDIMENSION)d->tile_height) {
        snprintf(decoder->failure.text, sizeof decoder->failure.text,
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
static bool decode_bytes(struct tile_decoder *decoder, size_t size, uint8_t *dst,
                         int64_t stride_bytes)
{
    if (setjmp(decoder->failure.jump)) {
        decoder->clean = false;
        return false;
    }
    if (!decoder->clean)
        begin_clean(decoder);
    if (brings_tables(decoder->bytes, size))
        decoder->clean = false;
    bool ok = decode_rows(decoder, size, dst, stride_bytes);
    jpeg_abort_decompress(&decoder->jpeg);
    return ok;
}

static bool read_bytes(struct tile_decoder *decoder, uint64_t offset, size_t size, struct err *err)
{
    if (size > decoder->room) {
        free(decoder->bytes);
        decoder->room = 0;
        decoder->bytes = malloc(size + size / 4);
        if (!decoder->bytes)
            return err_memory(err, "a tile");
        decoder->room = size + size / 4;
    }
    for (size_t done = 0; done < size;) {
        ssize_t n =
            pread(decoder->file->fd, decoder->bytes + done, size - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(err, ERR_IO, "cannot read a tile: %s", strerror(errno));
        if (n == 0)
            return err_set(err, ERR_FORMAT, "the file ends inside a tile (truncated?)");
        done += (size_t)n;
    }
    return true;
}

bool tile_decode(struct tile_decoder *decoder, int64_t column, int64_t row, uint8_t *dst,
                 int64_t stride_bytes, struct err *err)
{
    const struct tiff_directory *d = decoder->directory;
    int64_t i = row * d->columns + column;
    if (d->sizes[i] == 0) {
        for (int64_t y = 0; y < d->tile_height; y++)
            memset(dst + y * stride_bytes, 255, (size_t)d->tile_width * 3);
        return true;
    }
    if (!read_bytes(decoder, d->offsets[i], d->sizes[i], err))
        return false;
    if (!decode_bytes(decoder, d->sizes[i], dst, stride_bytes))
        return err_set(err, ERR_FORMAT, "damaged tile: %s", decoder->failure.text);
    return true;
}

bool tile_decoder_new(const struct tiff_file *file, const struct tiff_directory *directory,
                      struct tile_decoder **out, struct err *err)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return err_memory(err, "a tile decoder");
    (*out)->file = file;
    (*out)->directory = directory;
    return true;
}

void tile_decoder_free(struct tile_decoder *decoder)
{
    if (!decoder)
        return;
    if (decoder->created)
        jpeg_destroy_decompress(&decoder->jpeg);
    free(decoder->bytes);
    free(decoder);
}
