/* morphology.c: see morphology.h. */
#include "tissue/morphology.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void morphology_invert(struct image *mask)
{
    int64_t n = mask->width * mask->height;
    for (int64_t i = 0; i < n; i++)
        mask->px[i] = mask->px[i] ? 0 : 255;
}

/* Rows to the nearest set pixel of the same column, at most cap. away [height, width]. */
static void column_distances(const struct image *mask, int32_t cap, int32_t *away)
{
    int64_t width = mask->width, height = mask->height;
    for (int64_t x = 0; x < width; x++)
        away[x] = mask->px[x] ? 0 : cap;
    for (int64_t y = 1; y < height; y++)
        for (int64_t i = y * width; i < (y + 1) * width; i++)
            away[i] = mask->px[i] ? 0 : away[i - width] < cap ? away[i - width] + 1 : cap;
    for (int64_t y = height - 2; y >= 0; y--)
        for (int64_t i = y * width; i < (y + 1) * width; i++)
            if (away[i] > away[i + width] + 1)
                away[i] = away[i + width] + 1;
}

/* reach[g]: how far to each side a set pixel g rows away extends in this row; the shape is what
 * reach says, for g in [0, cap). Every row is a sum of intervals, so time is linear. */
static bool grow(struct image *mask, const int64_t *reach, int32_t cap, struct err *err)
{
    int64_t width = mask->width, height = mask->height;
    int32_t *away = malloc((size_t)(width * height) * sizeof *away);
    int32_t *change = malloc((size_t)(width + 1) * sizeof *change);
    bool ok = away && change;
    if (!ok) {
        err_memory(err, "a tissue mask");
        goto done;
    }
    column_distances(mask, cap, away);
    for (int64_t y = 0; y < height; y++) {
        memset(change, 0, (size_t)(width + 1) * sizeof *change);
        for (int64_t x = 0; x < width; x++) {
            int32_t g = away[y * width + x];
            if (g >= cap)
                continue;
            change[x > reach[g] ? x - reach[g] : 0]++;
            change[x + reach[g] < width ? x + reach[g] + 1 : width]--;
        }
        int32_t covered = 0;
        for (int64_t x = 0; x < width; x++) {
            covered += change[x];
            mask->px[y * width + x] = covered > 0 ? 255 : 0;
        }
    }
done:
    free(change);
    free(away);
    return ok;
}

bool morphology_dilate(struct image *mask, double radius_px, struct err *err)
{
    if (radius_px < 1)
        return true;
    double limit = (double)(mask->width > mask->height ? mask->width : mask->height);
    double radius = radius_px < limit * 2 ? radius_px : limit * 2;
    int32_t cap = (int32_t)radius + 1;
    int64_t *reach = malloc((size_t)cap * sizeof *reach);
    if (!reach)
        return err_memory(err, "a tissue mask");
    for (int32_t g = 0; g < cap; g++)
        reach[g] = (int64_t)sqrt(radius * radius - (double)g * g);
    bool ok = grow(mask, reach, cap, err);
    free(reach);
    return ok;
}

bool morphology_erode(struct image *mask, double radius_px, struct err *err)
{
    if (radius_px < 1)
        return true;
    morphology_invert(mask);
    bool ok = morphology_dilate(mask, radius_px, err);
    morphology_invert(mask);
    return ok;
}

bool morphology_close(struct image *mask, double radius_px, struct err *err)
{
    return morphology_dilate(mask, radius_px, err) && morphology_erode(mask, radius_px, err);
}

bool morphology_open(struct image *mask, double radius_px, struct err *err)
{
    return morphology_erode(mask, radius_px, err) && morphology_dilate(mask, radius_px, err);
}

bool morphology_open_square(struct image *mask, int64_t half, struct err *err)
{
    int64_t *reach = malloc((size_t)(half + 1) * sizeof *reach);
    if (!reach)
        return err_memory(err, "a tissue mask");
    for (int64_t g = 0; g <= half; g++)
        reach[g] = half;
    morphology_invert(mask);
    bool ok = grow(mask, reach, (int32_t)half + 1, err);
    morphology_invert(mask);
    ok = ok && grow(mask, reach, (int32_t)half + 1, err);
    free(reach);
    return ok;
}

/* Union-find over provisional labels; a root is its own parent and the smallest of its set. */
static int32_t find_root(int32_t *parent, int32_t label)
{
    while (parent[label] != label)
        label = parent[label] = parent[parent[label]];
    return label;
}

static int32_t join(int32_t *parent, int32_t a, int32_t b)
{
    if (a == 0 || b == 0)
        return a ? a : b;
    a = find_root(parent, a), b = find_root(parent, b);
    if (a < b)
        return parent[b] = a;
    return parent[a] = b;
}

/* First pass: labels joined with the neighbours that were seen before. Returns how many there are;
 * parent has room for one label every second pixel. */
static int32_t label_provisionally(const struct image *mask, bool corners, int32_t *labels,
                                   int32_t *parent)
{
    int64_t width = mask->width;
    int32_t n = 0;
    for (int64_t y = 0; y < mask->height; y++)
        for (int64_t x = 0; x < width; x++) {
            int64_t i = y * width + x;
            labels[i] = 0;
            if (!mask->px[i])
                continue;
            int32_t label = x > 0 ? labels[i - 1] : 0;
            if (y > 0) {
                label = join(parent, label, labels[i - width]);
                if (corners && x > 0)
                    label = join(parent, label, labels[i - width - 1]);
                if (corners && x + 1 < width)
                    label = join(parent, label, labels[i - width + 1]);
            }
            if (label == 0)
                label = ++n, parent[n] = n;
            labels[i] = label;
        }
    return n;
}

bool morphology_label(const struct image *mask, bool corners, int32_t **labels, int32_t *n,
                      struct err *err)
{
    int64_t n_px = mask->width * mask->height;
    *labels = NULL, *n = 0;
    if (n_px >= INT32_MAX)
        return err_set(
            err, ERR_USAGE,
            "a tissue mask of %lld x %lld pixels is too large; use a larger --downsample",
            (long long)mask->width, (long long)mask->height);
    /* A new label has no left neighbour, so a row of w pixels makes at most (w + 1) / 2 of them. */
    size_t room = (size_t)(mask->height * ((mask->width + 1) / 2) + 1);
    int32_t *at = malloc((size_t)n_px * sizeof *at), *parent = malloc(room * sizeof *parent);
    if (!at || !parent) {
        free(at), free(parent);
        return err_memory(err, "a tissue mask");
    }
    parent[0] = 0;
    int32_t provisional = label_provisionally(mask, corners, at, parent);
    for (int32_t label = 1; label <= provisional; label++)
        parent[label] = find_root(parent, label);
    /* A root is the smallest of its set, so it has its final number before the others. */
    for (int32_t label = 1; label <= provisional; label++)
        parent[label] = parent[label] == label ? ++*n : parent[parent[label]];
    for (int64_t i = 0; i < n_px; i++)
        at[i] = parent[at[i]];
    free(parent);
    *labels = at;
    return true;
}

/* Sets the pixels of small pieces of `mask` in `target` to value. Pieces at the border stay if
 * keep_border. */
static bool repaint_small(const struct image *mask, bool corners, bool keep_border, double min_px,
                          struct image *target, uint8_t value, struct err *err)
{
    int32_t *labels, n;
    if (!morphology_label(mask, corners, &labels, &n, err))
        return false;
    int64_t width = mask->width, height = mask->height;
    int64_t *size = calloc((size_t)n + 1, sizeof *size);
    bool ok = size || err_memory(err, "a tissue mask");
    for (int64_t i = 0; ok && i < width * height; i++)
        size[labels[i]]++;
    for (int64_t y = 0; ok && keep_border && y < height; y++)
        for (int64_t x = 0; x < width; x += y == 0 || y == height - 1 || width == 1 ? 1 : width - 1)
            size[labels[y * width + x]] = INT64_MAX;
    for (int64_t i = 0; ok && i < width * height; i++)
        if (labels[i] && (double)size[labels[i]] < min_px)
            target->px[i] = value;
    free(size);
    free(labels);
    return ok;
}

bool morphology_remove_small(struct image *mask, double min_px, struct err *err)
{
    return min_px <= 1 || repaint_small(mask, true, false, min_px, mask, 0, err);
}

bool morphology_fill_holes(struct image *mask, double min_px, struct err *err)
{
    struct image ground;
    if (min_px <= 1)
        return true;
    if (!image_new(&ground, mask->width, mask->height, 1, err))
        return false;
    memcpy(ground.px, mask->px, image_bytes(mask));
    morphology_invert(&ground);
    bool ok = repaint_small(&ground, true, true, min_px, mask, 255, err);
    image_free(&ground);
    return ok;
}
