/* nuclei_slide.c: see nuclei_slide.h: opening, the tissue, the tiles, and what a slide's results
 * were made from. Parts: part.c. */
#include "nuclei/nuclei_slide.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/divide.h"
#include "base/file.h"
#include "base/text.h"
#include "nuclei/part.h"
#include "nuclei/settings.h"
#include "slide/slide_identity.h"
#include "tissue/cohort.h"
#include "tissue/quality.h"

#define NOTE_BAR " | "
#define COARSEST_LEVEL_MPP 0.55 /* coarser levels are used only if --mpp requests them */
#define USUAL_MPP 0.25

struct nuclei_options nuclei_options_defaults(void)
{
    return (struct nuclei_options){ .settings = nuclei_defaults(),
                                    .method = NUCLEI_TISSUE_AUTO,
                                    .label_images = true,
                                    .tile_px = 2048,
                                    .group_tiles = 16 };
}

/* --- what results are made from --- */

static void describe(const struct nuclei_options *o, char out[NUCLEI_HOW_ROOM])
{
    char omit[QUALITY_TEXT_ROOM], how[NUCLEI_HOW_ROOM / 2];
    quality_text(o->omit, omit);
    if (o->labels)
        snprintf(how, sizeof how, "labels given");
    else if (o->finder)
        snprintf(how, sizeof how, "%s", o->finder->text);
    else
        nuclei_settings_text(&o->settings, how, sizeof how);
    snprintf(out, NUCLEI_HOW_ROOM,
             "nuclei 1, %s, mpp=%g slide-mpp=%g%s tile=%lld tissue=%s omit=%s label-images=%d", how,
             o->mpp, o->slide_mpp, o->icc ? " icc=srgb" : "", (long long)o->tile_px,
             o->tissue                         ? "given"
             : o->method == NUCLEI_TISSUE_AUTO ? "auto"
                                               : tissue_method_names[o->method],
             o->omit ? omit : "none", o->label_images);
}

static bool add_input(char line[INPUTS_ROOM], const char *kind, const char *path, struct err *err)
{
    struct identity identity;
    if (!identity_of_sample(path, &identity, err))
        return false;
    inputs_add(line, kind, &identity);
    return true;
}

static char *mask_path(const struct nuclei_options *options, const char *name)
{
    return text_format("%s/%s_mask.png", options->tissue, name);
}

static bool find_inputs(const struct nuclei_options *options, const struct slide_entry *entry,
                        char out[INPUTS_ROOM], struct err *err)
{
    struct identity identity;
    char *labels = NULL, *mask = NULL;
    out[0] = '\0';
    bool ok = slide_identity(entry->path, &identity, err);
    if (ok)
        inputs_add(out, "slide", &identity);
    if (ok && options->labels)
        ok = nuclei_source_find(options->labels, entry->name, &labels, err) &&
             add_input(out, "labels", labels, err);
    if (ok && options->tissue)
        ok = ((mask = mask_path(options, entry->name)) || err_memory(err, "file names")) &&
             add_input(out, "mask", mask, err);
    free(labels), free(mask);
    return ok;
}

bool nuclei_same(const char *path, const char *how_then, const char *inputs_then,
                 const char *how_now, const char *inputs_now, struct err *err)
{
    if (strcmp(how_then, how_now) != 0) {
        char was[300], is[300];
        text_other_words(how_then, how_now, was, sizeof was);
        text_other_words(how_now, how_then, is, sizeof is);
        return err_set(err, ERR_USAGE,
                       "%.350s: was made with other options; pass --overwrite or another -o "
                       "folder\n  then: %s\n  now:  %s",
                       path, was, is);
    }
    return inputs_check(path, inputs_then, inputs_now, err);
}

bool nuclei_slide_hold(const struct nuclei_slide *s, struct err *err)
{
    char now[INPUTS_ROOM];
    return find_inputs(s->options, s->entry, now, err) &&
           inputs_hold(s->entry->path, s->inputs, now, "run again", err);
}

bool nuclei_slide_done(const struct nuclei_options *options, const struct slide_entry *entry,
                       const char *folder, bool *done, struct nuclei_summary *out, struct err *err)
{
    struct nuclei_slide now = { .options = options, .entry = entry, .folder = folder };
    char *path = text_format("%s/%s_nuclei.json", folder, entry->name);
    bool ok = path || err_memory(err, "file names");
    *done = ok && file_exists(path);
    if (*done) {
        describe(options, now.how);
        ok = !file_exists(entry->path) || find_inputs(options, entry, now.inputs, err);
        ok = ok && nuclei_summary_read(&now, path, out, err);
    }
    free(path);
    return ok;
}

void nuclei_slide_clear(const char *folder, const char *name)
{
    static const char *const endings[] = { "nuclei.json", "nuclei.csv", "nuclei.geojson",
                                           "labels.png", "labels.npy" };
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        char *file = text_format("%s_%s", name, endings[i]);
        if (file)
            file_remove_in(folder, file);
        free(file);
    }
    nuclei_parts_remove(folder, name);
}

/* --- opening --- */

static bool is_plain(const struct slide_info *info)
{
    return !strcmp(info->vendor, "png") || !strcmp(info->vendor, "jpeg") ||
           !strcmp(info->vendor, "striped-tiff");
}

static struct raster_request choose_raster(const struct nuclei_options *options,
                                           const struct slide_info *info)
{
    struct raster_request request = { .mpp = options->mpp };
    if (options->finder && options->finder->mpp > 0)
        request.mpp = options->finder->mpp;
    if (request.mpp > 0)
        return (struct raster_request){ .mpp = request.mpp, .mpp_tolerance = 1e9 };
    while (request.level + 1 < info->n_levels &&
           info->mpp * info->levels[request.level].downsample < NUCLEI_FINEST_MPP)
        request.level++;
    if (request.level > 0 &&
        info->mpp * info->levels[request.level].downsample > COARSEST_LEVEL_MPP)
        return (struct raster_request){ .mpp = USUAL_MPP };
    return request;
}

static bool open_raster(struct nuclei_slide *s, struct err *err)
{
    const struct slide_info *info = slide_info(s->slide);
    struct raster_request request = choose_raster(s->options, info);
    s->mpp_l0 = info->mpp;
    if (!(info->mpp > 0))
        return err_set(err, ERR_MISSING, "%s: no um/px in the file; pass --slide-mpp", info->path);
    if (!raster_open(s->slide, &request, &s->raster, err))
        return false;
    double coarsest_mpp = fmax(info->mpp, s->raster.mpp); /* enlarging does not help */
    if (coarsest_mpp > NUCLEI_COARSEST_MPP && !s->options->labels)
        return err_set(err, ERR_USAGE,
                       "%s: %g um/px; nuclei cannot be told apart at more than %g um/px; use a "
                       "finer scan, or --slide-mpp if the file is wrong",
                       info->path, coarsest_mpp, NUCLEI_COARSEST_MPP);
    double margin_um = s->options->finder ? s->options->finder->margin_um
                                          : nuclei_margin_um(&s->options->settings);
    s->margin_px = (int64_t)ceil(margin_um / s->raster.mpp);
    s->labelled =
        s->options->label_images && s->raster.width <= NUCLEI_LABELS_PX / s->raster.height;
    return true;
}

struct nuclei_source_slide nuclei_slide_size(const struct nuclei_slide *s)
{
    const struct slide_info *info = slide_info(s->slide);
    return (struct nuclei_source_slide){
        .width_l0 = info->levels[0].width,
        .height_l0 = info->levels[0].height,
        .objective = info->objective > 0 ? info->objective : 10 / info->mpp, /* 0.25 um/px: 40 */
    };
}

static bool open_source(struct nuclei_slide *s, struct err *err)
{
    struct nuclei_source_slide size = nuclei_slide_size(s);
    char *path = NULL;
    bool ok = !s->options->labels ||
              (nuclei_source_find(s->options->labels, s->entry->name, &path, err) &&
               nuclei_source_open(path, &size, &s->source, err));
    free(path);
    return ok;
}

/* --- tissue --- */

static bool find_tissue(struct nuclei_slide *s, const struct ctx *ctx, struct err *err)
{
    const struct nuclei_options *o = s->options;
    struct tissue_options tissue = tissue_defaults();
    bool everywhere = s->source || is_plain(slide_info(s->slide));
    if (o->method != NUCLEI_TISSUE_AUTO)
        tissue.method = (enum tissue_method)o->method;
    else if (everywhere)
        tissue.method = TISSUE_NONE;
    char *given = o->tissue ? mask_path(o, s->entry->name) : NULL;
    bool ok = !o->tissue || given || err_memory(err, "file names");
    if (ok && given)
        ok = tissue_check_slide(given, s->entry->path, err) &&
             tissue_read(s->slide, given, &s->mask, err);
    else if (ok)
        ok = tissue_find(s->slide, &tissue, ctx, &s->mask, err);
    if (ok)
        image_free(&s->mask.overview);
    ok = ok && quality_omit_found(s->slide, tissue.method, o->omit, ctx, &s->mask, err);
    free(given);
    return ok;
}

/* The mask of an earlier run, if it was made with the same options from the same files. */
static bool read_tissue(struct nuclei_slide *s, const char *path, struct err *err)
{
    char *note = NULL;
    if (!image_read_png_note(path, &note, err))
        return false;
    char *bar = strstr(note, NOTE_BAR);
    if (bar)
        *bar = '\0';
    bool ok = nuclei_same(path, note, bar ? bar + strlen(NOTE_BAR) : "", s->how, s->inputs, err) &&
              tissue_read(s->slide, path, &s->mask, err);
    free(note);
    return ok;
}

/* Written first: parts that exist belong to it. */
static bool settle_tissue(struct nuclei_slide *s, const struct ctx *ctx, struct err *err)
{
    char *folder = text_format("%s/parts/%s", s->folder, s->entry->name);
    char *path = text_format("%s/parts/%s/tissue.png", s->folder, s->entry->name);
    char *note = text_format("%s" NOTE_BAR "%s", s->how, s->inputs);
    bool ok = (folder && path && note) || err_memory(err, "file names");
    if (ok && file_exists(path)) {
        ok = read_tissue(s, path, err);
    } else if (ok) {
        nuclei_parts_remove(s->folder, s->entry->name); /* of whatever made them */
        ok = find_tissue(s, ctx, err) && file_make_folder(folder, err) &&
             image_write_png_noted(path, &s->mask.mask, note, err);
    }
    free(folder), free(path), free(note);
    return ok;
}

/* --- tiles --- */

/* The side of a tile: an image not larger than a tile with its margins is one tile. */
static int64_t tile_side(const struct nuclei_slide *s)
{
    int64_t longest = s->raster.width > s->raster.height ? s->raster.width : s->raster.height;
    return longest <= s->options->tile_px + 2 * s->margin_px ? longest : s->options->tile_px;
}

static bool make_tiles(struct nuclei_slide *s, struct err *err)
{
    int64_t side = tile_side(s);
    int64_t columns = ceil_div(s->raster.width, side), rows = ceil_div(s->raster.height, side);
    double step = s->raster.downsample;
    struct tissue_sums *sums = NULL;
    s->tiles = calloc((size_t)(columns * rows), sizeof *s->tiles);
    bool ok = (s->tiles || err_memory(err, "the tiles")) && tissue_sums_new(&s->mask, &sums, err);
    for (int64_t i = 0; ok && i < columns * rows; i++) {
        struct nuclei_tile tile = { .x = i % columns * side, .y = i / columns * side };
        int64_t right = s->raster.width - tile.x, bottom = s->raster.height - tile.y;
        tile.width = right < side ? right : side, tile.height = bottom < side ? bottom : side;
        if (tissue_fraction(sums, (double)tile.x * step, (double)tile.y * step,
                            (double)tile.width * step, (double)tile.height * step) > 0)
            s->tiles[s->n_tiles++] = tile;
    }
    tissue_sums_free(sums);
    s->n_groups = s->labelled ? 1 : ceil_div(s->n_tiles, s->options->group_tiles);
    return ok;
}

int64_t nuclei_group_tiles(const struct nuclei_slide *s, int64_t group, int64_t *first)
{
    int64_t each = s->labelled ? s->n_tiles : s->options->group_tiles;
    *first = group * each;
    return s->n_tiles - *first < each ? s->n_tiles - *first : each;
}

bool nuclei_slide_open(const struct nuclei_options *options, const struct slide_entry *entry,
                       const char *folder, const struct ctx *ctx, struct nuclei_slide *out,
                       struct err *err)
{
    struct slide_access access = {
        .mpp = options->slide_mpp, .cache = options->cache, .results = folder, .icc = options->icc
    };
    *out = (struct nuclei_slide){ .options = options, .entry = entry, .folder = folder };
    describe(options, out->how);
    if (!slide_open_entry(entry, &access, &out->slide, err))
        return false;
    slide_warn(out->slide, ctx->console);
    return open_raster(out, err) && find_inputs(options, entry, out->inputs, err) &&
           open_source(out, err) && settle_tissue(out, ctx, err) && make_tiles(out, err);
}

void nuclei_slide_close(struct nuclei_slide *s)
{
    slide_close(s->slide);
    nuclei_source_free(s->source);
    tissue_mask_free(&s->mask);
    free(s->tiles);
    *s = (struct nuclei_slide){ 0 };
}
