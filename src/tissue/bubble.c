/* bubble.c: artefact_find_bubbles. The edge of a bubble bends light out of the objective: a dark,
 * closed, round rim. Under it the tissue is out of focus; within a circle drawn with a pen it is
 * sharp. */
#include "tissue/artefact.h"

#include <stdlib.h>
#include <string.h>
#include "stain/colour.h"
#include "tissue/morphology.h"

/* Chosen with bench/quality.py. */
#define RIM_VALUE 100 /* of 255: a rim is darker */
#define MIN_DIAMETER_UM 100.0
#define MAX_DIAMETER_UM 6000.0
#define LEAST_ASPECT 0.6
#define LEAST_ROUNDNESS 0.85 /* area relative to the ellipse in its bounding box */
#define LEAST_INTERIOR 0.25  /* of its area */
#define LEAST_BLURRED 0.5    /* of the tissue under it */

struct piece {
    int64_t x0, y0, x1, y1;
    int64_t area, interior, tissue, blurred; /* px */
};

static void add_px(struct piece *piece, int64_t x, int64_t y)
{
    piece->x0 = piece->area == 0 || x < piece->x0 ? x : piece->x0;
    piece->y0 = piece->area == 0 || y < piece->y0 ? y : piece->y0;
    piece->x1 = x >= piece->x1 ? x + 1 : piece->x1;
    piece->y1 = y + 1;
    piece->area++;
}

/* The variance of the cell under a mask pixel. */
static float variance_at(const struct tissue_mask *tissue, const struct focus_map *focus, int64_t x,
                         int64_t y)
{
    int64_t column = (int64_t)(((double)x + 0.5) * tissue->l0_per_px_x / focus->cell_l0);
    int64_t row = (int64_t)(((double)y + 0.5) * tissue->l0_per_px_y / focus->cell_l0);
    column = column < focus->columns ? column : focus->columns - 1;
    row = row < focus->rows ? row : focus->rows - 1;
    return focus->variance[row * focus->columns + column];
}

static bool is_bubble(const struct piece *p, double px_um)
{
    double width = (double)(p->x1 - p->x0), height = (double)(p->y1 - p->y0);
    double longer = width > height ? width : height, shorter = width + height - longer;
    double ellipse = 3.14159265358979 / 4 * width * height;
    return longer * px_um >= MIN_DIAMETER_UM && longer * px_um <= MAX_DIAMETER_UM &&
           shorter >= LEAST_ASPECT * longer && (double)p->area >= LEAST_ROUNDNESS * ellipse &&
           (double)p->interior >= LEAST_INTERIOR * (double)p->area && p->tissue > 0 &&
           (double)p->blurred >= LEAST_BLURRED * (double)p->tissue;
}

/* Labels of the filled rims, and what is known of each. */
static bool look_at_pieces(const struct tissue_mask *tissue, const struct focus_map *focus,
                           const struct image *rims, const struct image *filled, int32_t **labels,
                           struct piece **pieces, struct err *err)
{
    int32_t n = 0;
    if (!morphology_label(filled, true, labels, &n, err))
        return false;
    *pieces = calloc((size_t)n + 1, sizeof **pieces);
    if (!*pieces)
        return err_memory(err, "the bubbles of a slide");
    for (int64_t y = 0; y < filled->height; y++)
        for (int64_t x = 0; x < filled->width; x++) {
            int64_t at = y * filled->width + x;
            if (!filled->px[at])
                continue;
            struct piece *piece = &(*pieces)[(*labels)[at]];
            add_px(piece, x, y);
            piece->interior += !rims->px[at];
            float variance = variance_at(tissue, focus, x, y);
            if (!rims->px[at] && tissue->mask.px[at] && variance >= 0) {
                piece->tissue++;
                piece->blurred += variance < FOCUS_LEAST_VARIANCE;
            }
        }
    return true;
}

bool artefact_find_bubbles(const struct tissue_mask *tissue, const struct focus_map *focus,
                           struct image *bubbles, struct err *err)
{
    const struct image *rgb = &tissue->overview;
    int64_t n = rgb->width * rgb->height;
    struct image rims = { 0 };
    int32_t *labels = NULL;
    struct piece *pieces = NULL;
    bool ok = image_new(&rims, rgb->width, rgb->height, 1, err);
    for (int64_t i = 0; ok && i < n; i++)
        rims.px[i] = colour_hsv(rgb->px + 3 * i).value < RIM_VALUE ? 255 : 0;
    ok = ok && morphology_close(&rims, 1, err);
    if (ok)
        memcpy(bubbles->px, rims.px, (size_t)n);
    ok = ok && morphology_fill_holes(bubbles, (double)n + 1, err) &&
         look_at_pieces(tissue, focus, &rims, bubbles, &labels, &pieces, err);
    double px_um = artefact_px_um(tissue);
    for (int64_t i = 0; ok && i < n; i++)
        bubbles->px[i] = labels[i] && is_bubble(&pieces[labels[i]], px_um) ? 255 : 0;
    /* The seam of the rim looks like black pen. */
    ok = ok && morphology_dilate(bubbles, 2, err);
    free(labels);
    free(pieces);
    image_free(&rims);
    return ok;
}
