/* lesion_finder.c: see lesion_finder.h. */
#include "verdict/lesion_finder.h"
#include "tissue/tissue.h"

#include <math.h>
#include <stdlib.h>
#include "tissue/morphology.h"
#include "verdict/regions.h"

static int by_score(const void *a, const void *b)
{
    const struct lesion *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    if (x->y_l0 != y->y_l0)
        return x->y_l0 < y->y_l0 ? -1 : 1;
    return (x->x_l0 > y->x_l0) - (x->x_l0 < y->x_l0);
}

static int by_area_score(const void *a, const void *b)
{
    const struct lesion_area *x = a, *y = b;
    return by_score(&x->best, &y->best);
}

/* Every label's best cell. */
static bool pick_cells(const struct regions_input *in, struct lesion_area *out, struct err *err)
{
    struct region_measure *regions = NULL;
    double *nearest = calloc((size_t)in->n + 1, sizeof *nearest);
    bool ok = (nearest || err_memory(err, "the lesions")) && regions_measure(in, &regions, err);
    for (int32_t k = 0; ok && k < in->n; k++) {
        const struct region_measure *r = &regions[k];
        nearest[k] = INFINITY;
        out[k] = (struct lesion_area){ .best.score = r->most,
                                       .label = k + 1,
                                       .left = r->x0,
                                       .top = r->y0,
                                       .right = r->x1,
                                       .bottom = r->y1 };
    }
    for (int64_t i = 0; ok && i < in->width * in->height; i++) {
        int32_t k = in->labels[i] - 1;
        if (k < 0 || (double)in->values[i] < regions[k].most)
            continue;
        double x = (double)(i % in->width), y = (double)(i / in->width);
        double away = hypot(x - regions[k].centre_x, y - regions[k].centre_y);
        if (away < nearest[k])
            nearest[k] = away, out[k].best.x_l0 = x, out[k].best.y_l0 = y;
    }
    free(regions), free(nearest);
    return ok;
}

bool lesion_areas_find(const struct heat_field *field, double threshold, double open_cells,
                       double close_cells, struct lesion_areas *out, struct err *err)
{
    struct image mask;
    int32_t n = 0;
    const float limit = (float)threshold;
    *out = (struct lesion_areas){ 0 };
    if (!image_new(&mask, field->width, field->height, 1, err))
        return false;
    for (int64_t i = 0; i < field->width * field->height; i++)
        mask.px[i] = field->values[i] > limit ? 255 : 0;
    bool ok = morphology_open(&mask, open_cells, err) &&
              morphology_close(&mask, close_cells, err) &&
              morphology_label(&mask, true, &out->labels, &n, err);
    image_free(&mask);
    struct regions_input input = { out->labels, field->values, field->width, field->height, n };
    out->items = ok ? calloc((size_t)n + 1, sizeof *out->items) : NULL;
    ok =
        ok && (out->items || err_memory(err, "the lesions")) && pick_cells(&input, out->items, err);
    out->n = n;
    if (ok && n > 1)
        qsort(out->items, (size_t)n, sizeof *out->items, by_area_score);
    if (!ok)
        lesion_areas_free(out);
    return ok;
}

void lesion_areas_free(struct lesion_areas *areas)
{
    free(areas->labels);
    free(areas->items);
    *areas = (struct lesion_areas){ 0 };
}

bool lesions_by_components(const struct heat_field *field, double threshold, double open_cells,
                           double close_cells, struct lesion_list *out, struct err *err)
{
    struct lesion_areas areas;
    *out = (struct lesion_list){ 0 };
    if (!lesion_areas_find(field, threshold, open_cells, close_cells, &areas, err))
        return false;
    bool ok = true;
    for (int32_t i = 0; ok && i < areas.n; i++)
        ok = lesions_add(out, areas.items[i].best, err);
    lesion_areas_free(&areas);
    if (!ok)
        lesions_free(out);
    return ok;
}

struct candidate {
    float score;
    uint32_t cell; /* a heat_field has at most 2^28 */
};

static int by_candidate(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return (x->cell > y->cell) - (x->cell < y->cell);
}

static void take_out(const struct heat_field *field, uint8_t *gone, int64_t column, int64_t row,
                     double radius)
{
    int64_t reach = (int64_t)radius;
    for (int64_t y = row - reach; y <= row + reach; y++) {
        if (y < 0 || y >= field->height)
            continue;
        double dy = (double)(y - row);
        int64_t half = (int64_t)sqrt(radius * radius - dy * dy);
        int64_t begin = column > half ? column - half : 0;
        int64_t end = column + half + 1 < field->width ? column + half + 1 : field->width;
        for (int64_t x = begin; x < end; x++)
            gone[y * field->width + x] = 1;
    }
}

bool lesions_by_suppression(const struct heat_field *field, double stop, double radius_cells,
                            struct lesion_list *out, struct err *err)
{
    const int64_t n_cells = field->width * field->height;
    const float limit = (float)stop;
    size_t n = 0, filled = 0;
    *out = (struct lesion_list){ 0 };
    for (int64_t i = 0; i < n_cells; i++)
        n += field->values[i] > limit;
    struct candidate *candidates = calloc(n + 1, sizeof *candidates);
    uint8_t *gone = calloc((size_t)n_cells, 1);
    bool ok = (candidates && gone) || err_memory(err, "the lesions");
    for (int64_t i = 0; ok && i < n_cells; i++)
        if (field->values[i] > limit)
            candidates[filled++] = (struct candidate){ field->values[i], (uint32_t)i };
    if (ok)
        qsort(candidates, n, sizeof *candidates, by_candidate);
    for (size_t i = 0; ok && i < n; i++) {
        int64_t column = candidates[i].cell % field->width, row = candidates[i].cell / field->width;
        if (gone[candidates[i].cell])
            continue;
        ok = lesions_add(
            out, (struct lesion){ (double)candidates[i].score, (double)column, (double)row }, err);
        take_out(field, gone, column, row, radius_cells);
    }
    free(candidates), free(gone);
    if (!ok)
        lesions_free(out);
    return ok;
}

void lesions_place(struct lesion_list *list, const struct heatmap_info *info)
{
    for (int64_t i = 0; i < list->n; i++) {
        struct lesion *lesion = &list->items[i];
        double stride = (double)info->stride;
        double x = round(((double)info->origin_x + lesion->x_l0 * stride) * info->downsample);
        double y = round(((double)info->origin_y + lesion->y_l0 * stride) * info->downsample);
        lesion->x_l0 = fmin(x, (double)(info->width_l0 - 1)); /* the last cells may reach beyond */
        lesion->y_l0 = fmin(y, (double)(info->height_l0 - 1));
    }
}

const char *const lesion_method_names[] = { "components", "nms", NULL };

double lesion_cell_um(const struct heatmap_info *info, bool *assumed_mpp)
{
    *assumed_mpp = !(info->mpp > 0);
    double mpp = info->mpp > 0 ? info->mpp : TISSUE_ASSUMED_MPP * info->downsample;
    return mpp * (double)info->stride;
}

bool lesions_find(const struct heatmap_info *info, const struct heat_field *field,
                  const struct lesion_rules *rules, struct lesion_list *out, bool *assumed_mpp,
                  struct err *err)
{
    double cell_um = lesion_cell_um(info, assumed_mpp);
    bool ok =
        rules->method == LESIONS_COMPONENTS
            ? lesions_by_components(field, rules->threshold, rules->open_um / cell_um,
                                    rules->close_um / cell_um, out, err)
            : lesions_by_suppression(field, rules->stop, rules->radius_um / cell_um, out, err);
    if (ok)
        lesions_place(out, info);
    return ok;
}
