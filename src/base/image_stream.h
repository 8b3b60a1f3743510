/* image_stream.h: shared by png.c and jpeg.c: images from an open stream. */
#ifndef BASE_IMAGE_STREAM_H
#define BASE_IMAGE_STREAM_H
#include <stdio.h>
#include "base/image.h"

/* The size of a stream in bytes, keeping its position. 0 if unknown. */
static inline double image_stream_bytes(FILE *stream)
{
    off_t here = ftello(stream), end = fseeko(stream, 0, SEEK_END) == 0 ? ftello(stream) : 0;
    return here >= 0 && fseeko(stream, here, SEEK_SET) == 0 ? (double)end : 0;
}

/* path is used in messages only. */
bool image_png_of_stream(FILE *stream, const char *path, int channels, struct image *out,
                         struct err *err);
#endif
