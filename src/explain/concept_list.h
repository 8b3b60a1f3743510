/* concept_list.h: concepts by name, and the value that each has for a patch:
 *
 *   nuclei.count                         nuclei in the patch
 *   nuclei.<feature>.<mean|std|sum>      of a feature of nuclei.h, over the nuclei of the patch
 *   colour.<red|green|blue|brightness|saturation>   means over the pixels, 0 to 255
 *   colour.hematoxylin                   mean optical density of haematoxylin
 *   quality.pen                          share of pixels under pen marks (tissue/method.h)
 *   random                               a random number: a control that nothing can learn
 *   <column>                             of a table: numbers, or yes and no
 *
 * Measured on the patch as it is stored, before it is prepared for the network. */
#ifndef EXPLAIN_CONCEPT_LIST_H
#define EXPLAIN_CONCEPT_LIST_H
#include <stdint.h>
#include "base/csv.h"
#include "base/image.h"
#include "nuclei/nuclei.h"

enum concept_source {
    SOURCE_COUNT,
    SOURCE_NUCLEI,
    SOURCE_COLOUR,
    SOURCE_PEN,
    SOURCE_RANDOM,
    SOURCE_TABLE,
};
enum concept_summary { SUMMARY_MEAN, SUMMARY_STD, SUMMARY_SUM };
enum concept_colour {
    COLOUR_RED,
    COLOUR_GREEN,
    COLOUR_BLUE,
    COLOUR_BRIGHTNESS,
    COLOUR_SATURATION,
    COLOUR_HEMATOXYLIN,
    COLOURS
};

struct concept {
    char *name;
    enum concept_source source;
    int which; /* enum nucleus_feature, enum concept_colour, or column of the table */
    enum concept_summary summary;
    bool answers; /* yes or no: values are 1 or 0 */
};

#define CONCEPT_MOST 64

struct concept_list {
    struct concept items[CONCEPT_MOST];
    int n;
    struct concept_table *table; /* NULL: none */
    bool needs_nuclei;           /* one of them does */
};

/* names: separated by commas; NULL: CONCEPT_DEFAULTS or, with a table, all of its columns and
 * `random`. table: path of a CSV file, or NULL. Errors: a name that is neither (with the nearest),
 * a cell that is neither a number nor yes or no. *out is the caller's; free with
 * concept_list_free, also after a failure. */
#define CONCEPT_DEFAULTS                                                                           \
    "nuclei.count,nuclei.area.mean,nuclei.area.std,nuclei.eccentricity.mean,"                      \
    "nuclei.hematoxylin.mean,nuclei.contrast.mean,nuclei.correlation.mean,colour.brightness,"      \
    "colour.saturation,random"
bool concept_list_make(const char *names, const char *table, struct concept_list *out,
                       struct err *err);
void concept_list_free(struct concept_list *list);

/* A patch, for its values. */
struct concept_patch {
    const char *name; /* as in tables of `model run`: "a.png", "store.h5 patch 12" */
    const char *slide;
    int64_t x_l0, y_l0; /* -1: none */
    const struct image *image;
    double mpp;                         /* um/px; needed for nuclei */
    const struct nuclei_labels *labels; /* of the nuclei; NULL: they are found */
    uint64_t seed;
};
/* values [list->n]; NaN: the patch has none. Thread-safe. */
bool concept_measure(const struct concept_list *list, const struct concept_patch *patch,
                     double *values, struct err *err);

/* --- the table (concept_table.c) --- */

/* Rows are found by a column sample, image, name or file (a patch's name, that without its folder,
 * or also without its ending), or by columns slide, x and y. */
struct concept_table;
bool concept_table_read(const char *path, struct concept_table **out, struct err *err);
void concept_table_free(struct concept_table *table); /* NULL-safe */
/* The columns that can be concepts: the number of a name, or -1. */
int concept_table_column(const struct concept_table *table, const char *name);
/* All of them: *names [*n], the table's; the array is the caller's. */
bool concept_table_columns(const struct concept_table *table, const char ***names, size_t *n,
                           struct err *err);
/* Parses the column. *answers: yes or no, or nothing but 0 and 1. */
bool concept_table_use(struct concept_table *table, int column, bool *answers, struct err *err);
/* The value in the row of this patch; NaN: it has no row, or the cell is empty. */
double concept_table_value(const struct concept_table *table, int column,
                           const struct concept_patch *patch);
/* Whether the patch has a row at all. */
bool concept_table_has(const struct concept_table *table, const struct concept_patch *patch);
const char *concept_table_path(const struct concept_table *table);
#endif
