/* layers.c: see layers.h. */
#include "annotation/layers.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_PX 16384 /* of a window, rasterised at once: on the stack */

static bool drawn(const struct drawing *drawing, int meaning)
{
    for (size_t i = 0; i < drawing->n_regions; i++)
        if (drawing->regions[i].meaning == meaning)
            return true;
    return false;
}

static bool add(struct layers *layers, const struct drawing *drawing, int meaning, int minus,
                struct err *err)
{
    struct layer *layer = &layers->items[layers->n];
    *layer = (struct layer){ .label = meaning < 0 ? LAYER_EXCLUDED : (uint8_t)meaning };
    if (!geometry_merge(drawing, meaning, minus, &layer->shape, err))
        return false;
    layers->n++;
    layers->repaired += layer->shape.repaired;
    return scan_new(&layer->scan, &layer->shape, err);
}

bool layers_new(struct layers *layers, const struct drawing *drawing, struct err *err)
{
    const struct class_map *map = drawing->map;
    int n = class_map_n(map);
    *layers = (struct layers){ .items = calloc((size_t)n + 1, sizeof *layers->items) };
    if (!layers->items)
        return err_memory(err, "an annotation");
    bool ok = true;
    if (class_map_is_plain(map))
        ok = add(layers, drawing, class_map_positive(map), REGION_EXCLUSION, err);
    else if (drawn(drawing, REGION_EXCLUSION))
        ok = add(layers, drawing, REGION_EXCLUSION, REGION_UNKNOWN, err);
    for (int rank = 0; ok && rank < n && !class_map_is_plain(map); rank++)
        if (drawn(drawing, class_map_precedence(map, rank)))
            ok = add(layers, drawing, class_map_precedence(map, rank), REGION_UNKNOWN, err);
    if (!ok)
        layers_free(layers);
    return ok;
}

void layers_free(struct layers *layers)
{
    for (int i = 0; i < layers->n; i++) {
        scan_free(&layers->items[i].scan);
        merged_region_free(&layers->items[i].shape);
    }
    free(layers->items);
    *layers = (struct layers){ 0 };
}

uint8_t layers_at(const struct layers *layers, double x_l0, double y_l0)
{
    for (int i = 0; i < layers->n; i++)
        if (scan_contains(&layers->items[i].scan, x_l0, y_l0))
            return layers->items[i].label;
    return LAYER_NONE;
}

/* The layers that have pixels of the window, down to one that covers all of it. */
struct present {
    const struct layer *items[CLASS_MOST + 1];
    int64_t px[CLASS_MOST + 1];
    int n;
};

static void find_present(const struct layers *layers, const struct window *window,
                         struct present *out)
{
    out->n = 0;
    for (int i = 0; i < layers->n; i++) {
        int64_t px = scan_count(&layers->items[i].scan, window);
        if (px == 0)
            continue;
        out->px[out->n] = px;
        out->items[out->n++] = &layers->items[i];
        if (px == window->width * window->height)
            return;
    }
}

/* labels [height, width] of a block. */
static void fill_block(const struct present *present, const struct window *block, uint8_t *labels)
{
    uint8_t inside[BLOCK_PX];
    size_t n = (size_t)(block->width * block->height);
    memset(labels, LAYER_NONE, n);
    for (int i = present->n - 1; i >= 0; i--) {
        memset(inside, 0, n);
        scan_fill(&present->items[i]->scan, block, inside);
        for (size_t k = 0; k < n; k++)
            labels[k] = inside[k] ? present->items[i]->label : labels[k];
    }
}

typedef void (*block_fn)(void *user, const struct window *block, const uint8_t *labels);

static void each_block(const struct present *present, const struct window *window, block_fn fn,
                       void *user)
{
    uint8_t labels[BLOCK_PX];
    int64_t columns = window->width < BLOCK_PX ? window->width : BLOCK_PX;
    int64_t rows = BLOCK_PX / columns;
    for (int64_t y = 0; y < window->height; y += rows)
        for (int64_t x = 0; x < window->width; x += columns) {
            struct window block = *window;
            block.column += x;
            block.row += y;
            block.width = window->width - x < columns ? window->width - x : columns;
            block.height = window->height - y < rows ? window->height - y : rows;
            fill_block(present, &block, labels);
            fn(user, &block, labels);
        }
}

static void count_block(void *user, const struct window *block, const uint8_t *labels)
{
    int64_t *counts = user;
    for (int64_t i = 0; i < block->width * block->height; i++)
        counts[labels[i]]++;
}

/* With several layers in the window. */
static int64_t count_blocks(const struct present *present, const struct window *window,
                            int n_classes, int64_t *counts)
{
    int64_t all[256] = { 0 };
    each_block(present, window, count_block, all);
    memcpy(counts, all, (size_t)n_classes * sizeof *counts);
    return all[LAYER_EXCLUDED];
}

int64_t layers_count(const struct layers *layers, const struct window *window, int n_classes,
                     int64_t *counts)
{
    struct present present;
    find_present(layers, window, &present);
    if (present.n > 1)
        return count_blocks(&present, window, n_classes, counts);
    if (present.n == 1 && present.items[0]->label == LAYER_EXCLUDED)
        return present.px[0];
    if (present.n == 1)
        counts[present.items[0]->label] = present.px[0];
    return 0;
}

struct target {
    const struct window *window;
    uint8_t *labels;
};

static void copy_block(void *user, const struct window *block, const uint8_t *labels)
{
    const struct target *target = user;
    const struct window *whole = target->window;
    for (int64_t y = 0; y < block->height; y++)
        memcpy(target->labels + (block->row - whole->row + y) * whole->width + block->column -
                   whole->column,
               labels + y * block->width, (size_t)block->width);
}

void layers_fill(const struct layers *layers, const struct window *window, uint8_t *labels)
{
    struct present present;
    struct target target = { window, labels };
    int64_t n = window->width * window->height;
    if (layers->n == 1) {
        memset(labels, 0, (size_t)n);
        scan_fill(&layers->items[0].scan, window, labels);
        for (int64_t i = 0; i < n; i++)
            labels[i] = labels[i] ? layers->items[0].label : LAYER_NONE;
        return;
    }
    find_present(layers, window, &present);
    each_block(&present, window, copy_block, &target);
}
