/* watershed.c: see watershed.h. The water falls: pixels are taken from the highest to the lowest; a
 * pixel without neighbours above the water is a new hill, one that touches a hill joins it, and one
 * that touches two is their pass, where it is decided if they are one. */
#include "nuclei/watershed.h"

#include <stdlib.h>
#include <string.h>

struct spot {
    uint32_t level; /* sorts as the land does, highest first */
    int32_t px;
};

struct hill {
    int32_t parent; /* itself, or the hill it is part of */
    int32_t top_px;
    float top;
};

struct flood {
    const float *land;
    int64_t width, height;
    const struct watershed_split *split;
    int32_t *labels; /* hill + 1 */
    struct hill *hills;
    int32_t n_hills;
};

/* The bits of floats that are not negative sort as the floats do. */
static uint32_t level_of(float land)
{
    uint32_t bits;
    memcpy(&bits, &land, sizeof bits);
    return ~bits;
}

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/* One pass of a radix sort. Equal digits keep their order. */
static void sort_by_digit(const struct spot *from, struct spot *to, int64_t n, int shift)
{
    int64_t starts[DIGITS] = { 0 }, sum = 0;
    for (int64_t i = 0; i < n; i++)
        starts[(from[i].level >> shift) & (DIGITS - 1)]++;
    for (int d = 0; d < DIGITS; d++) {
        int64_t count = starts[d];
        starts[d] = sum, sum += count;
    }
    for (int64_t i = 0; i < n; i++)
        to[starts[(from[i].level >> shift) & (DIGITS - 1)]++] = from[i];
}

/* The pixels of the mask, highest first; of equals the first pixel first. The result is in one of
 * the two arrays, which is returned. */
static const struct spot *sorted_spots(const float *land, const struct image *mask, int64_t n,
                                       struct spot *spots, struct spot *room)
{
    int64_t all = mask->width * mask->height, k = 0;
    for (int64_t i = 0; i < all; i++)
        if (mask->px[i])
            spots[k++] = (struct spot){ level_of(land[i]), (int32_t)i };
    sort_by_digit(spots, room, n, 0);
    sort_by_digit(room, spots, n, DIGIT_BITS);
    sort_by_digit(spots, room, n, 2 * DIGIT_BITS);
    return room;
}

static int32_t root_of(struct hill *hills, int32_t hill)
{
    while (hills[hill].parent != hill)
        hill = hills[hill].parent = hills[hills[hill].parent].parent;
    return hill;
}

static bool are_one(const struct flood *f, int32_t a, int32_t b, float pass)
{
    const struct hill *high = &f->hills[a], *low = &f->hills[b];
    if ((double)pass >= f->split->pass * (double)low->top)
        return true;
    double dx = (double)(high->top_px % f->width - low->top_px % f->width);
    double dy = (double)(high->top_px / f->width - low->top_px / f->width);
    return dx * dx + dy * dy < f->split->distance_px * f->split->distance_px;
}

/* The hill that two have become, or a: the one the pixel joins. */
static int32_t meet(struct flood *f, int32_t a, int32_t b, float pass)
{
    if (a == b)
        return a;
    int32_t high = f->hills[a].top >= f->hills[b].top ? a : b, low = high == a ? b : a;
    if (!are_one(f, high, low, pass))
        return a;
    f->hills[low].parent = high;
    return high;
}

/* The pixel joins the hill of its highest neighbour above the water. */
static void take_spot(struct flood *f, int32_t px)
{
    int64_t x = px % f->width, y = px / f->width;
    int32_t around[8];
    int n = 0, highest = 0;
    for (int64_t v = y > 0 ? y - 1 : 0; v <= y + 1 && v < f->height; v++)
        for (int64_t u = x > 0 ? x - 1 : 0; u <= x + 1 && u < f->width; u++) {
            int32_t at = (int32_t)(v * f->width + u);
            if (!f->labels[at])
                continue;
            if (n > 0 && f->land[at] > f->land[around[highest]])
                highest = n;
            around[n++] = at;
        }
    if (n == 0) {
        f->hills[f->n_hills] = (struct hill){ f->n_hills, px, f->land[px] };
        f->labels[px] = ++f->n_hills;
        return;
    }
    int32_t joined = root_of(f->hills, f->labels[around[highest]] - 1);
    for (int i = 0; i < n; i++)
        joined = meet(f, joined, root_of(f->hills, f->labels[around[i]] - 1), f->land[px]);
    f->labels[px] = joined + 1;
}

static int64_t count_mask(const struct image *mask)
{
    int64_t n = 0, all = mask->width * mask->height;
    for (int64_t i = 0; i < all; i++)
        n += mask->px[i] != 0;
    return n;
}

/* Hills that are part of another get its number; the numbers of hills have gaps no more. */
static void number_hills(struct flood *f, struct nuclei_labels *out)
{
    int64_t all = f->width * f->height;
    int32_t n = 0;
    for (int32_t i = 0; i < f->n_hills; i++) /* a parent may come later */
        f->hills[i].parent = root_of(f->hills, i);
    for (int32_t i = 0; i < f->n_hills; i++)
        if (f->hills[i].parent == i)
            f->hills[i].top_px = ++n;
    for (int64_t i = 0; i < all; i++)
        if (out->labels[i])
            out->labels[i] = f->hills[f->hills[out->labels[i] - 1].parent].top_px;
    out->n = n;
}

bool watershed_hills(const float *land, const struct image *mask,
                     const struct watershed_split *split, struct nuclei_labels *out,
                     struct err *err)
{
    int64_t all = mask->width * mask->height, n = count_mask(mask);
    if (all > INT32_MAX)
        return err_set(err, ERR_USAGE,
                       "an image of %lld x %lld px is too large for labels; cut it into tiles",
                       (long long)mask->width, (long long)mask->height);
    size_t room = (size_t)(n > 0 ? n : 1);
    *out = (struct nuclei_labels){ .width = mask->width, .height = mask->height };
    out->labels = calloc((size_t)all, sizeof *out->labels);
    struct spot *spots = malloc(2 * room * sizeof *spots);
    /* A new hill has no neighbour in the mask that is higher: one in four pixels at most. */
    size_t hills = (size_t)((mask->width + 1) / 2 * ((mask->height + 1) / 2));
    struct flood flood = {
        land,  mask->width, mask->height,
        split, out->labels, malloc((hills < room ? hills : room) * sizeof(struct hill)),
        0
    };
    bool ok = out->labels && spots && flood.hills;
    if (ok) {
        const struct spot *sorted = sorted_spots(land, mask, n, spots, spots + n);
        for (int64_t i = 0; i < n; i++)
            take_spot(&flood, sorted[i].px);
        number_hills(&flood, out);
    } else {
        err_memory(err, "a watershed");
        nuclei_labels_free(out);
    }
    free(flood.hills);
    free(spots);
    return ok;
}
