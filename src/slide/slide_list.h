/* slide_list.h: the command's operands -> the slides of a cohort. An operand is a slide file, a
 * folder, a glob in quotes, or a CSV (.csv, .tsv) with a header (slide, mpp, label, annotation,
 * patient, node, center, split and any others; only slide is required; relative paths are relative
 * to the CSV). */
#ifndef SLIDE_SLIDE_LIST_H
#define SLIDE_SLIDE_LIST_H
#include <stdbool.h>
#include <stddef.h>
#include "base/err.h"

struct slide_cell {
    char *column, *value;
};

struct slide_entry {
    char *path, *name; /* name is the file's stem; unique within the list */
    double mpp;        /* 0 if not given */
    char *label, *annotation, *patient, *node, *center, *split; /* "" if not given, never NULL */
    struct slide_cell *cells; /* other columns, in the order of the CSV, if not empty */
    size_t n_cells;
    char *origin; /* for messages: "cohort.csv:7", or the path */
};

/* The header of a CSV. */
struct slide_header {
    char *path, **columns;
    size_t n;
};

struct slide_list {
    struct slide_entry *entries;
    size_t n;
    struct slide_header *headers; /* of the CSVs among the operands */
    size_t n_headers;
};

/* Entries from folders and globs are sorted by name. A folder contributes the files with a slide
 * extension. The caller owns *out; free with slide_list_free. */
bool slide_list_read(char *const *operands, int n_operands, struct slide_list *out,
                     struct err *err);
/* A CSV in memory, for fuzzing; path is used in messages and as the base of relative paths. */
bool slide_list_parse(const char *text, size_t size, const char *path, struct slide_list *out,
                      struct err *err);

/* How a run opens its slides. */
struct slide_access {
    double mpp;          /* --slide-mpp, for all slides; 0: not given */
    const char *cache;   /* --cache: folder for tile caches; NULL: not given */
    int64_t image_bytes; /* of slide_set_image_bytes; 0: not given */
    const char *results; /* the run's results, which contain the folder cache/ then; NULL: the
                            user's cache (slide_set_cache) */
    bool icc;            /* --icc: colours are converted to sRGB (slide_use_icc) */
};

/* Opens a slide of a list for work that measures in um: slide_open, with access->mpp > 0
 * taking precedence over the list, and the list over the file. It rejects a um/px
 * that no slide has (outside 0.01 to 100), a value in the list more than twice or less than half of
 * the file's, and pixels that are not square (by more than 1 %) if no um/px is given. The caller
 * owns *out; close with slide_close. */
struct slide;
bool slide_open_entry(const struct slide_entry *entry, const struct slide_access *access,
                      struct slide **out, struct err *err);
/* Warns if --slide-mpp differs as much from the value in the file, and if --icc finds no profile.
 */
struct console;
void slide_warn(const struct slide *slide, struct console *console);

/* Does every CSV of the list have the column? Otherwise, or if there is no CSV, an error that names
 * the option, the columns and the nearest one. Case matters only between columns that differ in
 * nothing else. */
bool slide_list_check_column(const struct slide_list *list, const char *option, const char *column,
                             struct err *err);
/* What the CSV says of a slide in any of its columns but mpp; "" if nothing. */
const char *slide_entry_value(const struct slide_entry *entry, const char *column);
/* The same as a finite number; *given: false if the cell is empty. The error names the line. */
bool slide_entry_number(const struct slide_entry *entry, const char *column, double *out,
                        bool *given, struct err *err);
/* Takes the labels from another column (--label-column); NULL: they stay as they are. */
bool slide_list_label_by(struct slide_list *list, const char *column, struct err *err);

/* Saves a list and reads it back unchanged: relative paths stay relative to the working directory
 * of the command, not to the CSV. */
bool slide_list_save(const struct slide_list *list, const char *path, struct err *err);
bool slide_list_load(const char *path, struct slide_list *out, struct err *err);
void slide_list_free(struct slide_list *list);
#endif
