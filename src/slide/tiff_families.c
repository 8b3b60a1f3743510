/* tiff_families.c: the table of families, in the order in which they are asked, as in OpenSlide. */
#include <string.h>
#include <tiff.h>
#include "slide/tiff_entry.h"
#include "slide/tiff_family.h"

#define NDPI_TAG 65420 /* in every file of Hamamatsu, and nowhere else */

/* One JPEG per level, which is not cut into tiles. */
static bool is_hamamatsu(const struct tiff_file *file)
{
    return tiff_entry_exists(file->fd, file->directories[0].offset, NDPI_TAG);
}

/* Tiles overlap. */
static bool is_trestle(const struct tiff_file *file)
{
    return strncmp(file->software, "MedScan", 7) == 0 && file->description[0];
}

/* Several areas of the glass, each with levels. */
static bool is_leica(const struct tiff_file *file)
{
    return strstr(file->description, "http://www.leica-microsystems.com/scn/2010/") != NULL;
}

/* Tiles overlap. */
static bool is_ventana(const struct tiff_file *file)
{
    return file->iscan;
}

static const struct tiff_family hamamatsu = { .vendor = "hamamatsu", .claims = is_hamamatsu };
static const struct tiff_family trestle = { .vendor = "trestle", .claims = is_trestle };
static const struct tiff_family leica = { .vendor = "leica", .claims = is_leica };
static const struct tiff_family ventana = { .vendor = "ventana", .claims = is_ventana };

static const struct tiff_family *const families[] = {
    &hamamatsu,      &trestle, &family_aperio, &leica,
    &family_philips, &ventana, &family_ome,    &family_generic,
};

const struct tiff_family *tiff_family_of(const struct tiff_file *file)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (families[i]->claims(file))
            return families[i];
    return NULL;
}
