/* train_plan.c: microtome train --plan-parallel: a config -> the grid of ranks and the schedule
 * that train fastest, in a table or as JSON, with a chart. */
#include "base/file.h"
#include "cli/train.h"
#include "dist/launch.h"
#include "train/parallel_plan.h"

#define MEASURING_RANKS 2

static bool knows_wire(const struct train_args *given)
{
    return given->latency_us > 0 && given->bandwidth_gb > 0;
}

/* Where ranks run: as given, else where --ranks would start them if there is a processor for each,
 * else one on each of many machines like this one. */
static struct parallel_place place_of(const struct train_args *given, const struct ranks *here,
                                      const struct train_config *config)
{
    int ranks = given->ranks > 1 ? (int)given->ranks : here->size;
    struct parallel_place place = { .ranks = ranks,
                                    .cores =
                                        here->size > 1 ? here->processors : parallel_processors() };
    int together = ranks == here->size ? here->local_size : ranks <= place.cores ? ranks : 1;
    place.ranks_a_machine = given->machine_ranks > 0 ? (int)given->machine_ranks : together;
    if (place.ranks_a_machine > ranks)
        place.ranks_a_machine = ranks;
    place.threads = given->common.threads > 0 ? (int)given->common.threads
                                              : launch_threads(place.cores, place.ranks_a_machine);
    parallel_memory(config, &place);
    if (given->memory_mb > 0) {
        place.memory = (size_t)given->memory_mb * 1000000;
        place.memory_from = "given";
    }
    return place;
}

/* Collective. */
static bool find_wire(const struct train_args *given, struct ranks *here, struct wire *wire,
                      const char **from, struct err *err)
{
    static const char *const names[2][2][2] = {
        /* measured, latency given, bandwidth given */
        { { "assumed", "bandwidth given, latency assumed" },
          { "latency given, bandwidth assumed", "given" } },
        { { "measured", "bandwidth given, latency measured" },
          { "latency given, bandwidth measured", "given" } },
    };
    bool measured = !knows_wire(given) && here->size > 1;
    *wire = WIRE_ASSUMED;
    *from = names[measured][given->latency_us > 0][given->bandwidth_gb > 0];
    if (measured && !parallel_wire(here, wire, err))
        return false;
    if (given->latency_us > 0)
        wire->latency_s = given->latency_us * 1e-6;
    if (given->bandwidth_gb > 0)
        wire->bytes_per_s = given->bandwidth_gb * 1e9;
    return true;
}

/* The first rank alone. */
static bool plan_and_print(struct app *app, const struct train_args *given,
                           const struct train_config *config, const struct parallel_place *place,
                           struct err *err)
{
    struct parallel_plan plan = { 0 };
    bool ok = parallel_plan_new(config, place, &plan, err);
    if (ok && given->json)
        parallel_plan_json(&plan, app->out);
    else if (ok && plan.advice.n_fit > 0)
        parallel_plan_print(&plan, app->out);
    ok = ok && (!given->output || parallel_plan_write(&plan, given->output, err)) &&
         advice_fits(&plan.request, &plan.advice, err);
    parallel_plan_free(&plan);
    return ok;
}

static bool plan_here(struct app *app, const struct train_args *given,
                      const struct train_start *start, struct err *err)
{
    struct ranks here;
    struct train_config config = { 0 };
    struct wire wire;
    const char *from;
    if (!ranks_begin(&here, err))
        return false;
    bool ok = train_start_config(start, &config, err);
    ok = ranks_agree(&here, ok, NULL, err) && find_wire(given, &here, &wire, &from, err);
    if (ok && here.rank == 0) {
        struct parallel_place place = place_of(given, &here, &config);
        place.wire = wire, place.wire_from = from;
        ok = plan_and_print(app, given, &config, &place, err);
    }
    if (here.size > 1 && here.rank > 0 && err)
        err->text[0] = 0; /* the first rank reports it */
    config_free(&config);
    ranks_end(&here, ok);
    return ok;
}

/* What can be wrong before anything is measured, which takes long for large networks. */
static bool check(const struct train_args *given, const struct train_start *start, struct err *err)
{
    struct train_config config = { 0 };
    bool ok = train_start_config(start, &config, err);
    config_free(&config);
    return ok && (!given->output || file_make_folder(given->output, err));
}

bool train_plan(struct app *app, const struct train_args *given, const struct args_result *operands,
                struct err *err)
{
    struct train_start start = train_args_start(given, operands);
    if (given->sweeps.n > 0 || given->cluster.on > 0 || given->cluster.dry_run)
        return err_set(err, ERR_USAGE,
                       "--plan-parallel: plans one training and starts no job; omit --sweep, --on "
                       "and --dry-run");
    if (ranks_started() == 1 && !check(given, &start, err))
        return false;
    if (ranks_started() == 1 && !knows_wire(given) && given->ranks > 1 &&
        given->ranks <= parallel_processors() && launch_possible(NULL)) {
        struct err problem = { 0 };
        if (train_start_ranks(app, given, operands, MEASURING_RANKS, &problem))
            return true;
        if (!problem.text[0]) { /* a rank has said why */
            *err = problem;
            return false;
        } /* mpirun does not work here: the connection is assumed */
    }
    return plan_here(app, given, &start, err);
}
