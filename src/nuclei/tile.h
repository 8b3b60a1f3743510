/* tile.h: a tile of a slide -> its nuclei as rows of the table and as features of GeoJSON. */
#ifndef NUCLEI_TILE_H
#define NUCLEI_TILE_H
#include "nuclei/nuclei_slide.h"

struct nuclei_tile_text {
    int64_t n;
    char *csv;     /* n lines, each without the label and its comma */
    char *geojson; /* as between the brackets of "features", without a comma before or after */
    size_t csv_bytes, geojson_bytes;
    struct nuclei_labels labels; /* of this tile's nuclei alone, if they are needed */
    int64_t left, top;           /* px of the raster of their first pixel */
};

/* Thread-safe. *out is the caller's; free with nuclei_tile_free. */
bool nuclei_tile_make(const struct nuclei_slide *slide, int64_t tile, int worker,
                      struct nuclei_tile_text *out, struct err *err);
void nuclei_tile_free(struct nuclei_tile_text *text); /* also fine on a zeroed struct */

/* The header of the table, with its end of line. */
void nuclei_table_header(bool kinds, FILE *stream);
/* Columns between the label and the first feature. */
enum { NUCLEI_PLACE_COLUMNS = 4 };
#endif
