/* advice.c: a network's measured layers and a number of ranks -> all grids and schedules, simulated
 * and sorted. */
#include "parallel/advice.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "parallel/advice_cut.h"

/* Bytes that the optimizer moves in a second: an estimate, small beside the rest. */
#define UPDATE_BYTES_PER_S 25e9
#define MOST_MICROS 1024 /* in a step, that are simulated */

struct advising {
    const struct advice_request *request;
    struct advice *out;
    int64_t room;
    struct cut cut; /* that is considered */
};

/* Replicas that are on one machine work at the same time: to one of them, it is as if its ranks
 * used the threads of all. */
static void share_machine(const struct advice_request *request, int stages,
                          struct simulate_options *options)
{
    int group = request->ranks_a_machine;
    if (group <= 0)
        return;
    int replicas = group > stages ? group / stages : 1;
    options->ranks_a_machine = group < stages ? group : stages;
    options->cores = request->cores;
    options->threads = (request->threads > 0 ? request->threads : 1) * replicas;
}

static bool run(const struct advice_request *request, const struct advice_choice *choice,
                const struct cut *cut, const struct program *program, struct simulation *out,
                struct err *err)
{
    struct stage_cost costs[STAGES_MOST];
    struct stage_edge *edges = cut_scaled(cut, choice->micro_batch, &request->wire, costs);
    if (!edges)
        return err_memory(err, "a simulation");
    struct simulate_options options = {
        .program = program,
        .costs = costs,
        .edges = edges,
        .n_edges = cut->stages.n_edges,
        .wire = request->wire,
        .recompute = choice->recompute,
        .copies = choice->data * (program->two_way ? 2 : 1),
        .update_s_per_byte = (2.0 + 2.0 * request->optimizer_arrays) / UPDATE_BYTES_PER_S,
    };
    share_machine(request, choice->stages, &options);
    bool ok = simulate(&options, out, err);
    free(edges);
    return ok;
}

/* Gradients and optimizer of `learnt` bytes of parameters. */
static size_t to_learn(const struct advice_request *request, size_t learnt)
{
    return learnt * (size_t)(1 + request->optimizer_arrays + request->other_arrays);
}

/* What the rank that takes most takes. */
static size_t peak_of_stages(const struct advice_request *request, const struct cut *cut,
                             const struct program *program, const struct simulation *simulation)
{
    size_t weights = 4 * (size_t)graph_parameter_count(request->graph), most = 0;
    for (int r = 0; r < program->stages; r++) {
        int held[2], n_held = program_held(program, r, held);
        size_t learnt = 0;
        for (int i = 0; i < n_held; i++)
            learnt += cut->costs[held[i]].parameters;
        double share = weights > 0 ? (double)learnt / (double)weights : 1;
        size_t bytes = to_learn(request, learnt) + simulation->peak[r] +
                       (size_t)(share * (double)request->train_plan);
        most = bytes > most ? bytes : most;
    }
    return most + weights + request->evaluation_plan + request->besides;
}

/* Every rank has its part alone, but begins with the whole network; its plans have as many steps as
 * those of the whole. */
static size_t peak_of_heads(const struct advice_request *request, const struct cut *cut,
                            const struct simulation *simulation)
{
    size_t own = cut->costs[0].parameters;
    size_t whole = 4 * (size_t)graph_parameter_count(request->graph);
    size_t in_steps = to_learn(request, own) + simulation->peak[0] + request->train_plan +
                      request->evaluation_plan;
    return own + (in_steps > whole ? in_steps : whole) + request->besides;
}

/* Fills what the simulation says of a choice. */
static bool evaluate(const struct advice_request *request, const struct cut *cut,
                     const struct program *program, struct advice_choice *choice, struct err *err)
{
    struct simulation simulation;
    if (!run(request, choice, cut, program, &simulation, err))
        return false;
    choice->seconds = simulation.seconds;
    choice->sums = simulation.busy * cut_sums_share(cut, choice->micro_batch, &request->wire);
    choice->busy = simulation.busy - choice->sums;
    choice->peak = cut->heads > 1 ? peak_of_heads(request, cut, &simulation)
                                  : peak_of_stages(request, cut, program, &simulation);
    choice->fits = request->memory == 0 || choice->peak <= request->memory;
    memcpy(choice->begin, cut->stages.begin, sizeof choice->begin);
    simulation_free(&simulation);
    return true;
}

/* A cut by time alone that does not fit: another, whose stages keep less, may. */
static bool tighten(const struct advice_request *request, const struct program *program,
                    struct advice_choice *choice, struct err *err)
{
    int sets = 1;
    for (int r = 0; r < program->stages && !choice->recompute; r++) {
        int held[2], n_held = program_held(program, r, held);
        for (int i = 0; i < n_held; i++) {
            int kept = program_most_kept(program, r, held[i]);
            sets = kept > sets ? kept : sets;
        }
    }
    size_t others = 4 * (size_t)graph_parameter_count(request->graph) + request->evaluation_plan +
                    request->besides;
    size_t each = (size_t)sets * (size_t)choice->micro_batch;
    size_t room = request->memory > others ? (request->memory - others) / each : 0;
    struct cut cut = { 0 };
    struct advice_choice other = *choice;
    if (room == 0 || !cut_balanced(request, choice->stages, room, &cut, NULL)) {
        cut_free(&cut);
        return true;
    }
    bool ok = evaluate(request, &cut, program, &other, err);
    if (ok && (other.fits || other.peak < choice->peak))
        *choice = other;
    cut_free(&cut);
    return ok;
}

static bool consider(struct advising *a, struct advice_choice choice, struct err *err)
{
    struct program program;
    if (!program_new(choice.schedule, choice.stages, (int)choice.micros, &program, NULL))
        return true; /* not with so many micro-batches */
    bool ok = evaluate(a->request, &a->cut, &program, &choice, err) &&
              (choice.fits || choice.stages == 1 || tighten(a->request, &program, &choice, err)) &&
              array_grow(&a->out->choices, &a->room, a->out->n + 1, sizeof *a->out->choices,
                         "choices", err);
    if (ok) {
        a->out->choices[a->out->n++] = choice;
        a->out->n_fit += choice.fits;
    }
    program_free(&program);
    return ok;
}

/* Only where several micro-batches are kept is there anything to compute again. */
static bool may_recompute(enum program_kind schedule)
{
    return schedule == PROGRAM_GPIPE || schedule == PROGRAM_1F1B || schedule == PROGRAM_ZB_H1;
}

static bool with_schedule(struct advising *a, struct advice_choice choice, struct err *err)
{
    const struct advice_request *request = a->request;
    bool pairs = choice.schedule == PROGRAM_MAST || choice.schedule == PROGRAM_MASTER;
    if (choice.schedule == PROGRAM_MASTER && choice.micros == 2 &&
        request->schedule != PROGRAM_MASTER)
        return true; /* that is mast */
    if ((request->schedule >= 0 && choice.stages > 1 &&
         request->schedule != (int)choice.schedule) ||
        (request->times > 0 && pairs && choice.micros != 2 * (int64_t)request->times))
        return true;
    for (int again = 0; again < 1 + may_recompute(choice.schedule); again++) {
        choice.recompute = again == 1;
        if (request->recompute >= 0 && again != request->recompute &&
            may_recompute(choice.schedule))
            continue;
        if (!consider(a, choice, err))
            return false;
    }
    return true;
}

/* Where micro-batches are open: numbers of them up to where a pipeline is full nearly all the time,
 * and the smallest micro-batches, which take the least memory. */
static bool worth_trying(int64_t images, int64_t micros, int stages)
{
    if (micros <= (8 * stages > 32 ? 8 * stages : 32))
        return true;
    for (int64_t more = micros + 1; more <= MOST_MICROS && more <= images; more++)
        if (images % more == 0)
            return false;
    return micros <= MOST_MICROS;
}

/* All ways to train with the cut. */
static bool with_cut(struct advising *a, struct err *err)
{
    const struct advice_request *request = a->request;
    int stages = a->cut.stages.n, heads = a->cut.heads, data = request->ranks / (stages * heads);
    int64_t images = request->step_images / data;
    for (int64_t micros = 1; micros <= images; micros++) {
        struct advice_choice choice = { .data = data,
                                        .stages = stages,
                                        .heads = heads,
                                        .micro_batch = images / micros,
                                        .micros = micros };
        bool fixed = request->micro_batch > 0;
        if (images % micros != 0 || (fixed && choice.micro_batch != request->micro_batch) ||
            (!fixed && !worth_trying(images, micros, stages)))
            continue;
        for (int s = 0; s < (stages == 1 ? 1 : PROGRAMS); s++) {
            choice.schedule = (enum program_kind)s;
            if (!with_schedule(a, choice, err))
                return false;
        }
    }
    return true;
}

/* Rounded to a millionth, so that the last digits do not decide. */
static double about(double seconds)
{
    return seconds > 0 ? round(log(seconds) * 1e6) : -INFINITY;
}

static int in_order(const void *left, const void *right)
{
    const struct advice_choice *a = left, *b = right;
    double a_s = about(a->seconds), b_s = about(b->seconds);
    if (a->fits != b->fits)
        return b->fits - a->fits;
    if (a->fits && a_s != b_s)
        return a_s < b_s ? -1 : 1;
    if (a->peak != b->peak)
        return a->peak < b->peak ? -1 : 1;
    if (a_s != b_s)
        return a_s < b_s ? -1 : 1;
    if (a->stages != b->stages)
        return a->stages - b->stages;
    if (a->heads != b->heads)
        return a->heads - b->heads;
    if (a->micros != b->micros)
        return a->micros < b->micros ? -1 : 1;
    return (int)a->schedule - (int)b->schedule;
}

static bool check_grid(const struct advice_request *request, struct err *err)
{
    const struct {
        const char *name;
        int number;
    } fixed[] = { { "stages", request->stages },
                  { "data", request->data },
                  { "heads", request->heads } };
    int ranks = request->ranks, data = request->data;
    int others = request->stages > 0 ? request->stages : request->heads > 1 ? request->heads : 0;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (fixed[i].number > 0 && ranks % fixed[i].number != 0)
            return err_set(err, ERR_USAGE, "parallel.%s: %d: %d ranks are not a multiple of it",
                           fixed[i].name, fixed[i].number, ranks);
    return data <= 0 || others == 0 || data * others == ranks ||
           err_set(err, ERR_USAGE, "parallel: data %d x %s %d does not make %d ranks", data,
                   request->stages > 0 ? "stages" : "heads", others, ranks);
}

/* What the user has fixed leaves nothing. */
static bool nothing_left(const struct advice_request *request, struct err *err)
{
    return err_set(err, ERR_USAGE,
                   "parallel: %lld %s in a step on %d ranks cannot be divided into micro-batches "
                   "as the config asks (micro_batch, times, schedule): the %s of a replica must "
                   "be a multiple of a micro-batch, and for master of a pair of them",
                   (long long)request->step_images, advice_samples(request), request->ranks,
                   advice_samples(request));
}

/* Whether the ranks can be copies of `parts` ranks each, as the user has fixed them. */
static bool makes_grid(const struct advice_request *request, int parts)
{
    int data = request->ranks / parts;
    return request->ranks % parts == 0 && request->step_images % data == 0 &&
           (request->data <= 0 || data == request->data);
}

static bool with_stages(struct advising *a, struct err *err)
{
    const struct advice_request *request = a->request;
    bool ok = true;
    int most = request->texts ? 1 : STAGES_MOST;
    for (int n = 1; ok && n <= most && n <= request->ranks; n++) {
        if (!makes_grid(request, n) || (request->stages > 0 && n != request->stages))
            continue;
        struct err why = { 0 };
        if (cut_balanced(request, n, 0, &a->cut, &why))
            ok = with_cut(a, err);
        else if (request->stages > 0 || n == 1) /* else: more stages than layers */
            ok = err_set(err, why.kind, "%s", why.text);
        cut_free(&a->cut);
    }
    return ok;
}

static bool with_heads(struct advising *a, struct err *err)
{
    const struct advice_request *request = a->request;
    bool ok = true;
    for (int n = 2; ok && n <= request->ranks; n++) {
        if (!makes_grid(request, n) || (request->heads > 0 && n != request->heads))
            continue;
        struct err why = { 0 };
        if (cut_heads(request, n, &a->cut, &why))
            ok = with_cut(a, err);
        else if (request->heads > 0 || why.kind != ERR_USAGE) /* else: not of this network */
            ok = err_set(err, why.kind, "%s%s", request->heads > 0 ? "parallel.heads: " : "",
                         why.text);
        cut_free(&a->cut);
    }
    return ok;
}

bool advise(const struct advice_request *request, struct advice *out, struct err *err)
{
    *out = (struct advice){ 0 };
    struct advising a = { .request = request, .out = out };
    bool ok = check_grid(request, err) && (request->heads > 1 || with_stages(&a, err)) &&
              (request->stages > 0 || request->heads == 1 || with_heads(&a, err));
    ok = ok && (out->n > 0 || nothing_left(request, err));
    if (ok)
        qsort(out->choices, (size_t)out->n, sizeof *out->choices, in_order);
    else
        advice_free(out);
    return ok;
}

void advice_free(struct advice *advice)
{
    free(advice->choices);
    *advice = (struct advice){ 0 };
}

bool advice_simulate(const struct advice_request *request, const struct advice_choice *choice,
                     struct program *program, struct simulation *out, struct err *err)
{
    struct cut cut = { 0 };
    bool ok = program_new(choice->schedule, choice->stages, (int)choice->micros, program, err);
    ok = ok &&
         (choice->heads > 1 ? cut_heads(request, choice->heads, &cut, err)
                            : cut_at(request, choice->begin, choice->stages, &cut, err)) &&
         run(request, choice, &cut, program, out, err);
    cut_free(&cut);
    if (!ok)
        program_free(program);
    return ok;
}
