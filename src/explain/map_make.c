/* map_make.c: the maps of subjects: several subjects at once, each with all its columns (map.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "base/file.h"
#include "base/pool.h"
#include "explain/map_work.h"

struct making {
    struct map_run *run;
    const struct ctx *ctx;
    int64_t first; /* subject of the first piece */
};

static void measure(const struct attribution *raw, int column, struct map_numbers *numbers)
{
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < raw->height * raw->width; i++) {
        low = fmin(low, (double)raw->values[i]);
        high = fmax(high, (double)raw->values[i]);
    }
    numbers->low[column] = low;
    numbers->high[column] = high;
    numbers->height[column] = raw->height;
    numbers->width[column] = raw->width;
}

/* maps [columns], at the input's size. */
static bool believe(const struct map_run *run, struct map_worker *worker,
                    const struct map_view *view, const float *const *maps, const struct ctx *ctx,
                    struct map_numbers *numbers, struct err *err)
{
    int n = run->n_columns;
    struct belief_settings belief = run->request->belief;
    struct probe *probe = map_probe(run, worker, NULL, err);
    numbers->agreement = calloc((size_t)(n * n), sizeof *numbers->agreement);
    return probe && (numbers->agreement || err_memory(err, "the maps")) &&
           belief_orders(&worker->settings, &belief, probe, &view->view, maps, n, ctx,
                         numbers->orders, err) &&
           belief_agreement(maps, n, view->sized.width * view->sized.height, numbers->agreement,
                            err);
}

/* All columns of one subject, written, and the maps at the input's size for believe(). *advanced:
 * how many the progress has counted. */
static bool make_columns(const struct map_run *run, struct map_worker *worker,
                         const struct subject *subject, const struct map_view *view,
                         const struct ctx *ctx, float **maps, struct map_numbers *numbers,
                         int *advanced, struct err *err)
{
    bool ok = true;
    for (int i = 0; ok && i < run->n_columns; i++) {
        struct attribution raw;
        map_make_room(run, worker, i);
        ok = (!ctx_stopped(ctx) || err_stopped(err)) &&
             map_explain(run, worker, i, &view->view, ctx, &raw, err);
        if (!ok)
            break;
        measure(&raw, i, numbers);
        maps[i] = malloc((size_t)(view->sized.width * view->sized.height) * sizeof *maps[i]);
        ok = (maps[i] || err_memory(err, "a map")) &&
             map_write_column(run, subject, i, view, &raw, err);
        if (ok)
            attribution_resize(&raw, view->sized.height, view->sized.width, maps[i]);
        free(raw.values);
        if (ok && i + 1 < run->n_columns) /* the last one is done when it has been measured */
            console_advance(ctx->console, 1), ++*advanced;
    }
    return ok;
}

static bool make_subject(const struct map_run *run, struct map_worker *worker,
                         const struct subject *subject, const struct ctx *ctx, int *advanced,
                         struct err *err)
{
    struct map_view view;
    struct map_numbers *numbers = calloc(1, sizeof *numbers);
    float *maps[MAP_MOST_COLUMNS] = { 0 };
    char *folder = map_path(run, subject, "");
    char *picture = map_path(run, subject, "image.png");
    bool ok = map_view_make(run, worker, subject, &view, err);
    ok = ok && ((numbers && folder && picture) || err_memory(err, "a map"));
    ok = ok && file_make_folder(folder, err) && image_write_png(picture, &view.image, err) &&
         make_columns(run, worker, subject, &view, ctx, maps, numbers, advanced, err) &&
         believe(run, worker, &view, (const float *const *)maps, ctx, numbers, err) &&
         map_measure_inside(run, subject, &view, maps, ctx, numbers, err) &&
         map_write_subject(run, subject, &view, numbers, err);
    for (int i = 0; i < run->n_columns; i++)
        free(maps[i]);
    if (numbers)
        free(numbers->agreement);
    free(numbers);
    free(folder);
    free(picture);
    map_view_free(&view);
    return ok;
}

/* A subject that fails is recorded with the reason; a stop and a full disk end the run. */
static bool make_piece(void *arg, int64_t index, int worker, struct err *err)
{
    struct making *making = arg;
    struct map_run *run = making->run;
    const struct subject *subject = &run->subjects->items[making->first + index];
    struct err why = { 0 };
    int advanced = 0;
    bool ok = map_done(run, subject) ||
              make_subject(run, &run->workers[worker], subject, making->ctx, &advanced, &why);
    if (!ok && why.kind != ERR_STOPPED && why.kind != ERR_IO && why.kind != ERR_MEMORY) {
        if (!strstr(why.text, subject->file))
            err_prefix(&why, subject->file);
        console_warn(making->ctx->console, "%s", why.text);
        ok = map_write_failure(run, subject, &why, err);
    } else if (!ok) {
        *err = why;
    }
    if (ok)
        console_advance(making->ctx->console, run->n_columns - advanced);
    return ok;
}

/* Subjects of one source, on as many threads as there are workers. */
static bool make_source(struct map_run *run, int64_t first, int64_t end, const struct ctx *ctx,
                        struct err *err)
{
    struct making making = { run, ctx, first };
    bool missing = false, ok = true;
    for (int64_t i = first; i < end; i++)
        missing = missing || !map_done(run, &run->subjects->items[i]);
    if (!missing) {
        console_advance(ctx->console, (end - first) * run->n_columns);
        return true;
    }
    struct err why = { 0 };
    if (!subjects_enter(run->subjects, run->subjects->items[first].source, &why)) {
        console_warn(ctx->console, "%s", why.text);
        for (int64_t i = first; ok && i < end; i++)
            ok = map_write_failure(run, &run->subjects->items[i], &why, err);
        console_advance(ctx->console, (end - first) * run->n_columns);
        return ok;
    }
    if (run->n_workers == pool_workers(ctx->pool))
        return pool_for(ctx->pool, end - first, make_piece, &making, ctx->stop, err);
    struct pool *fewer = pool_new(run->n_workers);
    ok = fewer ? pool_for(fewer, end - first, make_piece, &making, ctx->stop, err)
               : err_memory(err, "threads");
    pool_free(fewer);
    return ok;
}

bool map_make(struct map_run *run, int64_t first, int64_t end, const struct ctx *ctx,
              struct err *err)
{
    const struct subject *items = run->subjects->items;
    bool ok = true;
    console_begin(ctx->console, "explaining", (end - first) * run->n_columns, "maps");
    for (int64_t i = first, next; ok && i < end; i = next) {
        for (next = i + 1; next < end && items[next].source == items[i].source;)
            next++;
        ok = (!ctx_stopped(ctx) || err_stopped(err)) && make_source(run, i, next, ctx, err);
    }
    console_end(ctx->console);
    return ok;
}
