/* phantom_artefacts.h: a scene -> planted artefacts: out-of-focus discs of known sigma, folds, pen
 * strokes and air bubbles, placed in the tissue and apart from each other. They are painted over
 * the slide, and a mask shows where they are. */
#ifndef PHANTOM_PHANTOM_ARTEFACTS_H
#define PHANTOM_PHANTOM_ARTEFACTS_H
#include "base/image.h"
#include "phantom/phantom_draw.h"

/* The values of the mask, as in <slide>_quality.png of 'microtome tissue --quality'. */
enum phantom_artefact_kind { ARTEFACT_BLUR = 1, ARTEFACT_FOLD, ARTEFACT_PEN, ARTEFACT_BUBBLE };

enum {
    MAX_ARTEFACTS = 8,
    ARTEFACT_MARGIN_PX = PHANTOM_TILE_PX, /* an artefact's pixel depends on no others beyond this */
    ARTEFACT_MASK_PX = 32                 /* level-0 pixels per pixel of the mask */
};

struct phantom_artefact {
    enum phantom_artefact_kind kind;
    float x, y;             /* its centre, level-0 px, as all lengths */
    float half_long, reach; /* of a strip: half its length and width; of a disc: the radius */
    float cosine, sine;     /* along a strip */
    float sigma;            /* of the blur; 0: sharp */
    float transmission[3];  /* of ink */
};

struct phantom_artefacts {
    int n;
    struct phantom_artefact items[MAX_ARTEFACTS];
};

/* Removes the scene's own pen and blurred areas, so that the mask shows all there is. */
void phantom_artefacts_place(struct phantom_scene *scene, struct phantom_artefacts *out);

struct phantom_artefact_painter;
/* The caller owns *out; free with phantom_artefact_painter_free. Supports `workers` threads. */
bool phantom_artefact_painter_new(int workers, struct phantom_artefact_painter **out,
                                  struct err *err);
void phantom_artefact_painter_free(struct phantom_artefact_painter *painter); /* NULL-safe */

/* phantom_paint with the artefacts; the rectangle is a tile of the slide's grid. */
void phantom_artefacts_paint(struct phantom_artefact_painter *room, struct phantom_painter *painter,
                             const struct phantom_artefacts *artefacts, int64_t x, int64_t y,
                             int64_t width, int64_t height, uint8_t *px, int64_t stride_bytes,
                             int worker);

/* Which kind covers a point, or 0. */
int phantom_artefact_at(const struct phantom_artefacts *artefacts, float x, float y);
/* The same at the centre of every mask pixel, as a PNG of one channel. */
bool phantom_artefacts_write(const char *path, const struct phantom_artefacts *artefacts,
                             int64_t size_px, struct err *err);
#endif
