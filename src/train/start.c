/* start.c: see start.h. */
#include "train/start.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/claim.h"
#include "base/console.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/text.h"
#include "dist/numa.h"
#include "train/mine.h"
#include "train/objectives.h"
#include "train/parallel_plan.h"

static bool use_teacher(struct train_config *config, const char *teacher, const char *path,
                        struct err *err)
{
    if (teacher) {
        free(config->distill.teacher);
        config->distill.teacher = strdup(teacher);
        if (!config->distill.teacher)
            return err_memory(err, "the config");
    }
    return objective_settle(config, path, err);
}

bool train_start_config(const struct train_start *start, struct train_config *out, struct err *err)
{
    if (!config_read(start->config, start->settings, start->n_settings, out, err))
        return false;
    if ((!start->miner || mine_name(out, start->folder, err)) &&
        use_teacher(out, start->teacher, start->config, err))
        return true;
    config_free(out);
    return false;
}

/* A training would put its own state among the combinations of a sweep. */
static bool refuse_sweep(const char *folder, struct err *err)
{
    char *sweep = text_format("%s/sweep.json", folder);
    bool ok = sweep || err_memory(err, "the training");
    if (ok && file_exists(sweep))
        ok =
            err_set(err, ERR_USAGE,
                    "%s: already contains a sweep; pass its --sweep options to continue it, or use "
                    "another folder",
                    folder);
    free(sweep);
    return ok;
}

static bool claim_folder(const struct train_start *start, const struct ctx *ctx, bool *made,
                         struct claim **claim, struct err *err)
{
    *made = !file_exists(start->folder);
    if (!refuse_sweep(start->folder, err) || !file_make_folder(start->folder, err))
        return false;
    return start->in_job ? claim_wait(start->folder, ctx->stop, claim, err)
                         : claim_take(start->folder, claim, err);
}

/* The pool of a rank; NULL if that of the process is used. */
static bool own_threads(const struct train_start *start, const struct ranks *ranks,
                        struct pool **out, struct err *err)
{
    if (ranks->size == 1 || !start->any_threads)
        return true;
    int threads = ranks->processors / ranks->local_size;
    *out = pool_new(threads > 0 ? threads : 1);
    return *out || err_memory(err, "threads");
}

/* Before memory is allocated and threads begin to work. */
static void bind(const struct train_config *config, const struct ranks *ranks,
                 const struct ctx *ctx)
{
    char text[400] = "";
    if (config->ranks.bind == BIND_AUTO)
        numa_settle(ranks, text, sizeof text);
    if (text[0])
        console_note(ctx->console, "%s", text);
}

static bool mine(const struct train_start *start, const struct ranks *ranks, const struct ctx *ctx,
                 const struct train_config *config, struct err *err)
{
    if (!start->miner)
        return true;
    enum mine_existing existing = start->resume      ? MINE_KEEP
                                  : start->overwrite ? MINE_REPLACE
                                                     : MINE_REFUSE;
    return ranks->rank > 0 || mine_add(config, start->miner, existing, ctx, err);
}

bool train_start(const struct train_start *start, struct ranks *ranks, const struct ctx *given,
                 struct train_result *out, struct err *err)
{
    struct train_config config = { 0 };
    struct ctx ctx = *given;
    struct pool *own = NULL;
    struct claim *claim = NULL;
    struct watch *watch = NULL;
    bool made = false;
    bool ok = train_start_config(start, &config, err) && own_threads(start, ranks, &own, err);
    if (own)
        ctx.pool = own;
    if (ranks->rank > 0)
        ctx.console = NULL;
    else
        ok = ok && claim_folder(start, &ctx, &made, &claim, err);
    if (ok)
        bind(&config, ranks, &ctx);
    ok = ok && mine(start, ranks, &ctx, &config, err);
    struct train_request request = { .config = &config,
                                     .folder = start->folder,
                                     .resume = start->resume,
                                     .overwrite = start->overwrite,
                                     .ranks = ranks,
                                     .argc = start->argc,
                                     .argv = start->argv };
    ok = ranks_agree(ranks, ok, NULL, err) &&
         parallel_settle(&config, ranks, start->folder, start->resume, &ctx, err) &&
         watch_begin(ranks, start->lost ? config.ranks.timeout_s : 0, "ranks.timeout_s",
                     start->lost, NULL, &watch, err) &&
         train_run(&request, &ctx, out, err);
    watch_end(watch);
    claim_release(claim);
    if (made && !ok)
        rmdir(start->folder); /* if nothing is in it */
    pool_free(own);
    config_free(&config);
    return ok;
}
