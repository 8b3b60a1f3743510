/* tiff_family_philips.c: Philips TIFF. The description is XML with the pixel spacing of every
 * level. Level i is the i-th tiled directory, padded to whole tiles: the real size is that of
 * level 0, divided by the ratio of the spacings. Areas that were not scanned have no tiles. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/xml.h"
#include "slide/tiff_family.h"

#define MAX_DEPTH 64

struct spacing {
    double x, y; /* mm */
};

/* Slide, label or macro image. */
struct scanned {
    bool is_slide;
    struct spacing whole;
    struct spacing levels[TIFF_MAX_LEVELS];
    int n_levels;
};

struct reading {
    int depth;
    char names[MAX_DEPTH][48]; /* attribute Name of the open elements; "" if none */
    char text[256];            /* of the innermost element */
    size_t size;
    int image_depth;      /* of the element of the image being read; 0: none */
    struct scanned image; /* being read: its type may come last */
    struct scanned slide; /* the last one that was a slide */
    int n_slides;
};

static bool claims(const struct tiff_file *file)
{
    char root[32] = "";
    return strncmp(file->software, "Philips", 7) == 0 &&
           xml_root(file->description, strlen(file->description), file->path, root, sizeof root,
                    NULL) &&
           strcmp(root, "DataObject") == 0 && strstr(file->description, "DPUfsImport");
}

/* Whether the innermost open element that has a name has this one. */
static bool is_inside(const struct reading *reading, int depth, const char *name)
{
    while (depth > 0 && !reading->names[depth - 1][0])
        depth--;
    return depth > 0 && strcmp(reading->names[depth - 1], name) == 0;
}

static bool on_start(void *user, const struct xml_element *element, struct err *err)
{
    struct reading *reading = user;
    if (reading->depth == MAX_DEPTH)
        return err_set(err, ERR_FORMAT, "%s: its XML description is nested too deeply",
                       element->path);
    bool image = reading->image_depth == 0 && strcmp(element->name, "DataObject") == 0 &&
                 is_inside(reading, reading->depth, "PIM_DP_SCANNED_IMAGES");
    xml_text(element, "Name", reading->names[reading->depth++], sizeof *reading->names);
    reading->size = 0;
    if (image) {
        reading->image_depth = reading->depth;
        reading->image = (struct scanned){ 0 };
    }
    return true;
}

static void on_text(void *user, const char *text, size_t size)
{
    struct reading *reading = user;
    size_t room = sizeof reading->text - 1 - reading->size;
    size = size < room ? size : room;
    memcpy(reading->text + reading->size, text, size);
    reading->size += size;
}

/* Written as "row" "column", in mm. */
static bool parse_spacing(const char *text, struct spacing *out)
{
    return sscanf(text, " \"%lf\" \"%lf\"", &out->y, &out->x) == 2 && out->x > 0 && out->y > 0 &&
           isfinite(out->x) && isfinite(out->y);
}

/* An attribute of the image, or of one of its levels, has ended. */
static void take_attribute(struct reading *reading, const char *name)
{
    struct scanned *image = &reading->image;
    struct spacing spacing;
    if (strcmp(name, "PIM_DP_IMAGE_TYPE") == 0)
        image->is_slide = strcmp(reading->text, "WSI") == 0;
    if (strcmp(name, "DICOM_PIXEL_SPACING") != 0 || !parse_spacing(reading->text, &spacing))
        return;
    if (reading->depth == reading->image_depth + 1)
        image->whole = spacing;
    else if (is_inside(reading, reading->depth - 1, "PIIM_PIXEL_DATA_REPRESENTATION_SEQUENCE") &&
             image->n_levels < TIFF_MAX_LEVELS)
        image->levels[image->n_levels++] = spacing;
}

static bool on_end(void *user, const char *name, struct err *err)
{
    struct reading *reading = user;
    (void)name, (void)err;
    reading->text[reading->size] = 0;
    if (reading->image_depth > 0)
        take_attribute(reading, reading->names[reading->depth - 1]);
    if (reading->depth == reading->image_depth) {
        reading->image_depth = 0;
        if (reading->image.is_slide) {
            reading->slide = reading->image;
            reading->n_slides++;
        }
    }
    reading->depth--;
    reading->size = 0;
    return true;
}

static bool set_sizes(const struct tiff_file *file, const struct reading *reading,
                      struct tiff_plan *plan, struct err *err)
{
    const struct scanned *slide = &reading->slide;
    const struct spacing *first = &slide->levels[0];
    if (reading->n_slides != 1)
        return err_set(err, ERR_FORMAT, "%s: contains %d Philips slides instead of one", file->path,
                       reading->n_slides);
    if (slide->n_levels != plan->n_levels)
        return err_set(err, ERR_FORMAT,
                       "%s: its Philips description has the pixel spacing of %d levels, but the "
                       "file has %d",
                       file->path, slide->n_levels, plan->n_levels);
    for (int i = 1; i < plan->n_levels; i++) {
        struct tiff_level *level = &plan->levels[i];
        const struct spacing *spacing = &slide->levels[i];
        level->downsample = round((spacing->x / first->x + spacing->y / first->y) / 2);
        if (!(level->downsample >= 1 && level->downsample < 1e6))
            return err_set(err, ERR_FORMAT, "%s: the pixel spacing of level %d is %g mm, of 0 %g",
                           file->path, i, spacing->x, first->x);
        level->width = (int64_t)((double)plan->levels[0].width / level->downsample);
        level->height = (int64_t)((double)plan->levels[0].height / level->downsample);
    }
    plan->mpp_x = 1000 * slide->whole.x;
    plan->mpp_y = 1000 * slide->whole.y;
    return true;
}

static enum driver_answer plan_levels(const struct tiff_file *file, struct tiff_plan *plan,
                                      struct err *err)
{
    static const struct xml_walker walker = { .start = on_start, .end = on_end, .text = on_text };
    for (int i = 0; i < file->n_pages; i++) {
        const struct tiff_directory *d = &file->directories[i];
        if (d->tile_width > 0 && (plan->n_levels == 0 || d->reduced))
            tiff_plan_add(plan, d);
    }
    if (plan->n_levels == 0)
        return DRIVER_OTHER;
    struct reading *reading = calloc(1, sizeof *reading);
    bool ok = reading || err_memory(err, file->path);
    ok = ok &&
         xml_walk(file->description, strlen(file->description), file->path, &walker, reading, err);
    ok = ok && set_sizes(file, reading, plan, err);
    free(reading);
    return ok ? DRIVER_OPENED : DRIVER_FAILED;
}

const struct tiff_family family_philips = { .vendor = "philips",
                                            .claims = claims,
                                            .plan = plan_levels };
