/* sweep_run.c: trains the combinations on this computer, one after another (sweep.h). */
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/console.h"
#include "base/text.h"
#include "sweep/sweep.h"

struct progress {
    size_t left;    /* to train, with the next one */
    size_t trained; /* by this process */
    double seconds; /* that these took */
    size_t failed;
    size_t first_failed;
};

static void say_next(const struct sweep *sweep, size_t i, const struct progress *progress,
                     const struct ctx *ctx)
{
    char left[64] = "";
    if (progress->trained > 0) {
        long long s =
            (long long)(progress->seconds / (double)progress->trained * (double)progress->left);
        snprintf(left, sizeof left, "; about %lld:%02lld:%02lld left", s / 3600, s / 60 % 60,
                 s % 60);
    }
    console_note(ctx->console, "combination %zu of %zu: %s%s", i + 1, sweep->n,
                 sweep->items[i].name, left);
}

/* False where the sweep must end: stopped, or its own files cannot be written. */
static bool run_one(struct sweep *sweep, size_t i, sweep_train_fn train, void *arg,
                    struct progress *progress, const struct ctx *ctx, struct err *err)
{
    struct combination *one = &sweep->items[i];
    struct err why = { 0 };
    char *folder = sweep_folder(sweep, i);
    char *path = text_format("%s/%s/" SWEEP_RESULT, sweep->folder, one->name);
    double began_s = clock_monotonic_s();
    say_next(sweep, i, progress, ctx);
    one->state = COMBINATION_RUNNING;
    bool ok = ((folder && path) || err_memory(err, "the sweep")) && sweep_write(sweep, err);
    bool trained = ok && train(arg, sweep, i, &why) && sweep_record(folder, path, &why);
    free(folder);
    free(path);
    if (!ok)
        return false;
    bool stopped = !trained && (why.kind == ERR_REQUEUE || why.kind == ERR_STOPPED);
    one->state = trained ? COMBINATION_DONE : stopped ? COMBINATION_STOPPED : COMBINATION_FAILED;
    progress->left--;
    progress->trained += trained;
    progress->seconds += trained ? clock_monotonic_s() - began_s : 0;
    if (!trained && !stopped) {
        one->error =
            text_format("%s", why.text[0] ? why.text : "its ranks failed; see their messages");
        console_warn(ctx->console, "%s: %s", one->name, one->error ? one->error : "");
        if (progress->failed++ == 0)
            progress->first_failed = i;
    }
    ok = sweep_read(sweep, err) && sweep_write(sweep, err);
    if (ok && stopped)
        ok = err_set(err, ERR_REQUEUE,
                     "stopped in combination %zu of %zu (%s) and saved; run the same command again "
                     "to continue",
                     i + 1, sweep->n, one->name);
    return ok;
}

bool sweep_run(struct sweep *sweep, sweep_train_fn train, void *arg, const struct ctx *ctx,
               struct err *err)
{
    struct progress progress = { 0 };
    bool ok = sweep_read(sweep, err);
    for (size_t i = 0; i < sweep->n; i++)
        progress.left += sweep->items[i].state != COMBINATION_DONE;
    if (ok && progress.left < sweep->n)
        console_note(ctx->console, "%zu of %zu combinations are complete and are kept",
                     sweep->n - progress.left, sweep->n);
    for (size_t i = 0; ok && i < sweep->n; i++) {
        if (sweep->items[i].state == COMBINATION_DONE)
            continue;
        ok = ctx_stopped(ctx)
                 ? err_set(err, ERR_REQUEUE,
                           "stopped before combination %zu of %zu (%s); run the same command again "
                           "to continue",
                           i + 1, sweep->n, sweep->items[i].name)
                 : run_one(sweep, i, train, arg, &progress, ctx, err);
    }
    ok = ok && sweep_write(sweep, err);
    if (ok && progress.failed > 0)
        ok = err_set(err, ERR_FORMAT, "%zu of %zu combinations failed; the first: %s: %.700s",
                     progress.failed, sweep->n, sweep->items[progress.first_failed].name,
                     sweep->items[progress.first_failed].error);
    return ok;
}
