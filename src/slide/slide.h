/* slide.h: a file -> pixels. A driver (driver.h) opens it and supplies metadata and tiles.
 * Coordinates within a level are pixels of that level, from the top left; level 0 is the finest. */
#ifndef SLIDE_SLIDE_H
#define SLIDE_SLIDE_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "base/image.h"

struct slide;

/* What reads a level. */
enum slide_reader {
    READER_OPENSLIDE,
    READER_FAST,    /* our own reader of TIFF tiles */
    READER_LIBTIFF, /* tiles of a TIFF whose compression or colours only libtiff reads */
    READER_ROWS,    /* a plain image, from its top; slow_reason says where its pixels go */
    READER_NONE,    /* nothing reads it; using the level is an error */
};

struct slide_level {
    int64_t width, height;
    double downsample; /* level-0 pixels per pixel of this level; the real ratio, often not 2^n */
    int64_t tile_width, tile_height; /* 0 if not tiled or unknown */
    const char *codec;               /* "JPEG", "LZW"; NULL if unknown */
    enum slide_reader reader;
    const char *slow_reason; /* why not the fast path, for display; NULL if it is */
};

enum mpp_source {
    MPP_UNKNOWN,
    MPP_GIVEN,     /* --slide-mpp or the mpp column of the slide list */
    MPP_VENDOR,    /* what the scanner wrote */
    MPP_TIFF_TAGS, /* XResolution/YResolution */
    MPP_IMAGE,     /* PNG's pHYs or JPEG's density */
};

/* Fixed once the slide is open. There is at least one level, levels[0] is the finest; mpp is 0 if
 * and only if mpp_source is MPP_UNKNOWN. */
struct slide_info {
    const char *path, *name; /* name: file name without folder and extension */
    const char *vendor;      /* as named by OpenSlide: "aperio", "generic-tiff"; "ome-tiff"; "png",
                                "jpeg" or "striped-tiff" */
    int n_levels;
    const struct slide_level *levels;
    double mpp; /* um per level-0 pixel, mean of x and y; 0 if unknown */
    double mpp_x, mpp_y;
    double mpp_file; /* from the file, even if another number was given; 0 if none */
    enum mpp_source mpp_source;
    double objective; /* 20, 40, ...; 0 if unknown */
};

/* Opens a slide: up to 10 ms, and it keeps files and a cache open, so open a slide once. given_mpp
 * > 0 overrides the value in the file. The caller owns *out; close with slide_close. A slide may be
 * read from many threads at once. */
bool slide_open(const char *path, double given_mpp, struct slide **out, struct err *err);
/* Where decoded tiles of large plain images, and low levels that the file does not have, are kept
 * (tile_cache.h); NULL: in the user's cache. Call it before pixels are read. */
bool slide_set_cache(struct slide *slide, const char *folder, struct err *err);
/* A plain image whose pixels take more bytes than this is kept as tiles in the cache, a smaller one
 * in memory; SLIDE_IMAGE_BYTES if it is not called. */
#define SLIDE_IMAGE_BYTES (INT64_C(96) << 20)
void slide_set_image_bytes(struct slide *slide, int64_t bytes);
void slide_close(struct slide *slide); /* NULL-safe */
const struct slide_info *slide_info(const struct slide *slide);
const char *slide_mpp_source_name(enum mpp_source source);
const char *slide_openslide_version(void);               /* "3.4.1" */
const char *slide_reader_name(enum slide_reader reader); /* "fast path", "OpenSlide", ... */

/* The ICC profile in the file, owned by the caller; NULL and true if there is none. Says nothing
 * about its validity. */
bool slide_icc_profile(struct slide *slide, uint8_t **bytes, size_t *n, struct err *err);
/* What it is, for display. */
struct slide_icc {
    size_t bytes;          /* 0: there is none */
    bool usable;           /* by slide_use_icc */
    bool damaged;          /* its bytes cannot be read from the file */
    char description[128]; /* "" if it has none */
};
struct slide_icc slide_icc(struct slide *slide);
/* From now on every pixel that is read is converted to sRGB by the file's ICC profile; without a
 * profile nothing changes. To be called before anything is read. The error of a damaged profile, or
 * one that is not for RGB, names the file. */
bool slide_use_icc(struct slide *slide, struct err *err);

/* Reads RGB of one region: [height, width, 3]. Transparent pixels and those outside the slide are
 * white. The caller owns *out. Every tile is decoded again: for many regions use band.h. */
bool slide_read(struct slide *slide, int level, int64_t x, int64_t y, int64_t width, int64_t height,
                struct image *out, struct err *err);

struct ctx;
/* The whole slide, area-averaged to about 1/downsample: width = ceil(level-0 width / downsample).
 * Read band by band from the best level; memory is bounded by the result and one band. 10 ms to
 * seconds: what counts is the size of the level it comes from. Uses the threads of ctx and stops
 * with it; ctx NULL: the calling thread alone, to the end. The pixels are the same. */
bool slide_overview(struct slide *slide, double downsample, const struct ctx *ctx,
                    struct image *out, struct err *err);
#endif
