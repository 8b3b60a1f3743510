/* slide_open_entry.c: a slide of a list, with a resolution that can be trusted (slide_list.h). */
#include <math.h>
#include <stdlib.h>
#include "base/console.h"
#include "base/text.h"
#include "slide/driver.h"
#include "slide/slide.h"
#include "slide/slide_list.h"

#define LEAST_MPP 0.01
#define MOST_MPP 100.0
#define MOST_TIMES 2.0    /* a given um/px may be this many times the file's, or a part of it */
#define MOST_UNEQUAL 0.01 /* mpp-x and mpp-y, as a share */

/* Does the given um/px differ so much from the file's that one of them must be wrong? */
static bool in_doubt(const struct slide_info *info)
{
    if (info->mpp_source != MPP_GIVEN || info->mpp_file <= 0)
        return false;
    double times = info->mpp / info->mpp_file;
    return times > MOST_TIMES || times < 1 / MOST_TIMES;
}

static bool is_square(const struct slide_info *info)
{
    return fabs(info->mpp_x - info->mpp_y) <= MOST_UNEQUAL * fmin(info->mpp_x, info->mpp_y);
}

static bool check(const struct slide_info *info, bool by_option, struct err *err)
{
    if (info->mpp_source == MPP_GIVEN && (info->mpp < LEAST_MPP || info->mpp > MOST_MPP))
        return err_set(err, ERR_FORMAT,
                       "%s: %s says %g um/px, which no slide has (%g to %g); 0.25 is usual at 40x",
                       info->path, by_option ? "--slide-mpp" : "the slide list", info->mpp,
                       LEAST_MPP, MOST_MPP);
    if (!is_square(info))
        return err_set(err, ERR_FORMAT,
                       "%s: its pixels are not square (%g x %g um); resample the slide, or pass "
                       "--slide-mpp to treat them as square",
                       info->path, info->mpp_x, info->mpp_y);
    if (!by_option && in_doubt(info))
        return err_set(err, ERR_FORMAT,
                       "%s: the slide list says %g um/px, the file %g; correct the list, or pass "
                       "--slide-mpp %g if the file is wrong",
                       info->path, info->mpp, info->mpp_file, info->mpp);
    return true;
}

void slide_warn(const struct slide *slide, struct console *console)
{
    const struct slide_info *info = slide_info(slide);
    if (in_doubt(info))
        console_warn(console, "%s: --slide-mpp says %g um/px, the file %g", info->path, info->mpp,
                     info->mpp_file);
    if (slide->icc_wanted && !slide->icc)
        console_warn(console, "%s: --icc: the file has no ICC profile; its colours are not changed",
                     info->path);
}

static bool set_cache(struct slide *slide, const struct slide_access *access, struct err *err)
{
    if (access->cache || !access->results)
        return slide_set_cache(slide, access->cache, err);
    char *folder = text_format("%s/cache", access->results);
    bool ok = folder ? slide_set_cache(slide, folder, err) : err_memory(err, access->results);
    free(folder);
    return ok;
}

bool slide_open_entry(const struct slide_entry *entry, const struct slide_access *access,
                      struct slide **out, struct err *err)
{
    struct slide *slide = NULL;
    bool by_option = access->mpp > 0;
    if (!slide_open(entry->path, by_option ? access->mpp : entry->mpp, &slide, err))
        return false;
    if (!check(slide_info(slide), by_option, err) || !set_cache(slide, access, err) ||
        (access->icc && !slide_use_icc(slide, err))) {
        slide_close(slide);
        return false;
    }
    if (access->image_bytes > 0)
        slide_set_image_bytes(slide, access->image_bytes);
    *out = slide;
    return true;
}
