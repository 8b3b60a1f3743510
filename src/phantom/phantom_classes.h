/* phantom_classes.h: a scene -> a GeoJSON file in which a pathologist has drawn the tissue classes
 * of a slide: tumour as it was planted, and broad areas of lymphoid tissue, stroma and fat. Thin
 * septa, borders and mixed areas are left undrawn. */
#ifndef PHANTOM_PHANTOM_CLASSES_H
#define PHANTOM_PHANTOM_CLASSES_H
#include "base/err.h"
#include "phantom/phantom_field.h"

enum { PHANTOM_CLASSES = 4 };

/* Which classes are drawn. n 0: none, the slides have the annotation of phantom_annotation.h. */
struct phantom_classes {
    int n;
    enum phantom_kind kinds[PHANTOM_CLASSES];
    char *names[PHANTOM_CLASSES]; /* static texts */
};

/* "tumor,lymphoid,stroma": two or more of tumor, lymphoid, stroma and fat. NULL gives none. */
bool phantom_classes_parse(const char *text, struct phantom_classes *out, struct err *err);
/* Their names, separated by `between`; out has PHANTOM_CLASSES_ROOM bytes. */
#define PHANTOM_CLASSES_ROOM 64
void phantom_classes_text(const struct phantom_classes *classes, const char *between, char *out);

/* The kinds on a grid of n x n cells of step_px, cell (0, 0) at the corner of the slide; KIND_NONE
 * where they are mixed. kinds [n, n], n = ceil(size / step). The caller's; NULL if no memory. */
uint8_t *phantom_classes_grid(const struct phantom_scene *scene, int64_t *n, int64_t *step_px);

/* Written to a temporary file and renamed. */
bool phantom_classes_write(const char *path, const struct phantom_scene *scene,
                           const struct phantom_classes *classes, struct err *err);
#endif
