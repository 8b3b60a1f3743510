/* lesion_finder.h: a heatmap -> a list of lesions. */
#ifndef VERDICT_LESION_FINDER_H
#define VERDICT_LESION_FINDER_H
#include "verdict/heat_field.h"
#include "verdict/lesions.h"

/* Two ways, in columns and rows of the heatmap; lesions_place moves them onto the slide. Some
 * passes over the cells: 0.2 s for 2048 x 2048. */

/* Cells above the threshold, opened and closed with discs, in pieces that touch by edges or
 * corners. A piece has the highest score of its cells and is placed at that cell, or at the one
 * nearest to the middle of the piece if there are several. Highest score first. */
bool lesions_by_components(const struct heat_field *field, double threshold, double open_cells,
                           double close_cells, struct lesion_list *out, struct err *err);

/* The same with their cells. labels [height, width] of the field: 0 is none; items by score, whose
 * place is in columns and rows; right and bottom are one beyond. *out is the caller's; free with
 * lesion_areas_free. */
struct lesion_area {
    struct lesion best;
    int32_t label;
    int64_t left, top, right, bottom; /* columns and rows */
};
struct lesion_areas {
    int32_t *labels;
    struct lesion_area *items;
    int32_t n;
};
bool lesion_areas_find(const struct heat_field *field, double threshold, double open_cells,
                       double close_cells, struct lesion_areas *out, struct err *err);
void lesion_areas_free(struct lesion_areas *areas); /* also fine on a zeroed struct */

/* Repeatedly takes the highest remaining score above `stop` and removes all cells within the
 * radius. Among equals the first in row order. */
bool lesions_by_suppression(const struct heat_field *field, double stop, double radius_cells,
                            struct lesion_list *out, struct err *err);

/* Columns and rows -> level-0 px: the centre of the score's window. */
void lesions_place(struct lesion_list *list, const struct heatmap_info *info);

/* um from cell to cell. *assumed_mpp: um/px are not known; TISSUE_ASSUMED_MPP is used. */
double lesion_cell_um(const struct heatmap_info *info, bool *assumed_mpp);

enum lesion_method { LESIONS_COMPONENTS, LESIONS_SUPPRESSION };
extern const char *const lesion_method_names[]; /* NULL-terminated, in the order of the enum */

/* The same with lengths in um, for either method. */
struct lesion_rules {
    enum lesion_method method;
    double threshold, open_um, close_um; /* components */
    double stop, radius_um;              /* suppression */
};
/* Lesions of a heatmap on the slide. *assumed_mpp: its um/px are not known, and lengths assume
 * TISSUE_ASSUMED_MPP. *out is the caller's; free with lesions_free. */
bool lesions_find(const struct heatmap_info *info, const struct heat_field *field,
                  const struct lesion_rules *rules, struct lesion_list *out, bool *assumed_mpp,
                  struct err *err);
#endif
