/* annotations.h: finds the annotation file of a slide, and checks that all classes are known. */
#ifndef PATCH_ANNOTATIONS_H
#define PATCH_ANNOTATIONS_H
#include "annotation/annotation.h"
#include "slide/slide_list.h"

/* Is this a folder, the annotation of the only slide, or a file that covers many slides (COCO)?
 * source may be NULL. */
bool annotations_check_source(const char *source, size_t n_slides, struct err *err);

/* The slide list's annotation, or the file in the folder (NULL: no folder) that is named after the
 * slide (or the folder itself if it is a file): <slide>.xml, .json, .geojson, .annotations or .png,
 * also with the slide's extension kept (a.svs.geojson), or <slide>/regions.geojson, as predict
 * writes it. Two of them are an error. *out is the caller's; NULL and true if the slide has none.
 */
bool annotations_path(const struct slide_entry *entry, const char *folder, char **out,
                      struct err *err);

/* Rejects classes that have no meaning, before any slide is read. done [slides->n]: slides to skip.
 */
bool annotations_check(const struct slide_list *slides, const char *folder, const bool *done,
                       const struct class_map *map, struct err *err);
#endif
