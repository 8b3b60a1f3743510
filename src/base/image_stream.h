/* image_stream.h: what png.c and jpeg.c share: images from an open stream. */
#ifndef BASE_IMAGE_STREAM_H
#define BASE_IMAGE_STREAM_H
#include <stdio.h>
#include "base/image.h"

/* path only names it in messages. */
bool image_png_of_stream(FILE *stream, const char *path, int channels, struct image *out,
                         struct err *err);
#endif
