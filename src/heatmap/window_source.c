/* window_source.c: see window_source.h. */
#include "heatmap/window_source.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "heatmap/specimen.h"
#include "prepare/stain_need.h"
#include "slide/slide_identity.h"

#define ANY_TOLERANCE 100 /* predict has accepted the slide's um/px */

struct window_source {
    struct specimen specimen;
};

/* What the line of options says after "word="; NULL if nothing. */
static const char *option_value(const char *options, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = options; *(at += strspn(at, " ")); at += strcspn(at, " "))
        if (strncmp(at, word, length) == 0 && at[length] == '=')
            return at + length + 1;
    return NULL;
}

static bool option_is(const char *options, const char *word, const char *value)
{
    const char *found = option_value(options, word);
    size_t length = strlen(value);
    return found && strncmp(found, value, length) == 0 &&
           (found[length] == ' ' || found[length] == 0);
}

/* Is the file at the path still the one that was scored? */
static bool check_identity(const struct heatmap_info *info, struct err *err)
{
    struct identity identity;
    char then[INPUTS_ROOM], now[INPUTS_ROOM] = "";
    bool store = specimen_is_store(info->path);
    snprintf(then, sizeof then, "%.*s", (int)strcspn(info->inputs, " "), info->inputs);
    if (!file_exists(info->path))
        return err_set(err, ERR_MISSING,
                       "%s: the slide of the heatmap is not there any more; put it back, or "
                       "predict it again where it is now",
                       info->path);
    if (!(store ? identity_of_sample(info->path, &identity, err)
                : slide_identity(info->path, &identity, err)))
        return false;
    inputs_add(now, store ? "store" : "slide", &identity);
    return inputs_check(info->slide, then, now, err);
}

static bool choose_target(const struct heatmap_info *info, const struct window_access *access,
                          struct stain_fit *out, struct err *err)
{
    struct stain_need need;
    if (option_is(info->options, "template", "model")) {
        if (!stain_need_of(access->config, &need, err))
            return false;
        *out = need.target;
        return need.target.method == info->stain.method ||
               err_set(err, ERR_USAGE,
                       "%s: its stains were normalised as its model says, and this model says "
                       "otherwise; pass the model that made the heatmap",
                       info->slide);
    }
    if (option_is(info->options, "template", "given") && !access->stain_template)
        return err_set(err, ERR_USAGE,
                       "%s: its stains were normalised to a template; pass the same --template",
                       info->slide);
    return stain_need_target(info->stain.method, access->stain_template, out, err);
}

static bool open_pixels(const struct heatmap_info *info, const struct window_access *access,
                        struct specimen *out, struct err *err)
{
    const char *level = option_value(info->options, "level");
    struct slide_entry entry = { .path = info->path, .name = info->slide, .origin = info->path };
    struct slide_access slide_access = { .mpp = info->mpp_l0,
                                         .cache = access->cache,
                                         .results = access->results,
                                         .icc = option_is(info->options, "icc", "srgb") };
    bool whole = level || option_is(info->options, "mpp", "0");
    struct raster_request request = { .mpp = whole ? 0 : info->mpp,
                                      .mpp_tolerance = ANY_TOLERANCE,
                                      .level = level ? (int)strtol(level, NULL, 10) : 0 };
    if (strcmp(info->mode, "whole") == 0)
        request = (struct raster_request){ .downsample = info->downsample };
    if (!specimen_open(&entry, &slide_access, &request, out, err))
        return false;
    if (out->width_l0 == info->width_l0 && out->height_l0 == info->height_l0 &&
        fabs(out->raster.downsample / info->downsample - 1) < 1e-9)
        return true;
    specimen_close(out);
    return err_set(err, ERR_FORMAT,
                   "%s: is not the slide that the heatmap of %s was made from; predict it again",
                   info->path, info->slide);
}

bool window_source_open(const struct heatmap_info *info, const struct window_access *access,
                        struct window_source **out, struct err *err)
{
    struct stain_fit target;
    struct window_source *source = calloc(1, sizeof *source);
    bool ok = source || err_memory(err, info->slide);
    ok = ok && check_identity(info, err) && open_pixels(info, access, &source->specimen, err);
    if (ok && info->stain.method != STAIN_NONE)
        ok = choose_target(info, access, &target, err) &&
             stain_transform_new(&info->stain, &target, &source->specimen.transform, err);
    if (ok)
        *out = source;
    else
        window_source_close(source);
    return ok;
}

void window_source_close(struct window_source *source)
{
    if (!source)
        return;
    specimen_close(&source->specimen);
    free(source);
}

bool window_source_read(struct window_source *source, int64_t x, int64_t y, int64_t width,
                        int64_t height, struct image *out, struct err *err)
{
    if (!specimen_read(&source->specimen, x, y, width, height, out, err))
        return false;
    specimen_normalise(&source->specimen, out);
    return true;
}

struct slide *window_source_slide(const struct window_source *source)
{
    return source->specimen.slide;
}

void window_source_size(const struct window_source *source, int64_t *width, int64_t *height)
{
    *width = source->specimen.raster.width;
    *height = source->specimen.raster.height;
}
