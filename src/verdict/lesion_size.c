/* lesion_size.c: see lesion_size.h. */
#include "verdict/lesion_size.h"

#include <math.h>
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

/* Pieces that grow into each other are one lesion. */
struct joined {
    int64_t width, height, margin; /* of the labels: the mask and a margin */
    int32_t *labels, n;
};

static bool join(const struct image *mask, double radius_px, struct joined *out, struct err *err)
{
    struct image grown = { 0 };
    *out = (struct joined){ .margin = (int64_t)radius_px + 1 };
    bool ok = with_margin(mask, out->margin, &grown, err) &&
              morphology_dilate(&grown, radius_px, err) &&
              morphology_fill_holes(&grown, ANY_HOLE, err) &&
              morphology_label(&grown, true, &out->labels, &out->n, err);
    out->width = grown.width, out->height = grown.height;
    image_free(&grown);
    return ok;
}

/* *axes: of the joined pieces; *own: of the tumour itself, with its values. [n] each; free(). */
static bool measure(const struct image *mask, const float *values, const struct joined *joined,
                    struct region_measure **axes, struct region_measure **own, struct err *err)
{
    struct regions_input all = { joined->labels, NULL, joined->width, joined->height, joined->n };
    int32_t *labels = calloc((size_t)(mask->width * mask->height) + 1, sizeof *labels);
    struct regions_input tumour = { labels, values, mask->width, mask->height, joined->n };
    bool ok = labels || err_memory(err, "a mask of tumour");
    for (int64_t y = 0; ok && y < mask->height; y++)
        for (int64_t x = 0; x < mask->width; x++)
            if (*image_at(mask, x, y))
                labels[y * mask->width + x] =
                    joined->labels[(y + joined->margin) * joined->width + x + joined->margin];
    ok = ok && regions_measure(&all, axes, err) && regions_measure(&tumour, own, err);
    free(labels);
    return ok;
}

bool lesion_sizes_of_mask(const struct image *mask, const float *values, double um_per_px,
                          const struct size_rules *rules, struct lesion_sizes *out, struct err *err)
{
    const double radius_px = rules->join_um / 2 / um_per_px;
    const double margin_um = radius_px >= 1 ? rules->join_um : 0; /* a smaller disc adds nothing */
    struct region_measure *axes = NULL, *own = NULL;
    struct joined joined = { 0 };
    *out = (struct lesion_sizes){ 0 };
    bool ok =
        join(mask, radius_px, &joined, err) && measure(mask, values, &joined, &axes, &own, err);
    out->items = ok ? calloc((size_t)joined.n + 1, sizeof *out->items) : NULL;
    ok = ok && (out->items || err_memory(err, "the lesions"));
    for (int32_t i = 0; ok && i < joined.n; i++) {
        const double area_um2 = (double)own[i].area * um_per_px * um_per_px;
        const double diameter_um =
            fmax(axes[i].major_axis * um_per_px - margin_um, sqrt(4 * area_um2 / acos(-1)));
        if (diameter_um >= rules->least_um)
            out->items[out->n++] =
                (struct lesion_size){ diameter_um,     area_um2,
                                      own[i].centre_x, own[i].centre_y,
                                      own[i].most,     metastasis_of(diameter_um, rules) };
    }
    free(joined.labels), free(axes), free(own);
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
