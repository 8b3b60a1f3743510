/* icc.c: see icc.h. Conversions by Little CMS. */
#include "slide/icc.h"

#include <lcms2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "slide/slide_private.h"

/* Only in OpenSlide 4. */
__attribute__((weak)) int64_t openslide_get_icc_profile_size(openslide_t *osr);
__attribute__((weak)) void openslide_read_icc_profile(openslide_t *osr, void *dest);

#define MOST_BYTES (INT64_C(64) << 20)

struct icc {
    cmsHTRANSFORM transform;
};

void icc_free(struct icc *icc)
{
    if (icc && icc->transform)
        cmsDeleteTransform(icc->transform);
    free(icc);
}

/* "RGB ", as in the profile. */
static void signature(cmsUInt32Number value, char out[5])
{
    for (int i = 0; i < 4; i++) {
        char c = (char)(value >> (24 - 8 * i) & 0xFF);
        out[i] = c > ' ' && c < 127 ? c : ' ';
    }
    out[4] = 0;
    for (int i = 3; i >= 0 && out[i] == ' '; i--)
        out[i] = 0;
}

static bool make_transform(struct icc *icc, cmsHPROFILE from, cmsHPROFILE to, size_t n,
                           const char *name, struct err *err)
{
    char space[5];
    signature(cmsGetColorSpace(from), space);
    if (cmsGetColorSpace(from) != cmsSigRgbData)
        return err_set(err, ERR_FORMAT, "%s: its ICC profile is for %s pixels, not RGB; omit --icc",
                       name, space);
    /* Without the cache of the last pixel a transform can be used by many threads. */
    icc->transform = cmsCreateTransform(from, TYPE_RGB_8, to, TYPE_RGB_8,
                                        cmsGetHeaderRenderingIntent(from), cmsFLAGS_NOCACHE);
    if (!icc->transform)
        return err_set(err, ERR_FORMAT,
                       "%s: its ICC profile (%zu bytes) cannot be converted to sRGB: damaged or "
                       "incomplete; omit --icc",
                       name, n);
    return true;
}

bool icc_new(const uint8_t *bytes, size_t n, const char *name, struct icc **out, struct err *err)
{
    struct icc *icc = calloc(1, sizeof *icc);
    if (!icc)
        return err_memory(err, name);
    cmsHPROFILE from = n <= MOST_BYTES ? cmsOpenProfileFromMem(bytes, (cmsUInt32Number)n) : NULL;
    cmsHPROFILE to = cmsCreate_sRGBProfile();
    bool ok = from && to ? make_transform(icc, from, to, n, name, err)
              : from     ? err_memory(err, name)
                         : err_set(err, ERR_FORMAT,
                                   "%s: its ICC profile (%zu bytes) is damaged; omit --icc", name, n);
    if (from)
        cmsCloseProfile(from);
    if (to)
        cmsCloseProfile(to);
    if (!ok)
        icc_free(icc);
    else
        *out = icc;
    return ok;
}

void icc_convert(const struct icc *icc, uint8_t *rgb, int64_t n)
{
    cmsDoTransform(icc->transform, rgb, rgb, (cmsUInt32Number)n);
}

bool icc_describe(const uint8_t *bytes, size_t n, char *out, size_t room)
{
    out[0] = 0;
    cmsHPROFILE profile = n <= MOST_BYTES ? cmsOpenProfileFromMem(bytes, (cmsUInt32Number)n) : NULL;
    if (!profile)
        return false;
    cmsGetProfileInfoASCII(profile, cmsInfoDescription, "en", "US", out, (cmsUInt32Number)room);
    out[room - 1] = 0;
    for (char *at = out; *at; at++)
        *at = *at >= ' ' && *at < 127 ? *at : '?';
    cmsCloseProfile(profile);
    return true;
}

static bool read_by_openslide(struct slide *slide, uint8_t **bytes, size_t *n, struct err *err)
{
    if (slide->driver != &driver_openslide || !openslide_get_icc_profile_size)
        return true;
    openslide_t *handle = ((struct openslide_state *)slide->state)->handle;
    int64_t size = openslide_get_icc_profile_size(handle);
    if (size <= 0 || size > MOST_BYTES)
        return true;
    *bytes = malloc((size_t)size);
    if (!*bytes)
        return err_memory(err, slide->path);
    openslide_read_icc_profile(handle, *bytes);
    *n = (size_t)size;
    return true;
}

bool slide_icc_profile(struct slide *slide, uint8_t **bytes, size_t *n, struct err *err)
{
    *bytes = NULL;
    *n = 0;
    return icc_read_file(slide->path, bytes, n, err) &&
           (*bytes || read_by_openslide(slide, bytes, n, err));
}

struct slide_icc slide_icc(struct slide *slide)
{
    struct slide_icc facts = { 0 };
    struct icc *icc = NULL;
    uint8_t *bytes = NULL;
    if (!slide_icc_profile(slide, &bytes, &facts.bytes, NULL))
        facts.damaged = true;
    else if (bytes)
        facts.usable =
            icc_describe(bytes, facts.bytes, facts.description, sizeof facts.description) &&
            icc_new(bytes, facts.bytes, slide->path, &icc, NULL);
    icc_free(icc);
    free(bytes);
    return facts;
}

bool slide_use_icc(struct slide *slide, struct err *err)
{
    uint8_t *bytes = NULL;
    size_t n = 0;
    bool ok = slide->icc || slide_icc_profile(slide, &bytes, &n, err);
    if (ok && bytes)
        ok = icc_new(bytes, n, slide->path, &slide->icc, err);
    slide->icc_wanted = ok;
    free(bytes);
    return ok;
}

/* A decoder of the tiles as they are in the file. */
struct icc_decoder {
    struct tile_source source;
    void *inner;
};

static void decoder_free(void *decoder)
{
    struct icc_decoder *d = decoder;
    if (d)
        d->source.ops->decoder_free(d->inner);
    free(d);
}

static bool decoder_new(const struct tile_source *source, void **out, struct err *err)
{
    const struct tile_source *of = source->of;
    struct icc_decoder *d = calloc(1, sizeof *d);
    if (!d)
        return err_memory(err, "a tile");
    d->source = source->reduce > 0 ? source_reduced(of, source->reduce) : *of;
    if (!of->ops->decoder_new(&d->source, &d->inner, err)) {
        free(d);
        return false;
    }
    *out = d;
    return true;
}

static bool decode(const struct tile_source *source, void *decoder, int64_t column, int64_t row,
                   uint8_t *dst, int64_t stride_bytes, struct err *err)
{
    struct icc_decoder *d = decoder;
    if (!d->source.ops->decode(&d->source, d->inner, column, row, dst, stride_bytes, err))
        return false;
    for (int64_t y = 0; y < source->tile_height; y++)
        icc_convert(source->slide->icc, dst + y * stride_bytes, source->tile_width);
    return true;
}

static const struct tile_source_ops icc_ops = { .decoder_new = decoder_new,
                                                .decoder_free = decoder_free,
                                                .decode = decode };

struct tile_source icc_source(const struct tile_source *of)
{
    struct tile_source source = *of;
    source.ops = &icc_ops;
    source.of = of;
    return source;
}
