/* slic_connect.c: labels -> connected areas. Every connected area gets its own number, and areas
 * that are too small join the neighbour with the longest common border. */
#include <stdlib.h>
#include <string.h>
#include "explain/slic.h"

/* Connected areas. px [height, width] lists the pixels area by area; first [n + 1] are their
 * beginnings there. */
struct areas {
    int64_t width, height, n;
    int32_t *of;                      /* [height, width] */
    int64_t *px, *first;              /* first has room for one area a pixel */
    int64_t *parent, *size, *borders; /* [n]: a forest of joined areas, and their sizes */
};

/* Up to 4 neighbours by their sides. */
static int neighbours(const struct areas *a, int64_t i, int64_t out[4])
{
    int n = 0;
    int64_t x = i % a->width, y = i / a->width;
    if (x > 0)
        out[n++] = i - 1;
    if (x + 1 < a->width)
        out[n++] = i + 1;
    if (y > 0)
        out[n++] = i - a->width;
    if (y + 1 < a->height)
        out[n++] = i + a->width;
    return n;
}

/* Fills the area of pixel `start` with the number a->n; px [from..) gets its pixels. */
static int64_t flood(struct areas *a, const int32_t *labels, int64_t start, int64_t from)
{
    int64_t end = from;
    a->of[start] = (int32_t)a->n;
    a->px[end++] = start;
    for (int64_t at = from; at < end; at++) {
        int64_t beside[4];
        int n = neighbours(a, a->px[at], beside);
        for (int k = 0; k < n; k++)
            if (a->of[beside[k]] < 0 && labels[beside[k]] == labels[start]) {
                a->of[beside[k]] = (int32_t)a->n;
                a->px[end++] = beside[k];
            }
    }
    return end;
}

static void find_areas(struct areas *a, const int32_t *labels)
{
    int64_t end = 0, n_px = a->width * a->height;
    a->n = 0;
    memset(a->of, -1, (size_t)n_px * sizeof *a->of);
    for (int64_t i = 0; i < n_px; i++) {
        if (a->of[i] >= 0)
            continue;
        a->first[a->n] = end;
        end = flood(a, labels, i, end);
        a->parent[a->n] = a->n;
        a->size[a->n] = end - a->first[a->n];
        a->borders[a->n] = 0;
        a->n++;
    }
    a->first[a->n] = end;
}

static int64_t root_of(struct areas *a, int64_t area)
{
    while (a->parent[area] != area)
        area = a->parent[area] = a->parent[a->parent[area]];
    return area;
}

/* The area with the longest border to this one, the first of those as long; -1: there is none. */
static int64_t closest_neighbour(struct areas *a, int64_t area)
{
    int64_t best = -1, beside[4];
    for (int64_t at = a->first[area]; at < a->first[area + 1]; at++)
        for (int k = neighbours(a, a->px[at], beside) - 1; k >= 0; k--)
            a->borders[a->of[beside[k]]]++;
    a->borders[area] = 0;
    for (int64_t at = a->first[area]; at < a->first[area + 1]; at++)
        for (int k = neighbours(a, a->px[at], beside) - 1; k >= 0; k--) {
            int64_t other = a->of[beside[k]];
            if (other != area && (best < 0 || a->borders[other] > a->borders[best] ||
                                  (a->borders[other] == a->borders[best] && other < best)))
                best = other;
        }
    for (int64_t at = a->first[area]; at < a->first[area + 1]; at++)
        for (int k = neighbours(a, a->px[at], beside) - 1; k >= 0; k--)
            a->borders[a->of[beside[k]]] = 0;
    return best;
}

/* Every area that is too small, unless another already joined it, joins its neighbour; labels
 * become the joined areas. Whether there was any. */
static bool join_small(struct areas *a, int64_t smallest, int32_t *labels)
{
    bool any = false;
    for (int64_t area = 0; area < a->n; area++) {
        int64_t root = root_of(a, area);
        if (a->size[root] >= smallest)
            continue;
        int64_t other = closest_neighbour(a, area);
        other = other < 0 ? root : root_of(a, other);
        if (other == root)
            continue;
        a->parent[root] = other;
        a->size[other] += a->size[root];
        any = true;
    }
    for (int64_t i = 0; i < a->width * a->height; i++)
        labels[i] = (int32_t)root_of(a, a->of[i]);
    return any;
}

/* Until none is too small: each round joins at least one. labels become 0 to a->n - 1. */
static void connect(struct areas *a, int64_t smallest, int32_t *labels)
{
    do
        find_areas(a, labels);
    while (join_small(a, smallest, labels));
}

bool slic_connect(int64_t width, int64_t height, int64_t smallest_px, int32_t *labels, int64_t *n,
                  struct err *err)
{
    size_t n_px = (size_t)(width * height);
    struct areas a = { .width = width, .height = height };
    int64_t *room = malloc((5 * n_px + 1) * sizeof *room);
    a.of = malloc(n_px * sizeof *a.of);
    bool ok = room && a.of;
    if (ok) {
        a.px = room, a.parent = room + n_px, a.size = room + 2 * n_px;
        a.borders = room + 3 * n_px, a.first = room + 4 * n_px;
        connect(&a, smallest_px, labels);
        *n = a.n;
    } else {
        err_memory(err, "superpixels");
    }
    free(room);
    free(a.of);
    return ok;
}
