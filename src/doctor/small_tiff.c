/* small_tiff.c: does the installed OpenSlide read a lossless TIFF that is smaller than a tile?
 * Tested with a small TIFF in memory; docs/slides.md explains what goes wrong. */
#include <fcntl.h>
#include <openslide.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <tiffio.h>
#include <unistd.h>
#include "doctor/doctor.h"
#include "slide/slide.h"

enum { WIDTH = 40, HEIGHT = 50, TILE = 64 };

/* Different everywhere, so that a shifted row shows. */
static void draw(uint8_t px[3], int x, int y)
{
    px[0] = (uint8_t)(5 * x);
    px[1] = (uint8_t)(5 * y);
    px[2] = (uint8_t)(x * y);
}

static bool write_tiff(int fd)
{
    uint8_t tile[TILE * TILE * 3];
    for (int i = 0; i < TILE * TILE; i++)
        draw(&tile[3 * i], i % TILE, i / TILE);
    int own = dup(fd); /* TIFFClose closes it */
    TIFF *tiff = own >= 0 ? TIFFFdOpen(own, "doctor.tiff", "w") : NULL;
    if (!tiff) {
        if (own >= 0)
            close(own);
        return false;
    }
    TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, WIDTH);
    TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, HEIGHT);
    TIFFSetField(tiff, TIFFTAG_TILEWIDTH, TILE);
    TIFFSetField(tiff, TIFFTAG_TILELENGTH, TILE);
    TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, 8);
    TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, 3);
    TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    TIFFSetField(tiff, TIFFTAG_COMPRESSION, COMPRESSION_LZW);
    TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_RGB);
    bool ok = TIFFWriteTile(tiff, tile, 0, 0, 0, 0) > 0 && TIFFWriteDirectory(tiff);
    TIFFClose(tiff);
    return ok;
}

static bool read_by_openslide(const char *path, uint8_t *px)
{
    static uint32_t argb[WIDTH * HEIGHT];
    openslide_t *handle = openslide_open(path);
    if (!handle)
        return false;
    openslide_read_region(handle, argb, 0, 0, 0, WIDTH, HEIGHT);
    bool ok = !openslide_get_error(handle);
    openslide_close(handle);
    for (int i = 0; i < WIDTH * HEIGHT; i++)
        for (int c = 0; c < 3; c++)
            px[3 * i + c] = (uint8_t)(argb[i] >> (16 - 8 * c));
    return ok;
}

static bool read_by_us(const char *path, uint8_t *px)
{
    struct slide *slide = NULL;
    struct image image = { 0 };
    bool ok = slide_open(path, 0, &slide, NULL) &&
              slide_read(slide, 0, 0, 0, WIDTH, HEIGHT, &image, NULL);
    if (ok)
        memcpy(px, image.px, image_bytes(&image));
    image_free(&image);
    slide_close(slide);
    return ok;
}

static bool as_drawn(const uint8_t *px)
{
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        uint8_t want[3];
        draw(want, i % WIDTH, i / WIDTH);
        if (memcmp(want, px + 3 * i, 3) != 0)
            return false;
    }
    return true;
}

static void judge(struct doctor_list *list, const char *path)
{
    uint8_t px[WIDTH * HEIGHT * 3] = { 0 };
    bool ours = read_by_us(path, px) && as_drawn(px);
    bool theirs = read_by_openslide(path, px) && as_drawn(px);
    enum doctor_state state = !ours ? DOCTOR_BROKEN : theirs ? DOCTOR_OK : DOCTOR_NOTE;
    struct doctor_finding *found =
        doctor_add(list, "slides", "small TIFF", state, "%s",
                   !ours    ? "read incorrectly"
                   : theirs ? "read correctly, also by OpenSlide"
                            : "read correctly; OpenSlide with this libtiff scrambles it");
    DOCTOR_MEANS(found, "levels smaller than a tile in LZW, deflate, zstd, WebP or uncompressed "
                        "TIFF pyramids, which microtome reads without OpenSlide");
    if (!ours)
        DOCTOR_REMEDY(found, "overviews and tissue of such slides would be wrong: reinstall "
                             "libtiff6 and libopenslide0, or convert slides to JPEG tiles");
    else if (!theirs)
        DOCTOR_REMEDY(found, "nothing to do here; other programs that use this OpenSlide show "
                             "scrambled overviews of such slides");
}

void doctor_small_tiff(struct doctor_list *list)
{
    char path[64];
    int fd = memfd_create("doctor.tiff", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fd >= 0 && write_tiff(fd)) {
        judge(list, path);
    } else {
        struct doctor_finding *found = doctor_add(list, "slides", "small TIFF", DOCTOR_NOTE,
                                                  "not tested: no small file could be created");
        DOCTOR_MEANS(found, "levels of TIFF pyramids that are smaller than a tile");
        DOCTOR_REMEDY(found, "free some memory and run doctor again");
    }
    if (fd >= 0)
        close(fd);
}
