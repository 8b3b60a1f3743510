/* part.h: what nuclei_slide.c and part.c share. Private to this folder. */
#ifndef NUCLEI_PART_H
#define NUCLEI_PART_H
#include "nuclei/nuclei_slide.h"

/* Fails if a result was made with other options or from other files. */
bool nuclei_same(const char *path, const char *how_then, const char *inputs_then,
                 const char *how_now, const char *inputs_now, struct err *err);

/* Fails if a file has changed since the slide was opened. */
bool nuclei_slide_hold(const struct nuclei_slide *slide, struct err *err);

/* <slide>_nuclei.json. Reading compares `how`, and the inputs unless they are "". */
bool nuclei_summary_read(const struct nuclei_slide *slide, const char *path,
                         struct nuclei_summary *out, struct err *err);

/* Removes a slide's parts and their folder. */
void nuclei_parts_remove(const char *folder, const char *name);
#endif
