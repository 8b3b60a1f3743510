/* export.h: a heatmap -> a file that another program or a person reads. An exporter is one file
 * export_<name>.c that defines one struct exporter; exporters.c lists them. */
#ifndef HEATMAP_EXPORT_H
#define HEATMAP_EXPORT_H
#include "base/ctx.h"
#include "heatmap/heatmap.h"
#include "slide/slide.h"

enum export_regions_rule {
    REGIONS_AUTO,      /* of more than two classes, unless one is chosen: the winner */
    REGIONS_THRESHOLD, /* where the score of a class reaches the threshold: may overlap */
    REGIONS_WINNER,    /* where a class has the highest score: no two overlap */
};

struct export_options {
    double threshold; /* of regions; 0.5 */
    enum export_regions_rule regions;
    const char *class_name; /* of regions and the overlay, or its number; NULL: of up to two classes
                             * the last, otherwise all */
    int64_t tile_px;        /* side of a tile in tiles.csv and tiles.geojson, raster px, rounded up
                             * to whole cells: its score is the mean of its cells; 0: the window */
    int64_t memory_bytes;   /* that an exporter may take, whatever the size of the heatmap */
};
struct export_options export_defaults(void);

struct export_request {
    const struct heatmap *heatmap;
    struct slide *slide; /* for its overview; NULL if scores come from a patch store */
    const struct export_options *options;
};

struct exporter {
    const char *name;  /* as in --export: "ome-tiff" */
    const char *file;  /* in the slide's folder: "heatmap.ome.tif" */
    const char *help;  /* what it is, one line, no full stop */
    bool needs_slide;  /* is skipped if there is none */
    bool needs_scores; /* a heatmap of a number is refused */
    /* Writes path beside and renamed. Rows are streamed; the same heatmap gives the same bytes. */
    bool (*write)(const struct export_request *request, const char *path, const struct ctx *ctx,
                  struct err *err);
};

/* NULL-terminated. */
extern const struct exporter *const exporters[];

/* --- all exports of a heatmap, in its folder --- */

/* folder/exports.json keeps the options that the files were made with: with others they count as
 * missing and are made again. list is NULL-terminated. */
bool exports_exist(const char *folder, const struct exporter *const *list, bool has_slide,
                   const struct export_options *options);
/* Writes those of the list that are missing. */
bool exports_write(const char *folder, const struct exporter *const *list,
                   const struct export_request *request, const struct ctx *ctx, struct err *err);
void exports_remove(const char *folder);
#endif
