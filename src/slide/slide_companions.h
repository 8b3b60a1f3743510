/* slide_companions.h: files beside a slide that hold its pixels, as part of its identity. Private
 * to this folder. */
#ifndef SLIDE_SLIDE_COMPANIONS_H
#define SLIDE_SLIDE_COMPANIONS_H
#include "base/identity.h"

/* Adds sizes and samples of: the folder a/ of a.mrxs (MIRAX); the images that a .vms or .vmu names
 * (Hamamatsu); the other .dcm files of the same series in the folder (DICOM). At most
 * SLIDE_COMPANIONS_MAX files; those that are missing are left to the reader. */
#define SLIDE_COMPANIONS_MAX 512
bool slide_companions_add(const char *path, struct identity *out, struct err *err);
#endif
