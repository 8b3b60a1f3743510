/* nuclei_slide.h: one slide on its way to its tables of nuclei. The tissue is covered by tiles of a
 * grid, each looked at with a margin; a nucleus is that of the tile with its centroid. Consecutive
 * tiles form groups; a group is a pure function that writes one part file, and the parts are merged
 * at the end. Neither threads nor groups change a byte.
 *
 * In the folder of the results: <slide>_nuclei.csv, <slide>_nuclei.geojson, <slide>_labels.png (or
 * .npy) for images up to NUCLEI_LABELS_PX, and last <slide>_nuclei.json; until then
 * parts/<slide>/tissue.png and parts/<slide>/<group>.nuclei. */
#ifndef NUCLEI_NUCLEI_SLIDE_H
#define NUCLEI_NUCLEI_SLIDE_H
#include "base/ctx.h"
#include "base/identity.h"
#include "nuclei/labels_in.h"
#include "slide/raster.h"
#include "slide/slide_list.h"
#include "tissue/tissue.h"

#define NUCLEI_LABELS_PX ((int64_t)1 << 26) /* 8192 x 8192: the largest image with labels */

/* Who finds the nuclei of an image, if not nuclei_find. */
struct nuclei_finder {
    /* On any thread; worker is in [0, threads). */
    bool (*find)(void *arg, const struct image *rgb, double mpp, int worker,
                 struct nuclei_labels *out, struct err *err);
    void *arg;
    double mpp;       /* um/px that it needs; 0: any */
    double margin_um; /* how much of the image around a tile its nuclei depend on */
    const char *text; /* what it is, with its version: results of another are not mixed with it */
};

/* Where nuclei are looked for: enum tissue_method, or AUTO: none (everywhere) for plain images and
 * where labels are given, process for slides. */
enum { NUCLEI_TISSUE_AUTO = -1 };

struct nuclei_options {
    struct nuclei_settings settings;
    const struct nuclei_finder *finder; /* NULL: nuclei_find */
    double mpp; /* um/px to work at; 0: the finest level of NUCLEI_FINEST_MPP or more, as it is */
    double slide_mpp;
    const char *cache;
    bool icc;
    int method;         /* of tissue: see above */
    const char *tissue; /* folder of masks instead, of 'microtome tissue'; NULL: none */
    unsigned omit;      /* set of quality_kind */
    const char *labels; /* folder of nuclei to measure instead of finding some; NULL: none */
    bool label_images;  /* write them */
    int64_t tile_px;    /* of the grid, without the margin */
    int64_t group_tiles;
};
#define NUCLEI_FINEST_MPP 0.2
struct nuclei_options nuclei_options_defaults(void);

struct nuclei_tile {
    int64_t x, y, width, height; /* px of the raster, without the margin */
};

enum { NUCLEI_HOW_ROOM = 1024 };

struct nuclei_slide {
    const struct nuclei_options *options;
    const struct slide_entry *entry;
    const char *folder;
    char how[NUCLEI_HOW_ROOM]; /* all options that change the results */
    char inputs[INPUTS_ROOM];
    struct slide *slide;
    struct raster raster;
    double mpp_l0;
    struct nuclei_source *source; /* NULL: nuclei are found */
    struct tissue_mask mask;
    struct nuclei_tile *tiles; /* [n_tiles], with tissue, row by row */
    int64_t n_tiles, n_groups;
    int64_t margin_px;
    bool labelled; /* has a label image, and is therefore one group */
};

/* What is known of a finished slide: <slide>_nuclei.json. */
struct nuclei_summary {
    int64_t n;
    double tissue_mm2;
    double mpp;            /* at which it was looked at */
    int64_t width, height; /* of the raster */
    double downsample;     /* level-0 px per px of the raster */
    int64_t width_l0, height_l0;
    double objective;              /* of level 0 */
    double mean[NUCLEUS_FEATURES]; /* NaN: no nucleus has it */
    double deviation[NUCLEUS_FEATURES];
};

/* Are its results there? Then checks that they were made with these options and from this file. */
bool nuclei_slide_done(const struct nuclei_options *options, const struct slide_entry *entry,
                       const char *folder, bool *done, struct nuclei_summary *out, struct err *err);
/* Removes its results and parts. */
void nuclei_slide_clear(const char *folder, const char *name);

/* Opens the file, finds the tissue (or reads what an earlier run found) and makes the tiles. *out
 * is the caller's; end with nuclei_slide_close, also after a failure. */
bool nuclei_slide_open(const struct nuclei_options *options, const struct slide_entry *entry,
                       const char *folder, const struct ctx *ctx, struct nuclei_slide *out,
                       struct err *err);
void nuclei_slide_close(struct nuclei_slide *slide);

int64_t nuclei_group_tiles(const struct nuclei_slide *slide, int64_t group, int64_t *first);
/* parts/<slide>/<group>.nuclei; the caller's; NULL if no memory. */
char *nuclei_part_path(const char *name, int64_t group);
/* Makes the group's part unless it exists, on all threads; tiles are reported as progress. */
bool nuclei_slide_group(const struct nuclei_slide *slide, int64_t group, const struct ctx *ctx,
                        struct err *err);
/* The size of level 0, and its magnification, from um/px if the file does not say. */
struct nuclei_source_slide nuclei_slide_size(const struct nuclei_slide *slide);
/* All parts -> the results; the parts are removed. */
bool nuclei_slide_merge(const struct nuclei_slide *slide, struct nuclei_summary *out,
                        struct err *err);
#endif
