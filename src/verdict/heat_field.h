/* heat_field.h: one class of a heatmap in memory, and finding the heatmaps a user names. */
#ifndef VERDICT_HEAT_FIELD_H
#define VERDICT_HEAT_FIELD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "heatmap/heatmap.h"

/* A cell is one score. */
struct heat_field {
    float *values; /* [height, width], 0 where there is no tissue */
    int64_t width, height;
    int64_t tissue; /* cells that were scored */
};

/* The class by name or number; NULL: the last one, as long as there are no more than two. */
bool heat_class(const struct heatmap *heatmap, const char *name, int64_t *index, struct err *err);

/* A heatmap of more than 2^28 cells is rejected (1 GiB; a slide of 100,000 px at stride 16 has a
 * seventh of that). Reads all scores: 14 ms for 2048 x 2048 cells. *out is the caller's;
 * free(out->values). */
bool heat_field_read(const struct heatmap *heatmap, int64_t class_index, struct heat_field *out,
                     struct err *err);

/* Folders that contain a heatmap: each path that is one, and those directly below each other path,
 * sorted by name; *folders [*n] are the caller's, free with folder_names_free. unfinished counts
 * the folders below that have a plan but no heatmap yet. */
bool heat_list(char *const *paths, int n_paths, char ***folders, size_t *n, size_t *unfinished,
               struct err *err);
#endif
