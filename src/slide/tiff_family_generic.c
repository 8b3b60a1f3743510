/* tiff_family_generic.c: tiled TIFF of no scanner we know: the first page and its smaller versions.
 * Also what the families share. */
#include <math.h>
#include <stdlib.h>
#include "slide/tiff_family.h"

#define SHAPE_PX 2.0 /* by which a level's size may differ from its shape, through rounding */

bool tiff_plan_add(struct tiff_plan *plan, const struct tiff_directory *directory)
{
    if (plan->n_levels == TIFF_MAX_LEVELS)
        return false;
    plan->levels[plan->n_levels++] = (struct tiff_level){ .directory = directory,
                                                          .width = directory->width,
                                                          .height = directory->height };
    return true;
}

static bool smaller_version(const struct tiff_directory *d, const struct tiff_directory *base,
                            const struct tiff_directory *previous)
{
    if (d->tile_width == 0 || d->mask || d->width >= previous->width ||
        d->height > previous->height || d->samples != base->samples || d->bits != base->bits)
        return false;
    double scale =
        sqrt((double)d->width / (double)base->width * (double)d->height / (double)base->height);
    return fabs((double)d->width - scale * (double)base->width) <= SHAPE_PX &&
           fabs((double)d->height - scale * (double)base->height) <= SHAPE_PX;
}

/* Pages that have the tag, wherever they are: OpenSlide's rule. */
static void add_reduced(const struct tiff_file *file, const struct tiff_directory *base,
                        struct tiff_plan *plan)
{
    for (int i = 0; i < file->n_pages; i++) {
        const struct tiff_directory *d = &file->directories[i];
        if (d != base && d->reduced && d->tile_width > 0)
            tiff_plan_add(plan, d);
    }
}

static void add_versions(const struct tiff_file *file, const struct tiff_directory *base, bool sub,
                         struct tiff_plan *plan)
{
    const struct tiff_directory *previous = base;
    for (int i = 0; i < file->n_directories; i++) {
        const struct tiff_directory *d = &file->directories[i];
        if (d->sub != sub || (sub ? d->page != base->page : d->page <= base->page) ||
            !smaller_version(d, base, previous))
            continue;
        tiff_plan_add(plan, d);
        previous = d;
    }
}

/* Stable, because two levels may be equally wide. */
static void sort_by_width(struct tiff_plan *plan)
{
    for (int i = 1; i < plan->n_levels; i++) {
        struct tiff_level level = plan->levels[i];
        int to = i;
        for (; to > 0 && plan->levels[to - 1].width < level.width; to--)
            plan->levels[to] = plan->levels[to - 1];
        plan->levels[to] = level;
    }
}

void tiff_plan_pyramid(const struct tiff_file *file, const struct tiff_directory *base,
                       struct tiff_plan *plan)
{
    tiff_plan_add(plan, base);
    add_reduced(file, base, plan);
    if (plan->n_levels == 1)
        add_versions(file, base, true, plan);
    if (plan->n_levels == 1)
        add_versions(file, base, false, plan);
    sort_by_width(plan);
}

static bool claims(const struct tiff_file *file)
{
    return file->directories[0].tile_width > 0;
}

static enum driver_answer plan_levels(const struct tiff_file *file, struct tiff_plan *plan,
                                      struct err *err)
{
    (void)err;
    tiff_plan_pyramid(file, &file->directories[0], plan);
    return DRIVER_OPENED;
}

const struct tiff_family family_generic = { .vendor = "generic-tiff",
                                            .claims = claims,
                                            .plan = plan_levels };
