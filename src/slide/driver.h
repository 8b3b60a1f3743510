/* driver.h: how a kind of file becomes a slide. A driver recognises a file by its content, fills in
 * what slide_info gives, and supplies a source of tiles for every level. Drivers are asked in the
 * order of the table in slide.c; a new kind of file is one file and one line there. */
#ifndef SLIDE_DRIVER_H
#define SLIDE_DRIVER_H
#include <pthread.h>
#include "slide/slide.h"
#include "slide/source.h"

struct slide_driver;

struct slide {
    struct slide_info info; /* its texts and levels are those below */
    char *path, *name, *vendor;
    struct slide_level *levels;      /* [n_levels] */
    struct tile_source *sources;     /* [n_levels]: how each level is decoded */
    struct low_level **lows;         /* [n_levels]: the low level of each, or NULL (low_level.h) */
    struct tile_source *low_sources; /* [n_levels] */
    pthread_mutex_t low_mutex;       /* of the latter two */
    const struct slide_driver *driver;
    void *state;         /* the driver's */
    char *cache;         /* the folder of slide_set_cache; NULL: the user's */
    int64_t image_bytes; /* of slide_set_image_bytes */
    struct icc *icc;     /* of slide_use_icc (icc.h); NULL: pixels as they are in the file */
    bool icc_wanted;
};

enum driver_answer {
    DRIVER_OTHER,  /* not a file of this driver: ask the next one; *err is untouched */
    DRIVER_OPENED, /* all of the slide is filled in */
    DRIVER_FAILED, /* a file of this driver, but damaged or unsupported: *err says why */
};

struct slide_driver {
    const char *name;
    /* slide->path is a readable, regular file that is not empty. If the answer is DRIVER_OTHER,
     * nothing is left behind in the slide. */
    enum driver_answer (*open)(struct slide *slide, struct err *err);
    /* Frees slide->state, which may be NULL or incomplete after DRIVER_FAILED. */
    void (*close)(struct slide *slide);
};

extern const struct slide_driver driver_image, driver_tiff, driver_openslide;

/* As slide_open, but by this driver only: tests compare one with another. */
bool slide_open_by(const struct slide_driver *driver, const char *path, double given_mpp,
                   struct slide **out, struct err *err);

/* For drivers. Allocates levels and sources, zeroed but for a source's slide, level and size of
 * none; the driver fills them in. */
bool slide_set_levels(struct slide *slide, int n, struct err *err);
bool slide_set_vendor(struct slide *slide, const char *vendor, struct err *err);
/* um per level-0 pixel; false, and nothing set, if no slide can have it. */
bool slide_set_mpp(struct slide *slide, double x, double y, enum mpp_source source);

/* The folder for tile caches of this slide. Owned by the caller; NULL if there is none or memory is
 * short. */
char *slide_cache_folder(const struct slide *slide);

/* Adds level, column and row of the tile, and the path, to an error. Returns false. */
bool source_name_place(const struct tile_source *source, int64_t column, int64_t row,
                       struct err *err);
#endif
