/* labels_in.h: nuclei that another program or a person outlined -> label images of any window of
 * the slide, to be measured like our own. Recognised by content:
 *   - label images: PNG of 8 or 16 bits, .npy (base/label_image.h), as large as the slide or
 * smaller by one factor;
 *   - GeoJSON outlines in level-0 px: QuPath's detections and cells (their nucleusGeometry where
 *     there is one), StarDist's, ours; features that QuPath calls annotations count only if there
 *     are no detections or cells;
 *   - HoVer-Net's JSON: {"mag": 40, "nuc": {"1": {"contour": [[x, y], ..], "type": 2}, ..}}, whose
 *     contours run through the centres of pixels.
 * A nucleus_source is read-only once open: any number of threads may use it. */
#ifndef NUCLEI_LABELS_IN_H
#define NUCLEI_LABELS_IN_H
#include "nuclei/nuclei.h"

struct nuclei_source;

/* What the file belongs to. */
struct nuclei_source_slide {
    int64_t width_l0, height_l0; /* 0: unknown; label images are then taken as level 0 */
    double objective;            /* magnification of level 0, for "mag"; 0: unknown, the same */
};

/* Reads the whole file. Memory: 4 bytes for each pixel of a label image; of outlines, the file
 * while it is read and then 8 bytes for each point. The caller owns *out; free with
 * nuclei_source_free. */
bool nuclei_source_open(const char *path, const struct nuclei_source_slide *slide,
                        struct nuclei_source **out, struct err *err);
/* Outlines in memory, for fuzzing; path is used in messages only. */
bool nuclei_source_parse(const char *text, size_t size, const char *path,
                         const struct nuclei_source_slide *slide, struct nuclei_source **out,
                         struct err *err);
void nuclei_source_free(struct nuclei_source *source); /* NULL-safe */

int64_t nuclei_source_count(const struct nuclei_source *source);
/* The class of a nucleus in the file ("Tumor"; HoVer-Net's type as a number), "" if it has none. */
const char *nuclei_source_kind(const struct nuclei_source *source, int64_t nucleus);

/* The nuclei at the centres of the window's pixels, level-0 (x_l0 + (i + 0.5) * step_l0, y
 * likewise); where outlines overlap, the later one in the file wins. *out and *nuclei are the
 * caller's:
 * (*nuclei)[label - 1] is the nucleus of the file; NULL: not needed. Parts of a window show the
 * same as the whole, whatever their label numbers. */
bool nuclei_source_window(const struct nuclei_source *source, double x_l0, double y_l0,
                          double step_l0, int64_t width, int64_t height, struct nuclei_labels *out,
                          int64_t **nuclei, struct err *err);

/* The file of a slide in a folder, the first of NAME_labels.png, NAME_labels.npy,
 * NAME_nuclei.geojson (our own results) and NAME.geojson, .json, .npy, .png. The caller owns
 * *path. */
bool nuclei_source_find(const char *folder, const char *name, char **path, struct err *err);
#endif
