/* cmd_info.c: microtome info: the properties of slides. */
#include <stdlib.h>
#include "base/image.h"
#include "base/json.h"
#include "base/console.h"
#include "cli/app.h"
#include "slide/slide.h"
#include "slide/slide_list.h"

#define THUMBNAIL_PX 1024

struct info_options {
    struct common_options common;
    bool json, icc;
    const char *thumbnail, *cache;
    double slide_mpp;
};

/* What to print, and the outcome so far. */
struct telling {
    struct app *app;
    const struct info_options *options;
    struct json_out json;
    int64_t told, failed;
    struct err last; /* of the slides that failed */
};

static void print_text(FILE *out, struct slide *slide)
{
    const struct slide_info *info = slide_info(slide);
    struct slide_icc icc = slide_icc(slide);
    fprintf(out, "%s\n", info->path);
    fprintf(out, "  vendor      %s\n", info->vendor);
    fprintf(out, "  size        %lld x %lld px\n", (long long)info->levels[0].width,
            (long long)info->levels[0].height);
    if (info->mpp_source == MPP_UNKNOWN)
        fprintf(out, "  resolution  unknown; pass --slide-mpp if a command needs it\n");
    else if (info->mpp_source == MPP_GIVEN && info->mpp_file > 0)
        fprintf(out, "  resolution  %.6g um/px (given; the file says %.6g)\n", info->mpp,
                info->mpp_file);
    else if (info->mpp_x == info->mpp_y)
        fprintf(out, "  resolution  %.6g um/px (%s)\n", info->mpp,
                slide_mpp_source_name(info->mpp_source));
    else
        fprintf(out, "  resolution  %.6g x %.6g um/px (%s)\n", info->mpp_x, info->mpp_y,
                slide_mpp_source_name(info->mpp_source));
    if (info->objective > 0)
        fprintf(out, "  objective   %gx\n", info->objective);
    if (icc.damaged)
        fprintf(out, "  ICC profile damaged\n");
    else if (icc.bytes > 0)
        fprintf(out, "  ICC profile %s (%zu bytes); %s\n",
                icc.description[0] ? icc.description : "without a description", icc.bytes,
                icc.usable ? "applied with --icc" : "damaged, or not for RGB");
    for (int i = 0; i < info->n_levels; i++) {
        const struct slide_level *level = &info->levels[i];
        fprintf(out, "  level %-5d %lld x %lld px, downsample %.6g", i, (long long)level->width,
                (long long)level->height, level->downsample);
        if (level->tile_width > 0)
            fprintf(out, ", tiles %lld x %lld", (long long)level->tile_width,
                    (long long)level->tile_height);
        if (level->codec)
            fprintf(out, ", %s", level->codec);
        if (level->reader == READER_FAST)
            fprintf(out, ", fast path\n");
        else if (level->reader == READER_NONE)
            fprintf(out, ", cannot be read: %s\n", level->slow_reason);
        else if (level->reader == READER_ROWS)
            fprintf(out, ", a plain image: %s\n", level->slow_reason);
        else
            fprintf(out, ", through %s%s%s: %s\n", slide_reader_name(level->reader),
                    level->reader == READER_OPENSLIDE ? " " : "",
                    level->reader == READER_OPENSLIDE ? slide_openslide_version() : "",
                    level->slow_reason);
    }
}

static void print_json(struct json_out *json, struct slide *slide)
{
    const struct slide_info *info = slide_info(slide);
    struct slide_icc icc = slide_icc(slide);
    bool known = info->mpp_source != MPP_UNKNOWN;
    json_out_object(json, NULL);
    json_out_text(json, "path", info->path);
    json_out_text(json, "name", info->name);
    json_out_text(json, "vendor", info->vendor);
    json_out_int(json, "width", info->levels[0].width);
    json_out_int(json, "height", info->levels[0].height);
    if (known) {
        json_out_real(json, "mpp", info->mpp);
        json_out_real(json, "mpp_x", info->mpp_x);
        json_out_real(json, "mpp_y", info->mpp_y);
        if (info->mpp_source == MPP_GIVEN && info->mpp_file > 0)
            json_out_real(json, "mpp_file", info->mpp_file);
    } else {
        json_out_text(json, "mpp", NULL);
    }
    json_out_text(json, "mpp_source", slide_mpp_source_name(info->mpp_source));
    if (info->objective > 0)
        json_out_real(json, "objective", info->objective);
    if (icc.bytes > 0 || icc.damaged) {
        json_out_object(json, "icc");
        json_out_text(json, "description", icc.description);
        json_out_int(json, "bytes", (int64_t)icc.bytes);
        json_out_bool(json, "usable", icc.usable);
        json_out_close_object(json);
    }
    json_out_array(json, "levels");
    for (int i = 0; i < info->n_levels; i++) {
        const struct slide_level *level = &info->levels[i];
        json_out_object_line(json, NULL);
        json_out_int(json, "width", level->width);
        json_out_int(json, "height", level->height);
        json_out_real(json, "downsample", level->downsample);
        json_out_int(json, "tile_width", level->tile_width);
        json_out_int(json, "tile_height", level->tile_height);
        if (level->codec)
            json_out_text(json, "codec", level->codec);
        json_out_bool(json, "fast", level->reader == READER_FAST);
        json_out_text(json, "reader", slide_reader_name(level->reader));
        if (level->reader == READER_OPENSLIDE)
            json_out_text(json, "openslide", slide_openslide_version());
        if (level->slow_reason)
            json_out_text(json, "slow_reason", level->slow_reason);
        json_out_close_object(json);
    }
    json_out_close_array(json);
    json_out_close_object(json);
}

static bool write_thumbnail(struct slide *slide, const char *path, struct err *err)
{
    const struct slide_level *level = &slide_info(slide)->levels[0];
    int64_t longest = level->width > level->height ? level->width : level->height;
    double downsample = (double)longest / THUMBNAIL_PX;
    struct image image;
    if (!slide_overview(slide, downsample > 1 ? downsample : 1, NULL, &image, err))
        return false;
    bool ok = image_write_png(path, &image, err);
    image_free(&image);
    return ok;
}

static bool tell_slide(struct telling *telling, const char *path, double mpp, struct err *err)
{
    struct slide *slide = NULL;
    if (!slide_open(path, mpp, &slide, err))
        return false;
    if (telling->options->json)
        print_json(&telling->json, slide);
    else
        print_text(telling->app->out, slide);
    bool ok =
        !telling->options->thumbnail || ((!telling->options->icc || slide_use_icc(slide, err)) &&
                                         slide_set_cache(slide, telling->options->cache, err) &&
                                         write_thumbnail(slide, telling->options->thumbnail, err));
    slide_close(slide);
    return ok;
}

static void tell_failure(struct telling *telling, const char *path, const struct err *err)
{
    telling->failed++;
    telling->last = *err;
    if (telling->options->json) {
        json_out_object(&telling->json, NULL);
        json_out_text(&telling->json, "path", path);
        json_out_text(&telling->json, "error", err->text);
        json_out_close_object(&telling->json);
    }
}

/* Prints all slides of one operand. */
static bool tell_operand(struct telling *telling, char *operand, bool alone, struct err *err)
{
    struct slide_list list;
    if (!slide_list_read(&operand, 1, &list, err))
        return false;
    if (telling->options->thumbnail && (!alone || list.n != 1)) {
        slide_list_free(&list);
        return err_set(err, ERR_USAGE, "--thumbnail works with a single slide only");
    }
    alone = alone && list.n == 1;
    for (size_t i = 0; i < list.n && !ctx_stopped(&telling->app->ctx); i++) {
        const struct slide_entry *entry = &list.entries[i];
        double given = telling->options->slide_mpp;
        struct err why = { 0 };
        telling->told++;
        if (tell_slide(telling, entry->path, given > 0 ? given : entry->mpp, &why))
            continue;
        tell_failure(telling, entry->path, &why);
        if (!alone)
            console_warn(telling->app->ctx.console, "%s", why.text);
    }
    slide_list_free(&list);
    return true;
}

static bool run_info(struct app *app, const void *options, const struct args_result *operands,
                     struct err *err)
{
    struct telling telling = { .app = app, .options = options };
    bool ok = true;
    if (telling.options->json) {
        json_out_begin(&telling.json, app->out);
        json_out_array(&telling.json, NULL);
    }
    for (int i = 0; ok && i < operands->n_operands; i++)
        ok = tell_operand(&telling, operands->operands[i], operands->n_operands == 1, err);
    if (telling.options->json) {
        json_out_close_array(&telling.json);
        json_out_end(&telling.json);
    }
    if (!ok)
        return false;
    if (ctx_stopped(&app->ctx))
        return err_stopped(err);
    if (telling.failed == 1 && telling.told == 1)
        *err = telling.last;
    else if (telling.failed > 0)
        err_set(err, telling.last.kind, "%lld of %lld slides could not be read",
                (long long)telling.failed, (long long)telling.told);
    return telling.failed == 0;
}

#define AT(field) offsetof(struct info_options, field)

static const struct arg args[] = {
    FLAG_ARG("json", json, "print JSON: an array with an object for each slide"),
    TEXT_ARG(
        "thumbnail", thumbnail, "FILE", NULL,
        "also write a PNG of the whole slide, with the longer side 1024 px; single slide only"),
    FLAG_ARG("icc", icc, "convert the colours of the thumbnail to sRGB by the slide's ICC profile"),
    SLIDE_MPP_ARG,
    CACHE_ARG(CACHE_OF_USER),
    COMMON_ARGS,
};

const struct command cmd_info = {
    .spec = { .name = "info",
              .summary = "show the properties of slides",
              .operands = "SLIDES...",
              .min_operands = 1,
              .max_operands = 1 << 20,
              .description =
                  "Prints vendor, size, levels, um per pixel and its source, the ICC profile, and "
                  "whether a level is read by the fast path or through OpenSlide. " SLIDES_ARE,
              .example = "microtome info slide.svs\n"
                         "microtome info --json slides/ > slides.json\n"
                         "microtome info --thumbnail slide.png slide.svs",
              .args = args,
              .n_args = sizeof args / sizeof *args },
    .options_size = sizeof(struct info_options),
    .run = run_info,
};
