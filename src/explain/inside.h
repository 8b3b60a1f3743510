/* inside.h: nuclei or areas that somebody outlined -> masks of windows, to ask how much of a map is
 * inside of them. Files are those of nuclei/labels_in.h: GeoJSON in level-0 px, label images,
 * HoVer-Net's JSON. */
#ifndef EXPLAIN_INSIDE_H
#define EXPLAIN_INSIDE_H
#include "base/image.h"

struct inside;

/* path: a file that is used for every window, or a folder with a file for each slide or image, by
 * its name. *out is the caller's; free with inside_free. */
bool inside_new(const char *path, struct inside **out, struct err *err);
void inside_free(struct inside *inside); /* NULL-safe */

/* A window of the slide or image `name`: pixel i is at level-0 x_l0 + (i + 0.5) * step_l0. */
struct inside_window {
    const char *name;
    double x_l0, y_l0, step_l0;
    int64_t width, height;
};
/* mask [height, width]: 1 inside, 0 outside. Fails if the folder has no file of this name. One file
 * is kept in memory, so windows of one slide should follow each other. Thread-safe. */
bool inside_mask(struct inside *inside, const struct inside_window *window, uint8_t *mask,
                 struct err *err);
#endif
