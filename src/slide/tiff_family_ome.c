/* tiff_family_ome.c: OME-TIFF. The description is OME-XML: images with their size, pixel size with
 * its unit, channels, and the directory of each plane. The largest image is the slide; it must be
 * one plane: RGB or grey. Its levels are SubIFDs, or reduced pages in files of other writers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/xml.h"
#include "slide/tiff_family.h"

#define MAX_OBJECTIVES 16
#define ID_BYTES 64

struct ome_image {
    double width, height, z, channels, times;
    double page;         /* of the first plane; -1: behind the image before */
    double mpp_x, mpp_y; /* 0: unknown */
    char objective[ID_BYTES];
    char elsewhere[256]; /* the file that has its pixels, if it is another one */
};

struct ome_objective {
    char id[ID_BYTES];
    double magnification;
};

struct ome {
    const struct tiff_file *file;
    struct ome_objective objectives[MAX_OBJECTIVES];
    int n_objectives;
    struct ome_image image, largest; /* being read; so far */
    double next_page;
    char own_id[ID_BYTES];                  /* UUID of this file; "": not given */
    char file_id[ID_BYTES], file_name[256]; /* of the file a plane is in, being read */
    size_t file_id_size;
    bool in_file_id;
};

static bool claims(const struct tiff_file *file)
{
    char root[8] = "";
    return strstr(file->description, "<OME") &&
           xml_root(file->description, strlen(file->description), file->path, root, sizeof root,
                    NULL) &&
           strcmp(root, "OME") == 0;
}

/* um per unit of length; 0: no unit of length, such as "pixel". */
static double um_per(const char *unit)
{
    static const struct {
        const char *name;
        double um;
    } units[] = { { "", 1 },           { "\xC2\xB5m", 1 }, { "\xCE\xBCm", 1 },
                  { "um", 1 },         { "nm", 1e-3 },     { "pm", 1e-6 },
                  { "mm", 1e3 },       { "cm", 1e4 },      { "dm", 1e5 },
                  { "m", 1e6 },        { "in", 25400 },    { "pt", 25400.0 / 72 },
                  { "\xC3\x85", 1e-4 } };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(units[i].name, unit) == 0)
            return units[i].um;
    return 0;
}

static bool read_length(const struct xml_element *element, const char *name, const char *unit_name,
                        double *out_um, struct err *err)
{
    char unit[32];
    double value = 0;
    xml_text(element, unit_name, unit, sizeof unit);
    if (!xml_number(element, name, false, &value, err))
        return false;
    *out_um = value * um_per(unit);
    return true;
}

static bool read_image_size(const struct xml_element *element, struct ome_image *image,
                            struct err *err)
{
    return xml_number(element, "SizeX", true, &image->width, err) &&
           xml_number(element, "SizeY", true, &image->height, err) &&
           xml_number(element, "SizeZ", false, &image->z, err) &&
           xml_number(element, "SizeC", false, &image->channels, err) &&
           xml_number(element, "SizeT", false, &image->times, err) &&
           read_length(element, "PhysicalSizeX", "PhysicalSizeXUnit", &image->mpp_x, err) &&
           read_length(element, "PhysicalSizeY", "PhysicalSizeYUnit", &image->mpp_y, err);
}

static bool take_first_image(void *user, const struct xml_element *element, struct err *err)
{
    struct ome_image *image = user;
    return strcmp(element->name, "Pixels") != 0 || image->width > 0 ||
           read_image_size(element, image, err);
}

bool tiff_ome_mpp(const char *description, double *mpp_x, double *mpp_y)
{
    struct ome_image image = { 0 };
    struct xml_walker walker = { .start = take_first_image };
    if (!strstr(description, "<OME") ||
        !xml_walk(description, strlen(description), "OME-XML", &walker, &image, NULL))
        return false;
    *mpp_x = image.mpp_x;
    *mpp_y = image.mpp_y;
    return image.mpp_x > 0 && image.mpp_y > 0;
}

static bool take_objective(struct ome *ome, const struct xml_element *element, struct err *err)
{
    if (ome->n_objectives == MAX_OBJECTIVES)
        return true;
    struct ome_objective *objective = &ome->objectives[ome->n_objectives++];
    xml_text(element, "ID", objective->id, sizeof objective->id);
    return xml_number(element, "NominalMagnification", false, &objective->magnification, err);
}

static bool on_start(void *user, const struct xml_element *element, struct err *err)
{
    struct ome *ome = user;
    struct ome_image *image = &ome->image;
    const char *name = element->name;
    double page = -1;
    if (strcmp(name, "OME") == 0) {
        xml_text(element, "UUID", ome->own_id, sizeof ome->own_id);
    } else if (strcmp(name, "Image") == 0) {
        *image = (struct ome_image){ .z = 1, .channels = 1, .times = 1, .page = -1 };
    } else if (strcmp(name, "BinaryOnly") == 0) {
        return err_set(err, ERR_FORMAT,
                       "%s: part of an OME-TIFF of several files: its metadata are in another one; "
                       "convert it to a single file",
                       element->path);
    } else if (strcmp(name, "Objective") == 0) {
        return take_objective(ome, element, err);
    } else if (strcmp(name, "UUID") == 0) {
        xml_text(element, "FileName", ome->file_name, sizeof ome->file_name);
        ome->file_id_size = 0;
        ome->in_file_id = true;
    } else if (strcmp(name, "ObjectiveSettings") == 0) {
        xml_text(element, "ID", image->objective, sizeof image->objective);
    } else if (strcmp(name, "Pixels") == 0) {
        return read_image_size(element, image, err);
    } else if (strcmp(name, "TiffData") == 0) {
        if (!xml_number(element, "IFD", false, &page, err))
            return false;
        image->page = image->page < 0 ? page : image->page;
    }
    return true;
}

static void on_text(void *user, const char *text, size_t size)
{
    struct ome *ome = user;
    size_t room = sizeof ome->file_id - 1 - ome->file_id_size;
    if (!ome->in_file_id)
        return;
    size = size < room ? size : room;
    memcpy(ome->file_id + ome->file_id_size, text, size);
    ome->file_id_size += size;
}

/* A file may have been renamed: its UUID decides, and if it gives none, whether all agree. */
static void take_file(struct ome *ome)
{
    ome->in_file_id = false;
    ome->file_id[ome->file_id_size] = 0;
    if (!ome->own_id[0])
        memcpy(ome->own_id, ome->file_id, sizeof ome->own_id);
    else if (strcmp(ome->own_id, ome->file_id) != 0)
        snprintf(ome->image.elsewhere, sizeof ome->image.elsewhere, "%s",
                 ome->file_name[0] ? ome->file_name : "another file");
}

/* The page of an image's first plane; NULL if the file does not have it. */
static const struct tiff_directory *page_of(const struct tiff_file *file,
                                            const struct ome_image *image)
{
    return image->page >= 0 && image->page < file->n_pages ? &file->directories[(int)image->page]
                                                           : NULL;
}

/* Planes of channels: SizeC counts samples, of which a page has one or several. */
static double channel_planes(const struct tiff_file *file, const struct ome_image *image)
{
    const struct tiff_directory *page = page_of(file, image);
    double planes = page ? floor(image->channels / page->samples) : image->channels;
    return planes > 1 ? planes : 1;
}

static bool on_end(void *user, const char *name, struct err *err)
{
    struct ome *ome = user;
    struct ome_image *image = &ome->image;
    (void)err;
    if (strcmp(name, "UUID") == 0)
        take_file(ome);
    if (strcmp(name, "Image") != 0)
        return true;
    if (image->page < 0)
        image->page = ome->next_page;
    ome->next_page = image->page + image->z * image->times * channel_planes(ome->file, image);
    if (image->width * image->height > ome->largest.width * ome->largest.height)
        ome->largest = *image;
    return true;
}

static bool check_image(const struct tiff_file *file, const struct ome_image *image,
                        struct err *err)
{
    const struct tiff_directory *page = page_of(file, image);
    double channels = channel_planes(file, image);
    if (image->elsewhere[0])
        return err_set(err, ERR_FORMAT,
                       "%s: part of an OME-TIFF of several files: pixels are in %s; convert it to "
                       "a single file",
                       file->path, image->elsewhere);
    if (!page)
        return err_set(err, ERR_FORMAT,
                       "%s: its OME-XML places the image in page %g, but there are %d pages",
                       file->path, image->page, file->n_pages);
    if (channels > 1)
        return err_set(err, ERR_FORMAT,
                       "%s: has %g channels, of which only %d would be read; convert it to RGB",
                       file->path, image->channels, page->samples);
    if (image->z > 1 || image->times > 1)
        return err_set(err, ERR_FORMAT,
                       "%s: has %g focus planes and %g points in time, of which only one would be "
                       "read; convert it to a single RGB page",
                       file->path, image->z, image->times);
    if (image->width != (double)page->width || image->height != (double)page->height)
        return err_set(err, ERR_FORMAT,
                       "%s: its OME-XML says %g x %g px, its page has %lld x %lld px; correct or "
                       "remove the ImageDescription of the file",
                       file->path, image->width, image->height, (long long)page->width,
                       (long long)page->height);
    return true;
}

static enum driver_answer plan_levels(const struct tiff_file *file, struct tiff_plan *plan,
                                      struct err *err)
{
    static const struct xml_walker walker = { .start = on_start, .end = on_end, .text = on_text };
    struct ome *ome = calloc(1, sizeof *ome);
    bool ok = ome || err_memory(err, file->path);
    if (ok)
        ome->file = file;
    ok = ok &&
         xml_walk(file->description, strlen(file->description), file->path, &walker, ome, err) &&
         check_image(file, &ome->largest, err);
    const struct tiff_directory *base = ok ? page_of(file, &ome->largest) : NULL;
    if (base && base->tile_width > 0) {
        tiff_plan_pyramid(file, base, plan);
        plan->mpp_x = ome->largest.mpp_x;
        plan->mpp_y = ome->largest.mpp_y;
        for (int i = 0; i < ome->n_objectives; i++)
            if (strcmp(ome->objectives[i].id, ome->largest.objective) == 0)
                plan->objective = ome->objectives[i].magnification;
    }
    free(ome);
    return !ok ? DRIVER_FAILED : plan->n_levels > 0 ? DRIVER_OPENED : DRIVER_OTHER;
}

const struct tiff_family family_ome = { .vendor = "ome-tiff",
                                        .claims = claims,
                                        .plan = plan_levels };
