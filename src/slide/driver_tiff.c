/* driver_tiff.c: tiled TIFF files. Matches the levels that OpenSlide finds to TIFF directories, and
 * decides whether our own reader gives the same pixels. */
#include <stdio.h>
#include <string.h>
#include "slide/slide_private.h"
#include "slide/tiff_rgba.h"

/* How OpenSlide handles tiles without data. */
enum absent_tiles {
    ABSENT_FAIL,  /* reading them fails */
    ABSENT_BLANK, /* they are blank */
    ABSENT_DRAWN, /* they, and what lies over them in coarser levels, are drawn from finer ones */
};

/* The formats that are plain grids of TIFF tiles to OpenSlide, and how it finds their levels. */
struct tiff_family {
    const char *vendor;
    bool by_order; /* level i is tiled directory number i; else the one of its size */
    bool padded;   /* a directory may be larger than its level */
    enum absent_tiles absent;
};

static const struct tiff_family families[] = {
    { .vendor = "generic-tiff", .absent = ABSENT_FAIL },
    { .vendor = "aperio", .by_order = true, .absent = ABSENT_DRAWN },
    { .vendor = "philips", .by_order = true, .padded = true, .absent = ABSENT_BLANK },
};

static const struct tiff_family *find_family(const char *vendor)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strcmp(families[i].vendor, vendor) == 0)
            return &families[i];
    return NULL;
}

static const struct tiff_directory *find_by_order(const struct tiff_file *file, int level)
{
    for (int i = 0; i < file->n_directories; i++)
        if (file->directories[i].tile_width > 0 && level-- == 0)
            return &file->directories[i];
    return NULL;
}

/* The one directory of this size that is the first or a reduced image. NULL if there are none or
 * several: then it is unclear which one OpenSlide uses. */
static const struct tiff_directory *find_by_size(const struct tiff_file *file, int64_t width,
                                                 int64_t height)
{
    const struct tiff_directory *found = NULL;
    for (int i = 0; i < file->n_directories; i++) {
        const struct tiff_directory *d = &file->directories[i];
        if (d->tile_width == 0 || d->width != width || d->height != height ||
            (i > 0 && !d->reduced))
            continue;
        if (found)
            return NULL;
        found = d;
    }
    return found;
}

static bool sizes_agree(const struct tiff_family *family, const struct tiff_directory *d,
                        const struct slide_level *level)
{
    if (d->tile_width != level->tile_width || d->tile_height != level->tile_height)
        return false;
    if (family->padded)
        return d->width >= level->width && d->height >= level->height;
    return d->width == level->width && d->height == level->height;
}

/* NULL if we can decode the level, else the reason. *drawn: a finer level has missing tiles. */
static const char *why_slow(const struct tiff_family *family, const struct tiff_directory *d,
                            const struct slide_level *level, bool *drawn)
{
    if (!d || !sizes_agree(family, d, level))
        return "no TIFF directory clearly matches this level";
    if (d->unfit)
        return d->unfit;
    if (d->n_absent > 0 && family->absent == ABSENT_DRAWN)
        *drawn = true;
    if (*drawn || (d->n_absent > 0 && family->absent == ABSENT_FAIL))
        return "tiles are missing from the file";
    return NULL;
}

/* Whether OpenSlide decodes a directory wrongly that may be this level. */
static bool may_be_scrambled(const struct tiff_file *file, const struct tiff_directory *d,
                             const struct slide_level *level)
{
    if (d && d->scrambled)
        return true;
    for (int i = 0; i < file->n_directories; i++)
        if (file->directories[i].scrambled && file->directories[i].width == level->width &&
            file->directories[i].height == level->height)
            return true;
    return false;
}

/* Who reads the level, and why it is not the fast path. */
static void choose_reader(const struct tiff_file *file, const struct tiff_family *family,
                          const struct tiff_directory *d, struct slide_level *level, bool *drawn)
{
    level->slow_reason = why_slow(family, d, level, drawn);
    level->reader = level->slow_reason ? READER_OPENSLIDE : READER_FAST;
    if (level->reader == READER_FAST || !may_be_scrambled(file, d, level))
        return;
    bool readable = d && sizes_agree(family, d, level) && d->tile_width <= TIFF_RGBA_MAX_PX &&
                    d->tile_height <= TIFF_RGBA_MAX_PX;
    level->reader = readable ? READER_LIBTIFF : READER_NONE;
    level->slow_reason = "smaller than its tiles, which OpenSlide scrambles";
}

static bool check_complete(const struct slide *slide, int level, const struct tiff_directory *d,
                           struct err *err)
{
    if (d->beyond < 0)
        return true;
    return err_set(err, ERR_FORMAT,
                   "%s: level %d, tile column %lld, row %lld is beyond the end of the file: the "
                   "file is truncated or damaged; copy it again",
                   slide->path, level, (long long)(d->beyond % d->columns),
                   (long long)(d->beyond / d->columns));
}

/* Content that would be silently ignored is an error: channels beyond RGB, and further full-size
 * pages (a channel or a focus plane each). */
static bool check_whole(const struct slide *slide, struct err *err)
{
    const struct openslide_state *state = slide->state;
    const struct tiff_directory *first = &state->tiff->directories[0];
    int pages = 0;
    if (first->shown < first->channels)
        return err_set(err, ERR_FORMAT,
                       "%s: has %d channels, of which only %d would be read; convert it to RGB",
                       slide->path, first->channels, first->shown);
    for (int i = 0; i < state->tiff->n_directories; i++) {
        const struct tiff_directory *d = &state->tiff->directories[i];
        pages += d->width == first->width && d->height == first->height && !d->reduced && !d->mask;
    }
    if (pages > 1)
        return err_set(err, ERR_FORMAT,
                       "%s: has %d full-size pages (a channel or a focus plane each), of which "
                       "only the first would be read; convert it to a single RGB page",
                       slide->path, pages);
    return true;
}

static bool tiff_decoder_new(const struct tile_source *source, void **out, struct err *err)
{
    struct tile_decoder *decoder = NULL;
    const struct openslide_state *state = source->slide->state;
    bool ok = tile_decoder_new(state->tiff, source->of, &decoder, err);
    *out = decoder;
    return ok;
}

static void tiff_decoder_free(void *decoder)
{
    tile_decoder_free(decoder);
}

static bool tiff_tile(const struct tile_source *source, void *decoder, int64_t column, int64_t row,
                      uint8_t *dst, int64_t stride_bytes, struct err *err)
{
    return tile_decode(decoder, column, row, dst, stride_bytes, err) ||
           source_name_place(source, column, row, err);
}

static const struct tile_source_ops tiff_source_ops = {
    .decoder_new = tiff_decoder_new,
    .decoder_free = tiff_decoder_free,
    .decode = tiff_tile,
};

static bool libtiff_decoder_new(const struct tile_source *source, void **out, struct err *err)
{
    struct rgba_decoder *decoder = NULL;
    const struct openslide_state *state = source->slide->state;
    bool ok = rgba_decoder_new(state->tiff, source->of, &decoder, err);
    *out = decoder;
    return ok;
}

static void libtiff_decoder_free(void *decoder)
{
    rgba_decoder_free(decoder);
}

static bool libtiff_tile(const struct tile_source *source, void *decoder, int64_t column,
                         int64_t row, uint8_t *dst, int64_t stride_bytes, struct err *err)
{
    return rgba_decode(decoder, column, row, dst, stride_bytes, err) ||
           source_name_place(source, column, row, err);
}

static const struct tile_source_ops rgba_source_ops = {
    .decoder_new = libtiff_decoder_new,
    .decoder_free = libtiff_decoder_free,
    .decode = libtiff_tile,
};

static void all_slow(struct slide *slide, const char *why)
{
    for (int i = 0; i < slide->info.n_levels; i++)
        slide->levels[i].slow_reason = why;
}

static struct tile_source tiff_source(struct slide *slide, int level,
                                      const struct tiff_directory *d)
{
    const struct slide_level *facts = &slide->levels[level];
    return (struct tile_source){ .ops = facts->reader == READER_FAST ? &tiff_source_ops
                                                                     : &rgba_source_ops,
                                 .slide = slide,
                                 .level = level,
                                 .width = facts->width,
                                 .height = facts->height,
                                 .tile_width = facts->tile_width,
                                 .tile_height = facts->tile_height,
                                 .of = d };
}

static bool match_tiff(struct slide *slide, struct err *err)
{
    struct openslide_state *state = slide->state;
    const struct tiff_family *family = find_family(slide->info.vendor);
    bool drawn = false;
    if (!family) {
        all_slow(slide, "not a plain tiled TIFF");
        return true;
    }
    if (!tiff_file_open(slide->path, &state->tiff, NULL)) {
        all_slow(slide, "libtiff cannot read its directories");
        return true;
    }
    if (!check_whole(slide, err))
        return false;
    for (int i = 0; i < slide->info.n_levels; i++) {
        struct slide_level *level = &slide->levels[i];
        const struct tiff_directory *d =
            family->by_order ? find_by_order(state->tiff, i)
                             : find_by_size(state->tiff, level->width, level->height);
        if (d && !check_complete(slide, i, d, err))
            return false;
        choose_reader(state->tiff, family, d, level, &drawn);
        if (level->reader == READER_FAST || level->reader == READER_LIBTIFF)
            slide->sources[i] = tiff_source(slide, i, d);
    }
    return true;
}

static bool is_tiff(const char *path)
{
    static const char heads[4][5] = { "II*\0", "MM\0*", "II+\0", "MM\0+" };
    char head[4] = { 0 };
    FILE *stream = fopen(path, "rb");
    bool full = stream && fread(head, 1, sizeof head, stream) == sizeof head;
    if (stream)
        fclose(stream);
    for (int i = 0; full && i < 4; i++)
        if (memcmp(head, heads[i], sizeof head) == 0)
            return true;
    return false;
}

static enum driver_answer tiff_open(struct slide *slide, struct err *err)
{
    if (!is_tiff(slide->path))
        return DRIVER_OTHER;
    return openslide_state_open(slide, err) && match_tiff(slide, err) ? DRIVER_OPENED
                                                                      : DRIVER_FAILED;
}

const struct slide_driver driver_tiff = { .name = "TIFF",
                                          .open = tiff_open,
                                          .close = openslide_state_close };
