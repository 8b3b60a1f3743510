/* slide_identity.h: which slide was it? (base/identity.h) */
#ifndef SLIDE_SLIDE_IDENTITY_H
#define SLIDE_SLIDE_IDENTITY_H
#include "base/identity.h"

/* A bounded read, a few milliseconds for any size of slide: a sample of the file; of a TIFF also
 * the sizes of all its tiles and the pixels of its smallest levels, as they are stored; of a slide
 * whose pixels lie in a folder named after it, the sizes and a sample of the files there. */
bool slide_identity(const char *path, struct identity *out, struct err *err);
#endif
