/* heatmap.h: scores on a slide: a grid of numbers with the facts that place them. On disk two files
 * in the slide's folder: heatmap.npy, float32 [height, width, classes], row-major, NaN where there
 * is no tissue; and heatmap.json, the facts. heatmap.json is written last: if it exists, the
 * heatmap is complete.
 *
 * Score (column, row) belongs to the window of `window` raster px whose centre is the raster px
 * (origin_x + column * stride, origin_y + row * stride); a window of an even side n centred on x
 * covers [x - n/2, x + n/2). It represents the cell of stride x stride px around it: cell (0, 0)
 * starts at the slide's top-left corner. The raster is the slide at the resolution the network
 * sees: a raster px is `downsample` level-0 px.
 *
 * Nothing here holds a heatmap in memory: a slide of 100,000 x 100,000 px at stride 1 has 10^10
 * cells. Readers take rows, as many at a time as they like. */
#ifndef HEATMAP_HEATMAP_H
#define HEATMAP_HEATMAP_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "base/identity.h"
#include "stain/stain.h"

/* How the scores of a dense run differ from those of the sliding window, on random windows. */
struct heatmap_check {
    int64_t windows; /* 0: not measured (window mode, or a network for which the two are equal) */
    /* for a number, in place of probabilities: its place in the range, 0 to 1 */
    double r;              /* correlation of the probabilities */
    double mean, p95, max; /* of |difference of probabilities| */
    double flipped;        /* share of decisions at 0.5 that differ */
    int64_t fitted_on;     /* other windows that the calibration was fitted on; 0: none was */
};

/* Of a model that predicts a number instead of scores: its one class is the number's name. */
struct heatmap_number {
    double min, max; /* a range for colours; min < max, or both 0: the heatmap holds scores */
    char unit[32];   /* "" if none is known */
};

/* The grid covers the raster: width is its width over stride, rounded up, and so is height.
 * n_classes is at least 1; scores are in [0, 1] (numbers: any), or NaN in all classes of a cell. */
struct heatmap_info {
    char *slide, *path;          /* name and absolute path */
    int64_t width_l0, height_l0; /* of the slide */
    double mpp_l0;               /* um per level-0 px; 0 if unknown */
    double mpp;                  /* um per raster px; 0 if unknown */
    double downsample;           /* level-0 px per raster px */
    int64_t stride;              /* raster px from score to score */
    int64_t origin_x, origin_y;  /* raster px, centre of the first window */
    int64_t window;              /* side of the window, raster px */
    int64_t width, height;       /* of the grid */
    int64_t n_classes;           /* 1 (a sigmoid) or more (they sum to 1) */
    char **class_names;          /* [n_classes] */
    struct heatmap_number number;
    int64_t scored;             /* cells that are not NaN */
    char *mode;                 /* "dense" or "window" */
    char *models;               /* "run1 (resnet18)", with " + " between several */
    char *model_hash;           /* 16 hex digits of all models: layers, weights, classes */
    char *options;              /* everything that determines the scores, in one line */
    char inputs[INPUTS_ROOM];   /* the files that it was made from */
    struct stain_fit stain;     /* of the slide; method STAIN_NONE: not normalised */
    struct heatmap_check check; /* as used, that is after calibration */
    struct heatmap_check raw;   /* the same before calibration; windows 0: not calibrated */
};

/* The class that a single picture or list of lesions is made from: the last one. */
static inline int64_t heatmap_main_class(const struct heatmap_info *info)
{
    return info->n_classes - 1;
}

/* The class with the highest score, the first of several; scores [n_classes]. */
int64_t heatmap_winner(const float *scores, int64_t n_classes);
/* Are there so many classes that a picture shows which one has the highest score? */
static inline bool heatmap_has_winners(const struct heatmap_info *info)
{
    return info->n_classes > 2;
}

static inline bool heatmap_is_number(const struct heatmap_info *info)
{
    return info->number.min < info->number.max;
}
/* The range of the colours: that of the number, or 0 to 1. */
static inline struct heatmap_number heatmap_range(const struct heatmap_info *info)
{
    return heatmap_is_number(info) ? info->number : (struct heatmap_number){ .max = 1 };
}
/* "prob_<class>", or the name of a number: a column or measurement. The caller's; NULL if no
 * memory. */
char *heatmap_column(const struct heatmap_info *info, int64_t class_index);
/* Refuses a heatmap of a number; `what` needs scores: "classify". */
bool heatmap_need_scores(const struct heatmap_info *info, const char *what, struct err *err);

/* The names of the classes with commas between them, as far as there is room. */
void heatmap_list_classes(const struct heatmap_info *info, char *out, size_t room);
/* A class by its name, or by its number from 0; an error lists the names. name NULL: the main
 * class.
 */
bool heatmap_find_class(const struct heatmap_info *info, const char *name, int64_t *out,
                        struct err *err);

/* The cell of a score in level-0 px, clipped to the slide. */
struct heatmap_cell {
    int64_t x_l0, y_l0, width_l0, height_l0;
};
struct heatmap_cell heatmap_cell(const struct heatmap_info *info, int64_t column, int64_t row);

struct heatmap;

/* path: heatmap.npy or its folder. All facts are checked, scores are not read: well below 1 ms.
 * *out is the caller's; close with heatmap_close. */
bool heatmap_open(const char *path, struct heatmap **out, struct err *err);
/* The same where heatmap.json has been read already: takes what `info` owns, and zeroes it. */
bool heatmap_open_scores(const char *folder, struct heatmap_info *info, struct heatmap **out,
                         struct err *err);
void heatmap_close(struct heatmap *heatmap); /* NULL-safe */
const struct heatmap_info *heatmap_info(const struct heatmap *heatmap);

/* Rows [row, row + n) to out [n, width, classes]. Thread-safe. */
bool heatmap_read_rows(const struct heatmap *heatmap, int64_t row, int64_t n, float *out,
                       struct err *err);
/* Rows that fit into `bytes`; at least 1. */
int64_t heatmap_rows_in(const struct heatmap_info *info, int64_t bytes);

/* *out is the caller's; free with heatmap_info_free. */
bool heatmap_info_copy(const struct heatmap_info *info, struct heatmap_info *out, struct err *err);
void heatmap_info_free(struct heatmap_info *info); /* also fine on a zeroed struct */

/* --- writing --- */

struct heatmap_writer;
/* Both files beside their final names. info is copied (scored is counted). */
bool heatmap_create(const char *folder, const struct heatmap_info *info,
                    struct heatmap_writer **out, struct err *err);
/* The next n rows [n, width, classes]. */
bool heatmap_write_rows(struct heatmap_writer *writer, const float *rows, int64_t n,
                        struct err *err);
/* All rows were written: syncs and renames, the JSON last. The writer is freed in any case. */
bool heatmap_commit(struct heatmap_writer *writer, struct err *err);
void heatmap_discard(struct heatmap_writer *writer); /* NULL-safe */
#endif
