/* quality.c: all kinds of bad areas together. See quality.h. */
#include "tissue/quality.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "tissue/artefact.h"
#include "tissue/focus.h"
#include "tissue/method.h"
#include "tissue/morphology.h"

#define MIN_BLUR_UM2 10000.0 /* smaller blurred areas are not marked */
#define MIN_PEN_UM2 4000.0
#define OVER_TISSUE_UM 300.0 /* a mark with tissue on both sides within this lies over tissue */

const char *const quality_kind_names[] = {
    [QUALITY_GOOD] = "good", [QUALITY_BLUR] = "blur",     [QUALITY_FOLD] = "fold",
    [QUALITY_PEN] = "pen",   [QUALITY_BUBBLE] = "bubble", [QUALITY_KINDS] = NULL,
};

const char *const quality_share_names[] = {
    [QUALITY_GOOD] = "good", [QUALITY_BLUR] = "blurred",   [QUALITY_FOLD] = "folded",
    [QUALITY_PEN] = "pen",   [QUALITY_BUBBLE] = "bubbles", [QUALITY_KINDS] = NULL,
};

bool quality_parse(const char *list, const char *option, unsigned *kinds, struct err *err)
{
    *kinds = 0;
    if (strcmp(list, "all") == 0) {
        *kinds = QUALITY_ALL;
        return true;
    }
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        int kind = QUALITY_KINDS - 1;
        while (kind > 0 && (strlen(quality_kind_names[kind]) != length ||
                            strncmp(quality_kind_names[kind], at, length) != 0))
            kind--;
        if (kind == 0)
            return err_set(err, ERR_USAGE,
                           "--%s: '%.*s' is not one of blur, fold, pen, bubble and all", option,
                           (int)length, at);
        *kinds |= 1U << kind;
        at += length;
        if (!*at)
            return true;
    }
}

void quality_text(unsigned kinds, char out[QUALITY_TEXT_ROOM])
{
    out[0] = 0;
    for (int kind = 1; kind < QUALITY_KINDS; kind++) {
        size_t used = strlen(out);
        if (kinds >> kind & 1)
            snprintf(out + used, QUALITY_TEXT_ROOM - used, "%s%s", used ? "," : "",
                     quality_kind_names[kind]);
    }
}

void quality_free(struct quality_map *quality)
{
    image_free(&quality->kinds);
    *quality = (struct quality_map){ 0 };
}

static void put(struct quality_map *quality, const struct image *where, enum quality_kind kind)
{
    for (int64_t i = 0; i < where->width * where->height; i++)
        if (where->px[i])
            quality->kinds.px[i] = (uint8_t)kind;
}

static void clear(struct image *image)
{
    memset(image->px, 0, image_bytes(image));
}

static bool find_blur(const struct tissue_mask *tissue, const struct focus_map *focus,
                      struct image *out, struct err *err)
{
    double px_um = artefact_px_um(tissue);
    for (int64_t y = 0; y < out->height; y++) {
        int64_t row = (int64_t)(((double)y + 0.5) * tissue->l0_per_px_y / focus->cell_l0);
        for (int64_t x = 0; x < out->width; x++) {
            int64_t column = (int64_t)(((double)x + 0.5) * tissue->l0_per_px_x / focus->cell_l0);
            if (*image_at(&tissue->mask, x, y) && focus_is_blurred(focus, column, row))
                *image_at(out, x, y) = 255;
        }
    }
    return morphology_remove_small(out, MIN_BLUR_UM2 / (px_um * px_um), err);
}

/* Dust is not worth an outline. */
static bool find_pen(const struct tissue_mask *tissue, struct image *out, struct err *err)
{
    double px_um = artefact_px_um(tissue);
    return method_find_pen(&tissue->overview, out, err) &&
           morphology_remove_small(out, MIN_PEN_UM2 / (px_um * px_um), err);
}

/* In the order of the enum: later kinds replace earlier ones. */
static bool find_kinds(struct slide *slide, const struct tissue_mask *tissue, unsigned kinds,
                       const struct ctx *ctx, struct quality_map *out, struct err *err)
{
    const unsigned sees_focus = 1U << QUALITY_BLUR | 1U << QUALITY_BUBBLE;
    struct image where = { 0 };
    struct focus_map focus = { 0 };
    bool ok = image_new(&where, tissue->mask.width, tissue->mask.height, 1, err);
    if (ok && kinds & sees_focus)
        ok = focus_measure(slide, tissue, ctx, &focus, err);
    for (int kind = QUALITY_BLUR; ok && kind < QUALITY_KINDS; kind++) {
        if (!(kinds >> kind & 1))
            continue;
        clear(&where);
        ok = kind == QUALITY_BLUR   ? find_blur(tissue, &focus, &where, err)
             : kind == QUALITY_FOLD ? artefact_find_folds(tissue, &where, err)
             : kind == QUALITY_PEN  ? find_pen(tissue, &where, err)
                                    : artefact_find_bubbles(tissue, &focus, &where, err);
        if (ok)
            put(out, &where, (enum quality_kind)kind);
        ok = ok && (ctx_stopped(ctx) ? err_stopped(err) : true);
    }
    focus_free(&focus);
    image_free(&where);
    return ok;
}

bool quality_measure(struct quality_map *quality, const struct tissue_mask *tissue, struct err *err)
{
    const struct image *mask = &tissue->mask, *kinds = &quality->kinds;
    struct image over = { 0 };
    if (!image_new(&over, mask->width, mask->height, 1, err))
        return false;
    int64_t n = mask->width * mask->height, counts[QUALITY_KINDS] = { 0 }, all = 0;
    memcpy(over.px, mask->px, (size_t)n);
    bool ok = morphology_close(&over, OVER_TISSUE_UM / artefact_px_um(tissue), err);
    for (int64_t i = 0; ok && i < n; i++) {
        bool mark = kinds->px[i] == QUALITY_PEN || kinds->px[i] == QUALITY_BUBBLE;
        if (mask->px[i] || (mark && over.px[i])) {
            all++;
            counts[kinds->px[i] < QUALITY_KINDS ? kinds->px[i] : QUALITY_GOOD]++;
        }
    }
    for (int kind = 0; kind < QUALITY_KINDS; kind++)
        quality->share[kind] = all > 0 ? (double)counts[kind] / (double)all : 0;
    image_free(&over);
    return ok;
}

bool quality_find(struct slide *slide, const struct tissue_mask *tissue, unsigned kinds,
                  const struct ctx *ctx, struct quality_map *out, struct err *err)
{
    *out = (struct quality_map){ 0 };
    bool ok = image_new(&out->kinds, tissue->mask.width, tissue->mask.height, 1, err);
    if (ok && tissue->tissue_px > 0)
        ok = find_kinds(slide, tissue, kinds, ctx, out, err);
    ok = ok && quality_measure(out, tissue, err);
    if (!ok)
        quality_free(out);
    return ok;
}

void quality_omit(const struct quality_map *quality, unsigned kinds, int64_t width_l0,
                  int64_t height_l0, struct tissue_mask *mask)
{
    const struct image *from = &quality->kinds;
    for (int64_t y = 0; y < mask->mask.height; y++) {
        int64_t row = (2 * y + 1) * from->height / (2 * mask->mask.height);
        for (int64_t x = 0; x < mask->mask.width; x++) {
            int64_t column = (2 * x + 1) * from->width / (2 * mask->mask.width);
            if (kinds >> *image_at(from, column, row) & 1)
                *image_at(&mask->mask, x, y) = 0;
        }
    }
    tissue_measure(mask, width_l0, height_l0);
}

bool quality_omit_found(struct slide *slide, enum tissue_method method, unsigned kinds,
                        const struct ctx *ctx, struct tissue_mask *mask, struct err *err)
{
    struct tissue_options options = tissue_defaults();
    struct tissue_mask found = { 0 };
    struct quality_map quality = { 0 };
    const struct slide_level *whole = slide_info(slide)->levels;
    options.method = method;
    if (kinds == 0 || mask->tissue_px == 0)
        return true;
    bool ok = tissue_find(slide, &options, ctx, &found, err) &&
              quality_find(slide, &found, kinds, ctx, &quality, err);
    if (ok)
        quality_omit(&quality, kinds, whole->width, whole->height, mask);
    quality_free(&quality);
    tissue_mask_free(&found);
    return ok;
}
