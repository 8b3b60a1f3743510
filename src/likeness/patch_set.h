/* patch_set.h: patch stores, folders or tar files of images -> features of their patches, row by
 * row, with classes; a few patches to look at; and the nuclei of some of them. Only features are
 * kept: memory does not grow with the size of the patches. */
#ifndef LIKENESS_PATCH_SET_H
#define LIKENESS_PATCH_SET_H
#include "base/ctx.h"
#include "base/image.h"
#include "likeness/rows.h"
#include "net/model/model.h"
#include "nuclei/nuclei.h"

#define PATCH_SET_SHOWN 36   /* patches kept to look at */
#define PATCH_SET_NUCLEI 500 /* patches whose nuclei are measured */

struct patch_set_options {
    const struct model *model; /* whose layer gives the features; NULL: the 57 */
    const char *layer;         /* "" or NULL: the last spatial one */
    int64_t resize_px;         /* all patches are resized to this side first; 0: not */
    int64_t shrink_px;         /* only larger ones are; 0: not */
    int64_t most;              /* patches, drawn at random where there are more */
    uint64_t seed;
    double mpp;                 /* um/px before resizing, unless stores say it; 0: unknown */
    const char *const *classes; /* [n_classes]: what labels number */
    int64_t n_classes;
};

/* Of the nuclei that are not cut off by the patch's border. */
struct patch_nuclei {
    int64_t patches, nuclei;
    double per_mm2; /* all nuclei, cut off or not */
    double mean[NUCLEUS_FEATURES], std[NUCLEUS_FEATURES];
    const char *why_not; /* they were not measured; NULL: they were */
};

struct patch_set {
    double *values;  /* [n, d] */
    int32_t *labels; /* [n]: PATCH_UNLABELED: none */
    int64_t n, d;
    int64_t found;                       /* patches in the files; n is at most options.most */
    int64_t other_size;                  /* of those drawn, omitted because of another size */
    int64_t width, height;               /* of all patches, as they are compared */
    int64_t stored_width, stored_height; /* of most, before resizing */
    double mpp;                          /* of the patches as they are compared; 0: unknown */
    struct image shown[PATCH_SET_SHOWN];
    int64_t n_shown;
    struct patch_nuclei nuclei;
};

/* Patches of another size than most are omitted; with resize_px those that are far from square.
 * Errors: what the data set finds, or no patch of at least 32 px. *out is the caller's; free with
 * patch_set_free. `label` is what the progress says. HDF5: see patch/store.h. */
bool patch_set_read(char *const *paths, size_t n_paths, const struct patch_set_options *options,
                    const char *label, const struct ctx *ctx, struct patch_set *out,
                    struct err *err);
void patch_set_free(struct patch_set *set); /* also fine on a zeroed struct */

static inline struct rows patch_set_rows(const struct patch_set *set)
{
    return (struct rows){ set->values, set->n, set->d };
}
#endif
