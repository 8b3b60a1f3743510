/* positions.c: see positions.h. */
#include "net/model/positions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SIDE_LIMIT 4096 /* patches along a side */

/* Keys' cubic with a = -1/2. */
static double cubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

/* The weights [to, from] of one axis. A larger step than one cell widens the filter. */
static void axis_weights(int64_t from, int64_t to, double *weights)
{
    double step = (double)from / (double)to, wide = step > 1 ? step : 1;
    for (int64_t i = 0; i < to; i++) {
        double centre = step * ((double)i + 0.5), sum = 0, *row = weights + i * from;
        int64_t first = (int64_t)fmax(centre - 2 * wide + 0.5, 0);
        int64_t past = (int64_t)fmin(centre + 2 * wide + 0.5, (double)from);
        for (int64_t k = first; k < past; k++)
            sum += row[k] = cubic(((double)k - centre + 0.5) / wide);
        for (int64_t k = first; k < past; k++)
            row[k] /= sum;
    }
}

bool positions_resample(const float *in, int64_t from, int64_t features, int64_t height,
                        int64_t width, float *out)
{
    double *down = calloc((size_t)(height * from), sizeof *down);
    double *across = calloc((size_t)(width * from), sizeof *across);
    double *rows = calloc((size_t)(from * width * features), sizeof *rows); /* [from, width, ..] */
    double *cell = calloc((size_t)features, sizeof *cell);
    bool ok = down && across && rows && cell;
    if (ok) {
        axis_weights(from, height, down);
        axis_weights(from, width, across);
    }
    for (int64_t y = 0; ok && y < from; y++)
        for (int64_t x = 0; x < width; x++)
            for (int64_t k = 0; k < from; k++)
                for (int64_t f = 0; f < features && across[x * from + k] != 0; f++)
                    rows[(y * width + x) * features + f] +=
                        across[x * from + k] * (double)in[(y * from + k) * features + f];
    for (int64_t i = 0; ok && i < height * width; i++) {
        int64_t y = i / width, x = i % width;
        memset(cell, 0, (size_t)features * sizeof *cell);
        for (int64_t k = 0; k < from; k++)
            for (int64_t f = 0; f < features && down[y * from + k] != 0; f++)
                cell[f] += down[y * from + k] * rows[(k * width + x) * features + f];
        for (int64_t f = 0; f < features; f++)
            out[i * features + f] = (float)cell[f];
    }
    free(down), free(across), free(rows), free(cell);
    return ok;
}

/* Rows and columns of patches: what "patch_embed.proj" makes of the image. */
static bool find_grid(const struct graph *graph, int64_t grid[2])
{
    value_id value = graph_find(graph, "patch_embed.proj");
    if (value == NO_VALUE || graph_shape(graph, value)->rank != 4)
        return false;
    grid[0] = graph_shape(graph, value)->dim[2];
    grid[1] = graph_shape(graph, value)->dim[3];
    return true;
}

/* Memory that lives as long as the file; NULL: none left. */
static void *keep(struct safetensors *file, void *memory)
{
    void **larger = memory ? reallocarray(file->owned, file->n_owned + 1, sizeof *larger) : NULL;
    if (!larger) {
        free(memory);
        return NULL;
    }
    file->owned = larger;
    return larger[file->n_owned++] = memory;
}

/* Replaces the tensor: `before` tokens, then side x side patches, as the graph has them. */
static bool replace(struct safetensors *file, struct safetensors_tensor *tensor, int64_t before,
                    int64_t side, const int64_t grid[2], struct err *err)
{
    int64_t features = tensor->shape.dim[2], tokens = before + grid[0] * grid[1];
    float *old = malloc((size_t)tensor->count * sizeof *old);
    float *made = keep(file, malloc((size_t)(tokens * features) * sizeof *made));
    bool ok = old && made && safetensors_floats(tensor, old);
    if (ok) {
        memcpy(made, old, (size_t)(before * features) * sizeof *made);
        ok = positions_resample(old + before * features, side, features, grid[0], grid[1],
                                made + before * features);
    }
    if (ok) {
        tensor->type = safetensors_type("F32");
        tensor->shape.dim[1] = tokens;
        tensor->count = tokens * features;
        tensor->data = (const uint8_t *)made;
    }
    free(old);
    return ok || err_memory(err, file->path);
}

bool positions_fit(const struct graph *graph, struct safetensors *file, struct err *err)
{
    value_id value = graph_find(graph, "pos_embed");
    struct safetensors_tensor *tensor = NULL;
    for (size_t i = 0; i < file->n_tensors; i++)
        if (strcmp(file->tensors[i].name, "pos_embed") == 0)
            tensor = &file->tensors[i];
    int64_t grid[2];
    if (value == NO_VALUE || !tensor || !find_grid(graph, grid))
        return true;
    const struct shape *wanted = graph_shape(graph, value), *found = &tensor->shape;
    if (wanted->rank != 3 || found->rank != 3 || found->dim[0] != 1 ||
        found->dim[2] != wanted->dim[2] || found->dim[1] == wanted->dim[1])
        return true; /* equal, or no position embedding of this network */
    int64_t before = wanted->dim[1] - grid[0] * grid[1], patches = found->dim[1] - before;
    int64_t side = patches > 0 ? (int64_t)sqrt((double)patches) : 0;
    if (before < 0 || side < 1 || side > SIDE_LIMIT || side * side != patches ||
        grid[0] > SIDE_LIMIT || grid[1] > SIDE_LIMIT)
        return err_set(err, ERR_FORMAT,
                       "%s: pos_embed has %lld positions; %lld, or another square and %lld, are "
                       "needed",
                       file->path, (long long)found->dim[1], (long long)wanted->dim[1],
                       (long long)before);
    return replace(file, tensor, before, side, grid, err);
}
