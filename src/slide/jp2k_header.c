/* jp2k_header.c: see jp2k_header.h. Markers and boxes as in ISO/IEC 15444-1, annexes A and I. */
#include "slide/jp2k_header.h"

#include <string.h>

#define MAX_TILES 1024 /* of a codestream; OpenJPEG allocates 6 KB for each */
#define MIN_PRECINCT_BITS                                                                          \
    4 /* a precinct is at least 16 px; OpenJPEG allocates 100 bytes for each */
#define MAX_HALVINGS 32

enum marker {
    MARKER_SOC = 0xFF4F,
    MARKER_SIZ = 0xFF51,
    MARKER_COD = 0xFF52,
    MARKER_COC = 0xFF53,
    MARKER_SOT = 0xFF90,
    MARKER_SOD = 0xFF93,
    MARKER_EOC = 0xFFD9,
};

struct bytes {
    const uint8_t *at;
    size_t size;
};

static uint32_t big_endian(const uint8_t *at, int n)
{
    uint32_t value = 0;
    while (n-- > 0)
        value = value << 8 | *at++;
    return value;
}

static bool damaged(struct err *err, const char *what)
{
    return err_set(err, ERR_FORMAT, "%s", what);
}

/* The next box: its type and content. */
static bool next_box(struct bytes *rest, uint32_t *type, struct bytes *content)
{
    if (rest->size < 8)
        return false;
    uint64_t length = big_endian(rest->at, 4);
    size_t head = 8;
    *type = big_endian(rest->at + 4, 4);
    if (length == 1 && rest->size >= 16) {
        length = (uint64_t)big_endian(rest->at + 8, 4) << 32 | big_endian(rest->at + 12, 4);
        head = 16;
    }
    if (length == 0)
        length = rest->size;
    if (length < head || length > rest->size)
        return false;
    *content = (struct bytes){ rest->at + head, (size_t)length - head };
    rest->at += length;
    rest->size -= (size_t)length;
    return true;
}

#define BOX(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (d))

static bool read_boxes(struct bytes file, struct jp2k_header *out, struct err *err)
{
    struct bytes box, inner;
    uint32_t type = 0, inner_type = 0;
    while (next_box(&file, &type, &box)) {
        if (type == BOX('j', 'p', '2', 'c')) {
            out->codestream = box.at;
            out->size = box.size;
            return true;
        }
        while (type == BOX('j', 'p', '2', 'h') && next_box(&box, &inner_type, &inner)) {
            if (inner_type == BOX('p', 'c', 'l', 'r'))
                return damaged(err, "it has a palette, which is not supported");
            if (inner_type == BOX('c', 'o', 'l', 'r') && inner.size >= 7 && inner.at[0] == 1)
                out->sycc = big_endian(inner.at + 3, 4) == 18;
        }
    }
    return damaged(err, "no codestream in it");
}

/* Image and tile size. */
static bool read_siz(struct bytes siz, struct jp2k_header *out, struct err *err)
{
    if (siz.size < 36)
        return damaged(err, "the header is truncated");
    uint32_t at[8]; /* Xsiz, Ysiz, XOsiz, YOsiz, XTsiz, YTsiz, XTOsiz, YTOsiz */
    for (int i = 0; i < 8; i++)
        at[i] = big_endian(siz.at + 2 + 4 * i, 4);
    uint32_t n = big_endian(siz.at + 34, 2);
    if (n < 1 || n > JP2K_MAX_COMPONENTS)
        return err_set(err, ERR_FORMAT, "it has %u components", n);
    if (siz.size < 36 + 3 * (size_t)n)
        return damaged(err, "the header is truncated");
    if (at[0] == 0 || at[1] == 0 || at[4] == 0 || at[5] == 0)
        return damaged(err, "the image has no size");
    if (at[2] || at[3] || at[6] || at[7])
        return damaged(err, "the image has an offset");
    out->width = at[0];
    out->height = at[1];
    int64_t across = (out->width + at[4] - 1) / at[4], down = (out->height + at[5] - 1) / at[5];
    if (across > MAX_TILES || down > MAX_TILES || across * down > MAX_TILES)
        return damaged(err, "the image is divided into very many tiles");
    out->n_components = (int)n;
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *component = siz.at + 36 + 3 * i;
        if (component[0] & 0x80)
            return damaged(err, "its samples are signed");
        out->bits[i] = component[0] + 1;
        out->dx[i] = component[1];
        out->dy[i] = component[2];
        if (!component[1] || !component[2])
            return damaged(err, "the header is invalid");
    }
    return true;
}

/* What COD and COC have in common: the number of wavelet levels, and the precincts. */
static bool read_style(struct bytes style, bool precincts, struct jp2k_header *out, struct err *err)
{
    if (style.size < 5)
        return damaged(err, "the header is truncated");
    int halvings = style.at[0];
    if (halvings > MAX_HALVINGS)
        return damaged(err, "the header is invalid");
    out->n_halvings = halvings < out->n_halvings ? halvings : out->n_halvings;
    if (!precincts)
        return true;
    if (style.size < 6 + (size_t)halvings)
        return damaged(err, "the header is truncated");
    for (int i = 0; i <= halvings; i++)
        if ((style.at[5 + i] & 15) < MIN_PRECINCT_BITS || style.at[5 + i] >> 4 < MIN_PRECINCT_BITS)
            return damaged(err, "its precincts are very small");
    return true;
}

static bool read_segment(uint32_t marker, struct bytes content, struct jp2k_header *out,
                         struct err *err)
{
    struct bytes rest = content;
    size_t head = marker == MARKER_COD ? 5 : 2;
    if (marker != MARKER_COD && marker != MARKER_COC)
        return true;
    if (content.size <= head)
        return damaged(err, "the header is truncated");
    rest.at += head;
    rest.size -= head;
    bool precincts = content.at[marker == MARKER_COD ? 0 : 1] & 1;
    return read_style(rest, precincts, out, err);
}

/* The segments up to SOD or the next tile-part; *at is behind the last one then. */
static bool read_segments(struct bytes all, size_t *at, uint32_t *marker, struct jp2k_header *out,
                          struct err *err)
{
    for (;;) {
        if (all.size - *at < 2)
            return damaged(err, "the header is truncated");
        *marker = big_endian(all.at + *at, 2);
        if (*marker == MARKER_SOD || *marker == MARKER_SOT || *marker == MARKER_EOC)
            return true;
        if (*marker < 0xFF00 || all.size - *at < 4)
            return damaged(err, "the header is invalid");
        size_t length = big_endian(all.at + *at + 2, 2);
        if (length < 2 || length > all.size - *at - 2)
            return damaged(err, "the header is truncated");
        if (!read_segment(*marker, (struct bytes){ all.at + *at + 4, length - 2 }, out, err))
            return false;
        *at += 2 + length;
    }
}

/* Main header, then the header of each tile-part, which may override it. */
static bool read_codestream(struct jp2k_header *out, struct err *err)
{
    struct bytes all = { out->codestream, out->size };
    if (all.size < 6 || big_endian(all.at, 2) != MARKER_SOC ||
        big_endian(all.at + 2, 2) != MARKER_SIZ)
        return damaged(err, "not a JPEG 2000 codestream");
    size_t at = 4 + big_endian(all.at + 4, 2);
    if (at < 6 || at > all.size)
        return damaged(err, "the header is truncated");
    if (!read_siz((struct bytes){ all.at + 6, at - 6 }, out, err))
        return false;
    uint32_t marker = 0;
    out->n_halvings = MAX_HALVINGS + 1;
    if (!read_segments(all, &at, &marker, out, err))
        return false;
    if (out->n_halvings > MAX_HALVINGS || marker != MARKER_SOT)
        return damaged(err, "the header is incomplete");
    while (marker == MARKER_SOT) {
        if (all.size - at < 12)
            return damaged(err, "truncated");
        size_t begin = at, length = big_endian(all.at + at + 6, 4);
        at += 12;
        if (!read_segments(all, &at, &marker, out, err))
            return false;
        if (length == 0) /* up to the end */
            length = all.size - begin - 2;
        if (length < at - begin || length > all.size - begin - 2)
            return damaged(err, "truncated");
        at = begin + length;
        marker = big_endian(all.at + at, 2);
    }
    return marker == MARKER_EOC || damaged(err, "its end is damaged or missing");
}

bool jp2k_header_read(const uint8_t *bytes, size_t size, struct jp2k_header *out, struct err *err)
{
    static const uint8_t signature[12] = { 0, 0, 0, 12, 'j', 'P', ' ', ' ', 13, 10, 0x87, 10 };
    *out = (struct jp2k_header){ .codestream = bytes, .size = size };
    if (size >= sizeof signature && memcmp(bytes, signature, sizeof signature) == 0 &&
        !read_boxes((struct bytes){ bytes, size }, out, err))
        return false;
    return read_codestream(out, err);
}
