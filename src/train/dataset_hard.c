/* dataset_hard.c: the patches of data.hard_negatives (mine.h) become training samples of the first
 * class. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/csv.h"
#include "train/dataset_origin.h"

struct hard {
    int32_t origin;
    int64_t item;
};

static int by_place(const void *a, const void *b)
{
    const struct hard *x = a, *y = b;
    if (x->origin != y->origin)
        return x->origin - y->origin;
    return x->item < y->item ? -1 : x->item > y->item;
}

static bool complain(const struct csv *csv, size_t row, const char *text, struct err *err)
{
    return err_set(err, ERR_FORMAT, "%s:%d: %s", csv->path, csv->lines[row], text);
}

/* The store of that path, opened for its table if the data set does not have it yet. */
static bool find_store(struct listing *listing, const char *path, int32_t *out, struct err *err)
{
    for (int32_t i = 0; i < listing->dataset->n_origins; i++)
        if (listing->dataset->origins[i].kind == ORIGIN_STORE &&
            strcmp(listing->dataset->origins[i].path, path) == 0) {
            *out = i;
            return true;
        }
    *out = listing->dataset->n_origins;
    if (!origin_open_store(listing, path, err))
        return false;
    struct origin *origin = &listing->dataset->origins[*out];
    store_close(origin->store); /* many may be listed */
    origin->store = NULL;
    return true;
}

static bool read_rows(struct listing *listing, const struct csv *csv, struct hard *hard,
                      struct err *err)
{
    int store = csv_column(csv, "store"), patch = csv_column(csv, "patch");
    if (store < 0 || patch < 0)
        return err_set(err, ERR_FORMAT, "%s: needs the columns store and patch", csv->path);
    for (size_t i = 0; i < csv->n_rows; i++) {
        const char *text = csv_cell(csv, i, patch);
        char *end = NULL;
        errno = 0;
        hard[i].item = strtoll(text, &end, 10);
        if (!*text || *end || errno || hard[i].item < 0)
            return complain(csv, i, "patch is not a number", err);
        if (!find_store(listing, csv_cell(csv, i, store), &hard[i].origin, err))
            return err_prefix(err, csv->path);
        const struct origin *origin = &listing->dataset->origins[hard[i].origin];
        if (origin_group(origin, hard[i].item) < 0)
            return complain(csv, i, "the store has no patch of this number", err);
    }
    return true;
}

/* Which side each patient is on; DATA_NONE for one who is excluded. New ones are for training. */
static enum data_side *sides_of(const struct dataset *dataset)
{
    enum data_side *sides = calloc((size_t)dataset->n_patients + 1, sizeof *sides);
    for (int64_t i = 0; sides && i < dataset->n_spans; i++)
        sides[dataset->spans[i].patient] = dataset->spans[i].side;
    return sides;
}

bool dataset_add_hard(struct listing *listing, const char *path, struct err *err)
{
    struct dataset *dataset = listing->dataset;
    struct csv csv = { 0 };
    if (!csv_read(path, &csv, err))
        return false;
    struct hard *hard = calloc(csv.n_rows + 1, sizeof *hard);
    bool ok = hard ? read_rows(listing, &csv, hard, err) : err_memory(err, path);
    enum data_side *sides = ok ? sides_of(dataset) : NULL;
    if (ok && !sides)
        ok = err_memory(err, path);
    if (ok)
        qsort(hard, csv.n_rows, sizeof *hard, by_place);
    for (size_t i = 0; ok && i < csv.n_rows; i++) {
        const struct origin *origin = &dataset->origins[hard[i].origin];
        struct new_sample new = { .item = hard[i].item,
                                  .origin = hard[i].origin,
                                  .patient = origin->patient,
                                  .side = DATA_TRAIN };
        bool again = i > 0 && by_place(&hard[i - 1], &hard[i]) == 0;
        if (!again && sides[origin->patient] == DATA_TRAIN)
            ok = dataset_add_sample(dataset, &new, err);
    }
    free(sides);
    free(hard);
    csv_free(&csv);
    return ok;
}
