/* rank_grid.c: see rank_grid.h. */
#include "dist/rank_grid.h"

const char *const rank_grid_names[GRID_AXES] = { "data", "stage", "space", "bands", "heads" };

bool rank_grid_extents(const int64_t asked[GRID_AXES], int size, int extent[GRID_AXES],
                       struct err *err)
{
    int64_t others = 1; /* at most `size`, so that nothing overflows */
    for (int a = GRID_STAGE; a < GRID_AXES; a++) {
        if (asked[a] < 1 || asked[a] > size / others)
            others = size + 1LL;
        if (others > size)
            break;
        others *= asked[a];
    }
    if (others > size || size % others != 0 ||
        (asked[GRID_DATA] != 0 && asked[GRID_DATA] != size / others))
        return err_set(err, ERR_USAGE,
                       "parallel: data %lld x stages %lld x space %lld x bands %lld x heads %lld "
                       "does not make %d rank%s; data: 0 takes what the others leave",
                       (long long)asked[GRID_DATA], (long long)asked[GRID_STAGE],
                       (long long)asked[GRID_SPACE], (long long)asked[GRID_BANDS],
                       (long long)asked[GRID_HEADS], size, size == 1 ? "" : "s");
    extent[GRID_DATA] = size / (int)others;
    for (int a = GRID_STAGE; a < GRID_AXES; a++)
        extent[a] = (int)asked[a];
    return true;
}

void rank_grid_place(const int extent[GRID_AXES], int rank, int at[GRID_AXES])
{
    for (int a = GRID_AXES - 1; a >= 0; a--) {
        at[a] = rank % extent[a];
        rank /= extent[a];
    }
}

/* The number of a rank's group along an axis: its place in the grid without that axis. */
static int group_number(const struct rank_grid *grid, int axis)
{
    int number = 0;
    for (int a = 0; a < GRID_AXES; a++)
        if (a != axis)
            number = number * grid->extent[a] + grid->at[a];
    return number;
}

bool rank_grid_new(struct ranks *ranks, const int64_t asked[GRID_AXES], struct rank_grid *out,
                   struct err *err)
{
    *out = (struct rank_grid){ 0 };
    bool ok =
        ranks_agree(ranks, rank_grid_extents(asked, ranks->size, out->extent, err), NULL, err);
    if (ok)
        rank_grid_place(out->extent, ranks->rank, out->at);
    for (int a = 0; ok && a < GRID_AXES; a++)
        ok = ranks_split(ranks, group_number(out, a), out->at[a], rank_grid_names[a],
                         &out->group[a], err);
    if (!ok)
        rank_grid_free(out);
    return ok;
}

void rank_grid_free(struct rank_grid *grid)
{
    for (int a = 0; a < GRID_AXES; a++)
        ranks_free(&grid->group[a]);
}
