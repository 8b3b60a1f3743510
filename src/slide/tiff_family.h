/* tiff_family.h: the kinds of tiled TIFF. A family recognises its files and says which directories
 * are the levels of the slide, how large they are, and what the scanner wrote about resolution. The
 * rules equal OpenSlide's where it knows the kind. A new kind is one file tiff_family_<name>.c and
 * one line in tiff_families.c. */
#ifndef SLIDE_TIFF_FAMILY_H
#define SLIDE_TIFF_FAMILY_H
#include "slide/driver.h"
#include "slide/tiff_file.h"

#define TIFF_MAX_LEVELS 128

struct tiff_level {
    const struct tiff_directory *directory;
    int64_t width, height; /* may be smaller than the directory, which is then padded */
    double downsample;     /* 0: by the sizes */
};

struct tiff_plan {
    int n_levels; /* from the finest */
    struct tiff_level levels[TIFF_MAX_LEVELS];
    double mpp_x, mpp_y; /* as the scanner wrote; 0: the resolution tags decide */
    double objective;    /* 0: unknown */
};

struct tiff_family {
    const char *vendor;
    /* A tile that is not in the file is blank. Here, what is over it in coarser levels is drawn
     * from finer ones, which only OpenSlide does. */
    bool drawn;
    bool (*claims)(const struct tiff_file *file);
    /* DRIVER_OTHER: not for our reader after all. NULL: only OpenSlide reads this kind. */
    enum driver_answer (*plan)(const struct tiff_file *file, struct tiff_plan *plan,
                               struct err *err);
};

/* The first that claims the file; NULL: none, because it is not tiled. */
const struct tiff_family *tiff_family_of(const struct tiff_file *file);

extern const struct tiff_family family_aperio, family_philips, family_ome, family_generic;

/* um per pixel of the first image in an OME-XML description; false if it is none or does not say.
 */
bool tiff_ome_mpp(const char *description, double *mpp_x, double *mpp_y);

/* For families. */
bool tiff_plan_add(struct tiff_plan *plan, const struct tiff_directory *directory);

/* The levels of the image in `base`: smaller pages with the tag of reduced images; if there are
 * none, its SubIFDs; if there are none, later pages of the same shape, each smaller than the one
 * before. From wide to narrow. */
void tiff_plan_pyramid(const struct tiff_file *file, const struct tiff_directory *base,
                       struct tiff_plan *plan);
#endif
