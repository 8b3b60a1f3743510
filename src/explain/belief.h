/* belief.h: how far a map can be believed, in numbers.
 * - Orders: the score falls as pixels are deleted in the order of the map (deletion) and rises as
 *   they come back (insertion); both as areas under the curve, next to those of random orders.
 * - Redrawing: the map of the same network with weights drawn at random, from the top down. A map
 *   that stays the same says nothing about the network.
 * - Agreement: Spearman's rank correlation between the maps of several methods.
 * - Inside: the share of the map that is in a mask, such as nuclei or a drawing.
 * A constant map orders nothing: all its numbers are NaN. docs/explain.md has the definitions. */
#ifndef EXPLAIN_BELIEF_H
#define EXPLAIN_BELIEF_H
#include "explain/explainer.h"

#define BELIEF_MOST_STEPS 64
#define BELIEF_DEPTHS 4 /* how far down weights are redrawn: head, quarter, half, all */
/* Views that are enough for belief_redraw: what is asked is about the method, not the image. */
#define BELIEF_REDRAWN_VIEWS 4

struct belief_settings {
    int64_t steps;         /* of a curve: 16; at most BELIEF_MOST_STEPS */
    int64_t random_orders; /* whose mean a map is compared with: 3 */
    double unchanged;      /* rank correlation above which a map has not changed: 0.5 */
    uint64_t seed;         /* of redrawn weights */
};
struct belief_settings belief_defaults(void);

/* --- orders --- */

/* Areas under the curves of the class's score over the fraction of pixels, by trapezoids. Deletion:
 * the highest pixels of the map are replaced first, by the mean colour of the image; the lower the
 * area the better. Insertion: they appear first in the blurred image (Gaussian, sigma an eighth of
 * the shorter side); the higher the better. A random order is the map itself turned, mirrored and
 * moved at random (around the edges), so that it has the same grain: single pixels destroy an image
 * sooner than areas do, wherever they are. Equal pixels of a map are ordered at random, by areas,
 * keyed by view->key. */
struct belief_order {
    double deletion, insertion;
    double random_deletion, random_insertion; /* means of the random orders */
    /* ((random_deletion - deletion) + (insertion - random_insertion)) / 2: above 0 the map is
     * better than chance. */
    double better_by;
    int64_t steps;
    double deletion_curve[BELIEF_MOST_STEPS + 1], insertion_curve[BELIEF_MOST_STEPS + 1];
};

/* maps [n_maps], each [height, width] of the network's input (attribution_resize; normalised or
 * not, the order is the same) and finite. The probe is any of settings->model at this size and
 * batch; only its forward pass is used: 2 (1 + random_orders) (steps - 1) images for each map, and
 * 3. out [n_maps]. */
bool belief_orders(const struct explain_settings *settings, const struct belief_settings *belief,
                   struct probe *probe, const struct explain_view *view, const float *const *maps,
                   int n_maps, const struct ctx *ctx, struct belief_order *out, struct err *err);

/* --- redrawing --- */

struct belief_method {
    const struct explainer *explainer;
    const char *layer; /* NULL or "": the last spatial one; MAPS_INPUT: not used */
};

struct belief_redrawn {
    double share[BELIEF_DEPTHS]; /* of all layers with weights: how many were redrawn; last: 1 */
    /* Spearman's rank correlation of |map| with |map of the redrawn network|: means over the views
     * that have one; NaN: none has. */
    double correlation[BELIEF_DEPTHS];
    int64_t views[BELIEF_DEPTHS]; /* that have one */
    /* The last correlation is above belief->unchanged: the map hardly depends on what the network
     * learnt, so it is no explanation. */
    bool no_explanation;
};
extern const char *const belief_depth_names[BELIEF_DEPTHS]; /* "head", "quarter", "half", "all" */

/* Weights are redrawn from a normal distribution with the mean and the deviation that those of the
 * parameter have, so that the statistics of batch norm, which stay, still fit; keyed by seed and
 * name. maps [n_methods, n_views]: those of the network itself, before any normalisation, as
 * explainer->explain returned them. The views' classes stay, their scores are not used. Takes
 * BELIEF_DEPTHS times as long as making the maps, and advances the console by as many maps. out
 * [n_methods]. */
bool belief_redraw(const struct explain_settings *settings, const struct belief_settings *belief,
                   const struct belief_method *methods, int n_methods,
                   const struct explain_view *views, int n_views, const struct attribution *maps,
                   const struct ctx *ctx, struct belief_redrawn *out, struct err *err);
/* The model with that share of its layers redrawn, counted from the top; it borrows all but its
 * graph, so the model must outlive it. *out is the caller's; free with belief_model_free. */
bool belief_redrawn_model(const struct model *model, double share, uint64_t seed,
                          struct model **out, struct err *err);
void belief_model_free(struct model *redrawn); /* NULL-safe */

/* --- agreement and inside --- */

/* Spearman's rank correlation between all pairs of maps [n_maps] of n pixels each: out [n_maps,
 * n_maps], 1 on the diagonal, NaN where a map is constant. Pixels that are NaN in any of the maps
 * do not count. */
bool belief_agreement(const float *const *maps, int n_maps, int64_t n, double *out,
                      struct err *err);

struct belief_inside {
    double map_share;  /* of the sum of the map's positive values */
    double area_share; /* of the pixels */
    double enrichment; /* map_share / area_share; 1: no more than elsewhere */
};
/* map [n] before normalisation (NaN: does not count), mask [n], 0: outside. NaN for a constant map
 * or one without positive values, and where the mask is empty. */
struct belief_inside belief_mass_inside(const float *map, const uint8_t *mask, int64_t n);
#endif
