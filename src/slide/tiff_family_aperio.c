/* tiff_family_aperio.c: Aperio SVS. Its tiled directories are the levels; thumbnail, label and
 * macro image are stored in strips. The description is "Aperio ...|AppMag = 20|MPP = 0.4990". */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "slide/tiff_family.h"

static bool claims(const struct tiff_file *file)
{
    return file->directories[0].tile_width > 0 && strncmp(file->description, "Aperio", 6) == 0;
}

/* The number of a field "|name = number|", or 0. Some scanners write a decimal comma. */
static double field(const char *description, const char *name)
{
    for (const char *at = strchr(description, '|'); at; at = strchr(at, '|')) {
        char text[64];
        at += 1 + strspn(at + 1, " \t");
        if (strncmp(at, name, strlen(name)) != 0)
            continue;
        const char *value = at + strlen(name);
        value += strspn(value, " \t");
        if (*value != '=')
            continue;
        snprintf(text, sizeof text, "%.*s", (int)strcspn(value + 1, "|"), value + 1);
        char *comma = strchr(text, ','), *end = NULL;
        if (comma)
            *comma = '.';
        double number = strtod(text, &end);
        end += strspn(end, " \t\r\n");
        return end != text && *end == 0 && isfinite(number) ? number : 0;
    }
    return 0;
}

static enum driver_answer plan_levels(const struct tiff_file *file, struct tiff_plan *plan,
                                      struct err *err)
{
    (void)err;
    for (int i = 0; i < file->n_pages; i++)
        if (file->directories[i].tile_width > 0)
            tiff_plan_add(plan, &file->directories[i]);
    plan->mpp_x = plan->mpp_y = field(file->description, "MPP");
    plan->objective = field(file->description, "AppMag");
    return DRIVER_OPENED;
}

const struct tiff_family family_aperio = {
    .vendor = "aperio", .drawn = true, .claims = claims, .plan = plan_levels
};
