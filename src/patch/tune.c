/* tune.c: see tune.h. */
#include "patch/tune.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/console.h"
#include "base/text.h"
#include "base/clock.h"

#define GOOD_ENOUGH 0.95
#define REPEATS 3 /* the fastest counts: other users of the disk only slow it down */

/* The next read comes from the disk. */
static void forget_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

/* MB/s of reading all patches of a store, a whole group at a time or one by one. */
static bool read_store(const char *path, bool whole, const struct ctx *ctx, double *mb_per_s,
                       struct err *err)
{
    struct store *store = NULL;
    uint8_t *px = NULL;
    int64_t largest = 1, read = 0;
    forget_file(path);
    if (!store_open(path, &store, err))
        return false;
    int64_t bytes = store_patch_px(store) * store_patch_px(store) * 3;
    for (int64_t g = 0; whole && g < store_n_groups(store); g++)
        largest = store_group(store, g).n > largest ? store_group(store, g).n : largest;
    px = malloc((size_t)(largest * bytes));
    bool ok = px || err_memory(err, "a group of patches");
    if (ok)
        memset(px, 0, (size_t)(largest * bytes)); /* memory that is there before the clock starts */
    double began = clock_monotonic_s();
    for (int64_t g = 0; ok && g < store_n_groups(store); g++) {
        struct store_group group = store_group(store, g);
        int64_t step = whole ? group.n : 1;
        for (int64_t i = 0; ok && i < group.n; i += step, read += step)
            ok = ctx_stopped(ctx) ? err_stopped(err)
                                  : store_read(store, group.first + i, step, px, err);
    }
    store_close(store);
    *mb_per_s = (double)(read * bytes) / 1e6 / (clock_monotonic_s() - began);
    free(px);
    return ok;
}

static bool measure(const struct tune_request *request, struct extract_options *options,
                    const char *path, const struct ctx *ctx, struct tune_row *row, struct err *err)
{
    struct extract_result result;
    struct stain_fit target = { .method = STAIN_NONE };
    struct ctx quiet = { .pool = ctx->pool, .stop = ctx->stop };
    options->group = row->group;
    row->group_mb = (double)(row->group * request->patch * request->patch * 3) / 1e6;
    bool ok = extract_slide(request->slide, options, &target, path, &quiet, &result, err);
    for (int i = 0; ok && i < REPEATS; i++) {
        double whole = 0, single = 0;
        ok = read_store(path, true, ctx, &whole, err) && read_store(path, false, ctx, &single, err);
        row->whole_mb_per_s = whole > row->whole_mb_per_s ? whole : row->whole_mb_per_s;
        row->single_mb_per_s = single > row->single_mb_per_s ? single : row->single_mb_per_s;
    }
    unlink(path);
    return ok;
}

bool tune_groups(const struct tune_request *request, const struct ctx *ctx, struct tune_row *rows,
                 struct err *err)
{
    struct extract_options options = {
        .per_class = request->patches,
        .grid = { .tile = request->patch, .stride = request->patch },
        .label_rule = LABEL_NONE,
        .max_white = 1,
        .max_black = 1,
        .seed = request->seed,
        .layout = STORE_FDA, /* groups are what it is made of */
        .band_bytes = EXTRACT_BAND_BYTES,
        .batch_bytes = EXTRACT_BATCH_BYTES,
    };
    char *path = text_format("%s/microtome-tune-%ld.h5", request->folder, (long)getpid());
    bool ok = path || err_memory(err, request->folder);
    console_begin(ctx->console, "tune", request->n_sizes, "sizes");
    for (int64_t i = 0; ok && i < request->n_sizes; i++) {
        rows[i] = (struct tune_row){ .group = request->sizes[i] };
        ok = measure(request, &options, path, ctx, &rows[i], err);
        console_advance(ctx->console, 1);
    }
    console_end(ctx->console);
    free(path);
    return ok;
}

int64_t tune_suggest(const struct tune_row *rows, int64_t n)
{
    double best = 0;
    for (int64_t i = 0; i < n; i++)
        best = rows[i].whole_mb_per_s > best ? rows[i].whole_mb_per_s : best;
    for (int64_t i = 0; i < n; i++)
        if (rows[i].whole_mb_per_s >= GOOD_ENOUGH * best)
            return rows[i].group;
    return 0;
}
