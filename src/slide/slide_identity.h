/* slide_identity.h: identifies a slide's content (base/identity.h). */
#ifndef SLIDE_SLIDE_IDENTITY_H
#define SLIDE_SLIDE_IDENTITY_H
#include "base/identity.h"

/* A bounded read, a few milliseconds for a slide of any size: a sample of the file; for a TIFF also
 * the sizes of all its tiles and the pixels of its smallest levels, as stored; for a slide whose
 * pixels are in other files (MIRAX, Hamamatsu VMS and VMU, a DICOM series), the sizes and a sample
 * of these. */
bool slide_identity(const char *path, struct identity *out, struct err *err);
#endif
