/* lesion_size.c: see lesion_size.h. */
#include "verdict/lesion_size.h"

#include <stdlib.h>
#include <string.h>
#include "tissue/morphology.h"
#include "verdict/regions.h"

#define ANY_HOLE 1e18 /* px: larger than any */

const char *const metastasis_names[] = { "negative", "itc", "micro", "macro", NULL };

struct size_rules size_rules_camelyon17(void)
{
    return (struct size_rules){ .join_um = 75, .itc_um = 200, .macro_um = 2000 };
}

enum metastasis metastasis_of(double diameter_um, const struct size_rules *rules)
{
    return diameter_um > rules->macro_um ? METASTASIS_MACRO
           : diameter_um < rules->itc_um ? METASTASIS_ITC
                                         : METASTASIS_MICRO;
}

static int by_size(const void *a, const void *b)
{
    const struct lesion_size *x = a, *y = b;
    if (x->diameter_um != y->diameter_um)
        return x->diameter_um > y->diameter_um ? -1 : 1;
    if (x->y_px != y->y_px)
        return x->y_px < y->y_px ? -1 : 1;
    return (x->x_px > y->x_px) - (x->x_px < y->x_px);
}

/* The mask with a margin, so that what grows at its border is not cut off. */
static bool with_margin(const struct image *mask, int64_t margin, struct image *out,
                        struct err *err)
{
    if (!image_new(out, mask->width + 2 * margin, mask->height + 2 * margin, 1, err))
        return false;
    for (int64_t y = 0; y < mask->height; y++)
        memcpy(image_at(out, margin, y + margin), image_at(mask, 0, y), (size_t)mask->width);
    return true;
}

/* labels [height, width] of the mask: of the pixels of a lesion, after closing and filling. */
static bool label_lesions(const struct image *mask, double radius_px, int32_t **labels, int32_t *n,
                          struct err *err)
{
    const int64_t margin = (int64_t)radius_px + 1;
    struct image grown = { 0 };
    int32_t *joined = NULL;
    bool ok = with_margin(mask, margin, &grown, err) && morphology_dilate(&grown, radius_px, err) &&
              morphology_fill_holes(&grown, ANY_HOLE, err) &&
              morphology_label(&grown, true, &joined, n, err) &&
              morphology_erode(&grown, radius_px, err);
    *labels = ok ? calloc((size_t)(mask->width * mask->height) + 1, sizeof **labels) : NULL;
    if (ok && !*labels)
        ok = err_memory(err, "a mask of tumour");
    for (int64_t y = 0; ok && y < mask->height; y++)
        for (int64_t x = 0; x < mask->width; x++)
            if (*image_at(mask, x, y) || *image_at(&grown, x + margin, y + margin))
                (*labels)[y * mask->width + x] = joined[(y + margin) * grown.width + x + margin];
    image_free(&grown);
    free(joined);
    return ok;
}

bool lesion_sizes_of_mask(const struct image *mask, const float *values, double um_per_px,
                          const struct size_rules *rules, struct lesion_sizes *out, struct err *err)
{
    struct region_measure *regions = NULL;
    int32_t *labels = NULL, n = 0;
    *out = (struct lesion_sizes){ 0 };
    bool ok = label_lesions(mask, rules->join_um / 2 / um_per_px, &labels, &n, err);
    struct regions_input input = { labels, values, mask->width, mask->height, n };
    ok = ok && regions_measure(&input, &regions, err);
    free(labels);
    if (ok) {
        out->items = calloc((size_t)n + 1, sizeof *out->items);
        ok = out->items || err_memory(err, "the lesions");
    }
    for (int32_t i = 0; ok && i < n; i++) {
        const struct region_measure *region = &regions[i];
        const double diameter = region->major_axis * um_per_px;
        if (region->area > 0 && diameter >= rules->least_um)
            out->items[out->n++] = (struct lesion_size){
                diameter,         (double)region->area * um_per_px * um_per_px,
                region->centre_x, region->centre_y,
                region->most,     metastasis_of(diameter, rules)
            };
    }
    free(regions);
    if (ok && out->n > 1)
        qsort(out->items, (size_t)out->n, sizeof *out->items, by_size);
    return ok;
}

void lesion_sizes_free(struct lesion_sizes *sizes)
{
    free(sizes->items);
    *sizes = (struct lesion_sizes){ 0 };
}

enum metastasis lesion_sizes_type(const struct lesion_sizes *sizes)
{
    return sizes->n > 0 ? sizes->items[0].type : METASTASIS_NONE;
}
