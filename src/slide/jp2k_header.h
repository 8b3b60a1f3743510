/* jp2k_header.h: the header of a JPEG 2000 codestream, read before OpenJPEG sees it: OpenJPEG
 * allocates what a header claims. */
#ifndef SLIDE_JP2K_HEADER_H
#define SLIDE_JP2K_HEADER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

#define JP2K_MAX_COMPONENTS 4

struct jp2k_header {
    const uint8_t *codestream; /* within the bytes given: without the boxes of JP2 */
    size_t size;
    int64_t width, height;
    int n_components;
    int bits[JP2K_MAX_COMPONENTS];
    int dx[JP2K_MAX_COMPONENTS], dy[JP2K_MAX_COMPONENTS]; /* subsampling */
    int n_halvings; /* how many times the image can be halved while it is decoded */
    bool sycc;      /* the boxes of JP2 say that the components are YCbCr */
};

/* A codestream, or a JP2 file. False, with what is wrong, if it is damaged or nothing that a tile
 * may be: more than 4 components, signed ones, an offset, a palette, very many tiles within it or
 * very small precincts. */
bool jp2k_header_read(const uint8_t *bytes, size_t size, struct jp2k_header *out, struct err *err);
#endif
