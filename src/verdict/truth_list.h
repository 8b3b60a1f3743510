/* truth_list.h: where the truth of every slide is: a folder of annotations or masks named after the
 * slides, or a CSV with the columns slide and annotation (relative to the CSV; empty: no tumour)
 * and optionally mpp. */
#ifndef VERDICT_TRUTH_LIST_H
#define VERDICT_TRUTH_LIST_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "annotation/classes.h"
#include "base/err.h"

struct truth_entry {
    char *slide; /* name, without folder, extension and a final _mask */
    char *path;  /* annotation or mask; NULL: no tumour */
    double mpp;  /* um per level-0 px; 0: unknown */
};

struct truth_list {
    const char *source; /* as given; the caller's */
    bool lists_all;     /* a CSV names every slide; a folder only those with tumour */
    struct truth_entry *entries;
    size_t n;                          /* sorted by slide, each once */
    const struct class_map *class_map; /* what drawn classes mean; the caller's */
};

/* *out is the caller's; free with truth_list_free. A folder may contain .xml, .json, .geojson,
 * .annotations, .png, .tif and .tiff. Annotation classes that are not mapped are rejected here;
 * class_map may be NULL. */
bool truth_list_read(const char *path, const char *slide_column, const struct class_map *class_map,
                     struct truth_list *out, struct err *err);
extern const char *const truth_endings[]; /* of truth files; NULL-terminated */
/* Is this truth file an image rather than an annotation? */
bool truth_is_mask(const char *path);
void truth_list_free(struct truth_list *list); /* also fine on a zeroed struct */
/* NULL if there is none. */
const struct truth_entry *truth_list_find(const struct truth_list *list, const char *slide);

/* The truth of a slide that has a heatmap: *entry NULL if nothing is drawn on it. A slide that a
 * CSV does not list is an error or, with allow_missing, *skipped. */
bool truth_list_entry(const struct truth_list *list, const char *slide, bool allow_missing,
                      const struct truth_entry **entry, bool *skipped, struct err *err);
/* Afterwards: every slide of the truth has a heatmap, else it is an error or, with allow_missing,
 * counted in *left_out; at least one has. name(slides, i) is the slide of heatmap i of n. */
bool truth_list_check(const struct truth_list *list, const void *slides, size_t n,
                      const char *(*name)(const void *slides, size_t i), bool allow_missing,
                      int64_t *left_out, struct err *err);
#endif
