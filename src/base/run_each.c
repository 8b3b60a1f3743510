/* run_each.c: see run_each.h. */
#include "base/run_each.h"

#include <stdlib.h>
#include "base/clock.h"
#include "base/console.h"
#include "base/pool.h"

/* A slide between make and tell. */
struct made {
    const struct run_each *each;
    size_t i;
    bool ok;
    double seconds;
    struct err why;
};

/* Where slides are made one after another, a stop within one ends the run; several at once are all
 * recorded, and the pool tells of the stop. */
static bool make(void *arg, int64_t index, int worker, struct err *err)
{
    (void)worker;
    struct made *made = (struct made *)arg + index;
    double began = clock_monotonic_s();
    made->ok = made->each->make(made->each->arg, made->i, &made->why);
    made->seconds = clock_monotonic_s() - began;
    if (made->ok || made->why.kind != ERR_STOPPED || made->each->together)
        return true;
    *err = made->why;
    return false;
}

static bool record(struct run *run, const struct made *made, const struct ctx *ctx, struct err *err)
{
    struct run_item item = { .state = RUN_DONE, .seconds = made->seconds };
    if (!made->ok) {
        console_warn(ctx->console, "%s", made->why.text);
        item.state = RUN_FAILED;
        item.error = made->why.text;
    }
    made->each->tell(made->each->arg, made->i, made->ok ? NULL : &made->why, &item);
    return run_add(run, &item, err);
}

bool run_each(struct run *run, const struct run_each *each, const struct ctx *ctx, size_t *reached,
              struct err *err)
{
    size_t at_once = each->together ? (size_t)pool_workers(ctx->pool) : 1;
    struct made *made = calloc(at_once, sizeof *made);
    bool ok = made || err_memory(err, "the list of slides");
    *reached = 0;
    if (each->label)
        console_begin(ctx->console, each->label, (int64_t)each->n, "slides");
    while (ok && *reached < each->n) {
        size_t first = *reached, n = each->n - first < at_once ? each->n - first : at_once;
        for (size_t k = 0; k < n; k++)
            made[k] = (struct made){ .each = each, .i = first + k };
        if (each->together)
            ok = pool_for(ctx->pool, (int64_t)n, make, made, ctx->stop, err);
        else
            ok = ctx_stopped(ctx) ? err_stopped(err) : make(made, 0, 0, err);
        for (size_t k = 0; ok && k < n; k++) {
            ok = record(run, &made[k], ctx, err);
            *reached += ok;
        }
        if (each->label)
            console_advance(ctx->console, (int64_t)n);
    }
    if (each->label)
        console_end(ctx->console);
    free(made);
    struct err later = { 0 }; /* the first error is the one to tell */
    ok = (!each->end || each->end(each->arg, *reached, ok ? err : &later)) && ok;
    ok = run_finish(run, ok ? err : &later) && ok;
    return ok;
}
