/* slide_folder.h: the slides of a folder. Files with the extension of a whole slide; if there are
 * none, plain images (.png, .jpg, .jpeg), except those that accompany others or are results: names
 * that end in _mask, _tissue, _overlay, _patches, _label, _labels, _macro or _thumbnail, and all
 * images in a results folder (one with a run.json). A file that is named itself, by a glob or in a
 * CSV is always a slide. */
#ifndef SLIDE_SLIDE_FOLDER_H
#define SLIDE_SLIDE_FOLDER_H
#include <stdbool.h>
#include <stddef.h>
#include "base/err.h"

/* The names, sorted, without the folder; free with folder_names_free. */
bool slide_folder_names(const char *folder, char ***names, size_t *n, struct err *err);

/* The error for a folder without slides. Returns false. */
bool slide_folder_empty(const char *folder, struct err *err);

/* Does the name end like those of slides, other than plain images? */
bool slide_has_extension(const char *path);
#endif
