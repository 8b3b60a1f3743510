/* preview.h: a sheet of small pictures of a store's patches, for people. */
#ifndef PATCH_PREVIEW_H
#define PATCH_PREVIEW_H
#include "base/err.h"

/* Patches spread evenly over the store, framed by label: red tumour, green normal, grey none;
 * other classes in their colours (base/class_colour.h). */
bool preview_write(const char *store_path, const char *png_path, struct err *err);
#endif
