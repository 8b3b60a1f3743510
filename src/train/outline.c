/* outline.c: see outline.h. */
#include "train/outline.h"

#include "dist/numa.h"
#include "train/trainer.h"

#define MOST_RANKS 64 /* that are listed one by one */

/* Of divided patches, bands are rows of parts. */
static const char *name_of(const struct train_config *config, int axis)
{
    if (config_divided(config) && (axis == GRID_SPACE || axis == GRID_BANDS))
        return axis == GRID_SPACE ? "columns" : "rows";
    return rank_grid_names[axis];
}

/* "data 2 x bands 2": the axes that divide anything. */
static void put_grid(FILE *stream, const struct train_config *config, const int extent[GRID_AXES])
{
    const char *before = "";
    for (int a = 0; a < GRID_AXES; a++)
        if (extent[a] > 1 || a == GRID_DATA) {
            fprintf(stream, "%s%s %d", before, name_of(config, a), extent[a]);
            before = " x ";
        }
}

static void put_rank(FILE *stream, const struct train_config *config, const struct numa *numa,
                     const int extent[GRID_AXES], int ranks, int rank)
{
    int at[GRID_AXES];
    rank_grid_place(extent, rank, at);
    fprintf(stream, "rank %-6d ", rank);
    for (int a = 0; a < GRID_AXES; a++)
        if (extent[a] > 1)
            fprintf(stream, "%s %d, ", name_of(config, a), at[a]);
    if (numa)
        fprintf(stream, "%s\n", numa_place(numa, ranks, rank).words);
    else
        fputs("not bound: ranks.bind is none\n", stream);
}

bool train_outline(const struct train_start *start, int ranks, int threads, FILE *stream,
                   struct err *err)
{
    struct train_config config = { 0 };
    struct numa *numa = NULL;
    int extent[GRID_AXES];
    bool ok = train_start_config(start, &config, err);
    ok = ok && trainer_axes(&config, err) && config_extents(&config, ranks, extent, err) &&
         (config.ranks.bind == BIND_NONE || numa_new(NULL, &numa, err));
    if (ok) {
        fprintf(stream, "ranks       %d: ", ranks);
        put_grid(stream, &config, extent);
        fprintf(stream, "\nthreads     %d on each\n", threads);
        for (int r = 0; r < ranks && r < MOST_RANKS; r++)
            put_rank(stream, &config, numa, extent, ranks, r);
        if (ranks > MOST_RANKS)
            fprintf(stream, "and %d more\n", ranks - MOST_RANKS);
    }
    numa_free(numa);
    config_free(&config);
    return ok;
}
