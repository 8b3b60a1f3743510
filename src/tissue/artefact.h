/* artefact.h: folds and air bubbles on an overview. Private to this folder; what the rules find and
 * miss is in docs/tissue.md. */
#ifndef TISSUE_ARTEFACT_H
#define TISSUE_ARTEFACT_H
#include "tissue/focus.h"
#include "tissue/tissue.h"

/* Marks folded tissue with 255 in folds, which has the size of the mask and is all 0. The tissue
 * has its overview. Memory: 12 bytes per 16 x 16 um of slide. */
bool artefact_find_folds(const struct tissue_mask *tissue, struct image *folds, struct err *err);

/* Marks air bubbles, rim and interior, in the same way. focus: of the same tissue. */
bool artefact_find_bubbles(const struct tissue_mask *tissue, const struct focus_map *focus,
                           struct image *bubbles, struct err *err);

/* um per mask pixel, the mean of both directions. */
double artefact_px_um(const struct tissue_mask *tissue);
#endif
