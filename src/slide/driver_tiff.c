/* driver_tiff.c: tiled TIFF files by our own reader. The family (tiff_family.h) finds the levels;
 * here each level gets a reader: ours, libtiff tile by tile, or OpenSlide, if it has the level. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "slide/codec.h"
#include "slide/slide_private.h"
#include "slide/tiff_family.h"
#include "slide/tiff_rgba.h"

struct tiff_state {
    struct tiff_file *file;
    const struct tiff_family *family;
    struct openslide_state openslide; /* open if a level needs it */
    bool openslide_failed;
};

static bool tiff_decoder_new(const struct tile_source *source, void **out, struct err *err)
{
    struct tile_decoder *decoder = NULL;
    const struct tiff_state *state = source->slide->state;
    bool ok = tile_decoder_new(state->file, source->of, source->reduce, &decoder, err);
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
    const struct tiff_state *state = source->slide->state;
    bool ok = rgba_decoder_new(state->file, source->of, &decoder, err);
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

/* A level that nothing reads: an error where it is used. */
static bool none_decoder_new(const struct tile_source *source, void **out, struct err *err)
{
    (void)out;
    const struct slide_level *level = &source->slide->levels[source->level];
    return err_set(
        err, ERR_FORMAT,
        "%s: level %d cannot be read: %s; convert the slide to 8-bit RGB in tiles of 256 "
        "or 512 px, or use another level",
        source->slide->path, source->level, level->slow_reason);
}

static void none_decoder_free(void *decoder)
{
    (void)decoder;
}

static const struct tile_source_ops none_source_ops = {
    .decoder_new = none_decoder_new,
    .decoder_free = none_decoder_free,
};

static bool check_complete(const struct slide *slide, int level, const struct tiff_directory *d,
                           struct err *err)
{
    if (d->beyond < 0)
        return true;
    int64_t tile = d->beyond % (d->columns * d->rows);
    return err_set(err, ERR_FORMAT,
                   "%s: level %d, tile column %lld, row %lld is beyond the end of the file: the "
                   "file is truncated or damaged; copy it again",
                   slide->path, level, (long long)(tile % d->columns),
                   (long long)(tile / d->columns));
}

/* Content that would be silently ignored is an error: channels beyond RGB, and further full-size
 * pages (a channel or a focus plane each). */
static bool check_whole(const struct tiff_file *file, const struct tiff_directory *first,
                        struct err *err)
{
    int pages = 0;
    if (first->shown < first->channels)
        return err_set(err, ERR_FORMAT,
                       "%s: has %d channels, of which only %d would be read; convert it to RGB",
                       file->path, first->channels, first->shown);
    for (int i = 0; i < file->n_pages; i++) {
        const struct tiff_directory *d = &file->directories[i];
        pages += d->width == first->width && d->height == first->height && !d->reduced && !d->mask;
    }
    if (pages > 1)
        return err_set(err, ERR_FORMAT,
                       "%s: has %d full-size pages (a channel or a focus plane each), of which "
                       "only the first would be read; convert it to a single RGB page",
                       file->path, pages);
    return true;
}

static bool measure_levels(struct slide *slide, const struct tiff_plan *plan, struct err *err)
{
    const struct tiff_level *first = &plan->levels[0];
    if (!slide_set_levels(slide, plan->n_levels, err))
        return false;
    for (int i = 0; i < plan->n_levels; i++) {
        const struct tiff_level *from = &plan->levels[i];
        struct slide_level *level = &slide->levels[i];
        if (from->width < 1 || from->height < 1 || from->directory->width < from->width ||
            from->directory->height < from->height || from->width > INT32_MAX ||
            from->height > INT32_MAX)
            return err_set(err, ERR_FORMAT, "%s: the size of level %d is out of range", slide->path,
                           i);
        *level = (struct slide_level){
            .width = from->width,
            .height = from->height,
            .downsample = i == 0                 ? 1
                          : from->downsample > 0 ? from->downsample
                                                 : ((double)first->height / (double)from->height +
                                                    (double)first->width / (double)from->width) /
                                                       2,
            .tile_width = from->directory->tile_width,
            .tile_height = from->directory->tile_height,
            .codec = from->directory->codec ? from->directory->codec->name : NULL,
        };
        if (i > 0 && level->downsample < level[-1].downsample)
            return err_set(err, ERR_FORMAT,
                           "%s: level %d (%lld x %lld px) is finer than level %d: the slide is "
                           "damaged or its levels are out of order",
                           slide->path, i, (long long)level->width, (long long)level->height,
                           i - 1);
    }
    return true;
}

/* Whether OpenSlide decodes such tiles: itself, or by libtiff; but with the libtiff of Debian 12,
 * it scrambles what libtiff decodes if the level is smaller than a tile. */
static bool openslide_can(const struct tiff_directory *d)
{
    bool small = d->tile_width > d->width || d->tile_height > d->height;
    return d->codec == &codec_jpeg || d->codec == &codec_jp2k ||
           (!small && (d->by_libtiff || !d->unfit));
}

/* Whether OpenSlide has this level too: the same number, size and scale. */
static bool openslide_has(struct slide *slide, int level)
{
    struct tiff_state *state = slide->state;
    const struct slide_level *facts = &slide->levels[level];
    int64_t width = 0, height = 0;
    if (!state->openslide.handle && !state->openslide_failed)
        state->openslide_failed = !openslide_state_open(slide->path, &state->openslide, NULL);
    if (state->openslide_failed ||
        openslide_get_level_count(state->openslide.handle) != slide->info.n_levels)
        return false;
    openslide_get_level_dimensions(state->openslide.handle, level, &width, &height);
    double downsample = openslide_get_level_downsample(state->openslide.handle, level);
    return width == facts->width && height == facts->height &&
           fabs(downsample - facts->downsample) < 1e-9 * downsample;
}

/* Why a level is not read by us; NULL: it is. *holes: a finer level has missing tiles, which are
 * blank there. */
static const char *why_slow(const struct tiff_family *family, const struct tiff_directory *d,
                            bool first, bool *holes)
{
    const char *why = d->unfit;
    if (!why && !first && family->drawn && (*holes || d->n_absent > 0))
        why = "tiles are missing from the file";
    *holes = *holes || d->n_absent > 0;
    return why;
}

static void choose_reader(struct slide *slide, int number, const struct tiff_directory *d,
                          bool *holes)
{
    struct tiff_state *state = slide->state;
    struct slide_level *level = &slide->levels[number];
    struct tile_source *source = &slide->sources[number];
    level->slow_reason = why_slow(state->family, d, number == 0, holes);
    *source = (struct tile_source){ .slide = slide,
                                    .level = number,
                                    .width = level->width,
                                    .height = level->height,
                                    .tile_width = d->tile_width,
                                    .tile_height = d->tile_height,
                                    .of = d };
    if (!level->slow_reason) {
        level->reader = READER_FAST;
        source->ops = &tiff_source_ops;
        source->max_reduce = tile_decoder_max_reduce(state->file, d);
    } else if (d->by_libtiff && d->tile_width <= TIFF_RGBA_MAX_PX &&
               d->tile_height <= TIFF_RGBA_MAX_PX) {
        level->reader = READER_LIBTIFF;
        source->ops = &rgba_source_ops;
    } else if (openslide_can(d) && openslide_has(slide, number)) {
        level->reader = READER_OPENSLIDE;
        *source = openslide_source(slide, number, &state->openslide);
    } else {
        level->reader = READER_NONE;
        source->ops = &none_source_ops;
        source->tile_width = source->tile_height = 256;
    }
}

static bool choose_readers(struct slide *slide, const struct tiff_plan *plan, struct err *err)
{
    bool holes = false;
    for (int i = 0; i < plan->n_levels; i++) {
        const struct tiff_directory *d = plan->levels[i].directory;
        if (!check_complete(slide, i, d, err))
            return false;
        choose_reader(slide, i, d, &holes);
    }
    const struct slide_level *first = &slide->levels[0];
    if (first->reader != READER_NONE)
        return true;
    return err_set(err, ERR_FORMAT,
                   "%s: cannot be read: %s (TIFF compression %d, %d x %d bit); convert it to 8-bit "
                   "RGB",
                   slide->path, first->slow_reason, plan->levels[0].directory->compression,
                   plan->levels[0].directory->samples, plan->levels[0].directory->bits);
}

static enum driver_answer open_planned(struct slide *slide, struct err *err)
{
    struct tiff_state *state = slide->state;
    struct tiff_plan *plan = calloc(1, sizeof *plan);
    if (!plan) {
        err_memory(err, slide->path);
        return DRIVER_FAILED;
    }
    enum driver_answer answer = state->family->plan(state->file, plan, err);
    if (answer == DRIVER_OPENED) {
        slide->info.objective = plan->objective;
        bool ok = slide_set_vendor(slide, state->family->vendor, err) &&
                  check_whole(state->file, plan->levels[0].directory, err) &&
                  measure_levels(slide, plan, err) && choose_readers(slide, plan, err);
        if (!slide_set_mpp(slide, plan->mpp_x, plan->mpp_y, MPP_VENDOR))
            slide_set_mpp(slide, state->file->mpp_x, state->file->mpp_y, MPP_TIFF_TAGS);
        answer = ok ? DRIVER_OPENED : DRIVER_FAILED;
    }
    free(plan);
    return answer;
}

static bool is_tiff(const char *path)
{
    char head[4] = { 0 };
    FILE *stream = fopen(path, "rb");
    size_t n = stream ? fread(head, 1, sizeof head, stream) : 0;
    if (stream)
        fclose(stream);
    return tiff_file_begins(head, n);
}

static void tiff_close(struct slide *slide)
{
    struct tiff_state *state = slide->state;
    if (!state)
        return;
    tiff_file_close(state->file);
    openslide_state_close(&state->openslide);
    free(state);
    slide->state = NULL;
}

/* Whether OpenSlide may open a file whose directories libtiff cannot read: Hamamatsu's files of
 * more than 4 GB. It would open others too if only SubIFDs are missing, and fail at their tiles. */
static bool only_openslide_reads(const char *path)
{
    const char *vendor = openslide_detect_vendor(path);
    return vendor && strcmp(vendor, "hamamatsu") == 0;
}

static enum driver_answer tiff_open(struct slide *slide, struct err *err)
{
    if (!is_tiff(slide->path))
        return DRIVER_OTHER;
    struct tiff_state *state = calloc(1, sizeof *state);
    struct err own = { 0 };
    enum driver_answer answer = DRIVER_OTHER;
    slide->state = state;
    if (!state) {
        err_memory(err, slide->path);
        return DRIVER_FAILED;
    }
    if (tiff_file_open(slide->path, &state->file, &own)) {
        state->family = tiff_family_of(state->file);
        if (state->family && state->family->plan)
            answer = open_planned(slide, err);
    } else if (own.kind != ERR_FORMAT || !only_openslide_reads(slide->path)) {
        err_set(err, own.kind, "%s", own.text);
        answer = DRIVER_FAILED;
    }
    if (answer == DRIVER_OTHER)
        tiff_close(slide);
    return answer;
}

const struct slide_driver driver_tiff = { .name = "TIFF", .open = tiff_open, .close = tiff_close };
