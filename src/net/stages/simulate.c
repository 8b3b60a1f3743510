/* simulate.c: discrete events: ranks that work through a program, messages on their way, sums of
 * gradients -> when each began and ended, and the memory that each rank needs.
 *
 * Work goes on at the share of the processors that a rank has; as that changes whenever a rank
 * begins or ends, all that is running is moved on from event to event. A rank sends one message
 * after another and works meanwhile. */
#include "net/stages/simulate.h"
#include <math.h>
#include <stdlib.h>
#include "base/array.h"

/* What a rank is doing. */
struct doing {
    bool active;
    enum span_kind kind;
    struct work work;
    double left_s; /* of work at full speed */
    double begin_s, rate;
};

enum flight_kind { FLIGHT_FORWARD, FLIGHT_BACKWARD, FLIGHT_SUM };
/* A message that arrives, or a sum that is ready, at a time. */
struct flight {
    enum flight_kind kind;
    int stage, micro;
    double at_s;
};

struct world {
    const struct simulate_options *options;
    const struct program *program;
    double now_s;
    struct doing doing[STAGES_MOST];
    int next[STAGES_MOST];        /* work of a rank */
    bool recomputed[STAGES_MOST]; /* for the next work */
    bool updated[STAGES_MOST];
    double sends_s[STAGES_MOST]; /* until then the rank's messages are on their way out */
    double sums_s[STAGES_MOST];  /* the same for sums */
    int unfinished[STAGES_MOST]; /* works on each stage */
    bool summed[STAGES_MOST];
    int *missing[2]; /* FLIGHT_FORWARD, _BACKWARD: [stage][micro], tensors that have not arrived */
    struct flight *flights;
    int64_t n_flights, room_flights;
    struct sim_span *spans;
    int64_t n_spans, room_spans;
    double computed_s; /* of all ranks */
};

static int *missing_at(const struct world *world, enum flight_kind kind, int stage, int micro)
{
    return &world->missing[kind][(size_t)stage * (size_t)world->program->micros + (size_t)micro];
}

static bool add_flight(struct world *world, struct flight flight, struct err *err)
{
    if (!array_grow(&world->flights, &world->room_flights, world->n_flights + 1,
                    sizeof *world->flights, "messages of a simulation", err))
        return false;
    world->flights[world->n_flights++] = flight;
    return true;
}

static bool add_span(struct world *world, struct sim_span span, struct err *err)
{
    if (!array_grow(&world->spans, &world->room_spans, world->n_spans + 1, sizeof *world->spans,
                    "spans of a simulation", err))
        return false;
    world->spans[world->n_spans++] = span;
    return true;
}

/* The tensors that a work has made leave one after another. */
static bool send(struct world *world, int rank, const struct work *work, struct err *err)
{
    const struct simulate_options *o = world->options;
    bool forward = work->kind == WORK_FORWARD;
    for (int e = 0; e < o->n_edges && work->kind != WORK_WEIGHTS; e++) {
        const struct stage_edge *edge = &o->edges[e];
        if (work->stage != (forward ? edge->from : edge->to))
            continue;
        double out_s = (double)edge->bytes / o->wire.bytes_per_s;
        world->sends_s[rank] = fmax(world->sends_s[rank], world->now_s) + out_s;
        struct flight flight = { forward ? FLIGHT_FORWARD : FLIGHT_BACKWARD,
                                 forward ? edge->to : edge->from, work->micro,
                                 world->sends_s[rank] + o->wire.latency_s };
        if (!add_flight(world, flight, err))
            return false;
    }
    return true;
}

/* Processes that sum the gradients of a stage. Where both copies of a two-way program are on one
 * rank, they add to the same gradients. */
static int copies_of(const struct world *world, int stage)
{
    int copies = world->options->copies > 0 ? world->options->copies : 1;
    bool once = world->program->two_way && 2 * stage == world->program->stages - 1;
    return once ? (copies + 1) / 2 : copies;
}

/* All works of a stage are done: its sum begins as soon as the sums before it have left the
 * connections of those who hold it. */
static bool begin_sum(struct world *world, int stage, struct err *err)
{
    const struct simulate_options *o = world->options;
    int copies = copies_of(world, stage);
    if (copies == 1) {
        world->summed[stage] = true;
        return true;
    }
    double bytes = (double)o->costs[stage].parameters / copies;
    double takes_s = 2.0 * (copies - 1) * (o->wire.latency_s + bytes / o->wire.bytes_per_s);
    int holders[2] = { program_rank(world->program, stage, 0),
                       program_rank(world->program, stage, 1) };
    double begin_s = fmax(world->now_s, fmax(world->sums_s[holders[0]], world->sums_s[holders[1]]));
    for (int i = 0; i < 1 + (holders[0] != holders[1]); i++) {
        world->sums_s[holders[i]] = begin_s + takes_s;
        struct sim_span span = { holders[i], stage, -1, SPAN_SUM, begin_s, begin_s + takes_s };
        if (!add_span(world, span, err))
            return false;
    }
    return add_flight(world, (struct flight){ FLIGHT_SUM, stage, -1, begin_s + takes_s }, err);
}

static double work_s(const struct world *world, const struct work *work)
{
    const struct stage_cost *cost = &world->options->costs[work->stage];
    switch (work->kind) {
    case WORK_FORWARD:
        return cost->forward_s;
    case WORK_WEIGHTS:
        return cost->weights_s;
    default:
        return cost->backward_s - (world->program->split ? cost->weights_s : 0);
    }
}

static void begin(struct world *world, int rank, enum span_kind kind, struct work work,
                  double takes_s)
{
    world->doing[rank] = (struct doing){
        .active = true, .kind = kind, .work = work, .left_s = takes_s, .begin_s = world->now_s
    };
}

/* All works are done and all sums that the rank takes part in: the optimizer. */
static void begin_update(struct world *world, int rank)
{
    int held[2], n_held = program_held(world->program, rank, held);
    size_t bytes = 0;
    for (int i = 0; i < n_held; i++) {
        if (!world->summed[held[i]])
            return;
        bytes += world->options->costs[held[i]].parameters;
    }
    world->updated[rank] = true;
    double takes_s = (double)bytes * world->options->update_s_per_byte;
    if (takes_s > 0)
        begin(world, rank, SPAN_UPDATE, (struct work){ WORK_WEIGHTS, held[0], -1 }, takes_s);
}

/* Begins what an idle rank can begin. */
static void begin_next(struct world *world, int rank)
{
    if (world->next[rank] == world->program->n_work[rank]) {
        if (!world->updated[rank])
            begin_update(world, rank);
        return;
    }
    struct work work = world->program->work[rank][world->next[rank]];
    static const enum span_kind kinds[] = { SPAN_FORWARD, SPAN_BACKWARD, SPAN_WEIGHTS };
    if (work.kind == WORK_BACKWARD && world->options->recompute && !world->recomputed[rank] &&
        program_recomputes(world->program, rank, world->next[rank])) {
        begin(world, rank, SPAN_RECOMPUTE, work, world->options->costs[work.stage].forward_s);
        return;
    }
    if (work.kind != WORK_WEIGHTS &&
        *missing_at(world, work.kind == WORK_FORWARD ? FLIGHT_FORWARD : FLIGHT_BACKWARD, work.stage,
                    work.micro) > 0)
        return;
    begin(world, rank, kinds[work.kind], work, work_s(world, &work));
}

static bool end(struct world *world, int rank, struct err *err)
{
    struct doing done = world->doing[rank];
    world->doing[rank].active = false;
    world->computed_s += world->now_s - done.begin_s;
    struct sim_span span = { rank,      done.work.stage, done.work.micro,
                             done.kind, done.begin_s,    world->now_s };
    if (!add_span(world, span, err))
        return false;
    if (done.kind == SPAN_RECOMPUTE || done.kind == SPAN_UPDATE) {
        world->recomputed[rank] = done.kind == SPAN_RECOMPUTE;
        return true;
    }
    world->recomputed[rank] = false;
    world->next[rank]++;
    if (!send(world, rank, &done.work, err))
        return false;
    return --world->unfinished[done.work.stage] > 0 || begin_sum(world, done.work.stage, err);
}

/* The share of its threads that each working rank has: ranks of a machine that want more processors
 * than there are share them alike. */
static void share_processors(struct world *world)
{
    const struct simulate_options *o = world->options;
    int ranks = world->program->stages, group = o->ranks_a_machine > 0 ? o->ranks_a_machine : 1;
    int threads = o->threads > 0 ? o->threads : 1;
    for (int first = 0; first < ranks; first += group) {
        int last = first + group < ranks ? first + group : ranks, wanted = 0;
        for (int r = first; r < last; r++)
            wanted += world->doing[r].active ? threads : 0;
        double rate = o->ranks_a_machine > 0 && o->cores > 0 && wanted > o->cores
                          ? (double)o->cores / wanted
                          : 1.0;
        for (int r = first; r < last; r++)
            world->doing[r].rate = rate;
    }
}

/* Seconds to the next event; INFINITY if there is none. */
static double until_next(const struct world *world)
{
    double least = INFINITY;
    for (int r = 0; r < world->program->stages; r++)
        if (world->doing[r].active)
            least = fmin(least, world->doing[r].left_s / world->doing[r].rate);
    for (int64_t i = 0; i < world->n_flights; i++)
        least = fmin(least, world->flights[i].at_s - world->now_s);
    return fmax(least, 0);
}

static void arrive(struct world *world)
{
    int64_t still = 0;
    for (int64_t i = 0; i < world->n_flights; i++) {
        struct flight flight = world->flights[i];
        if (flight.at_s > world->now_s)
            world->flights[still++] = flight;
        else if (flight.kind == FLIGHT_SUM)
            world->summed[flight.stage] = true;
        else
            --*missing_at(world, flight.kind, flight.stage, flight.micro);
    }
    world->n_flights = still;
}

/* Moves all that runs to the next event. An event is met exactly: what ends then has nothing left,
 * whatever the rounding. */
static bool advance(struct world *world, double by_s, struct err *err)
{
    double now_s = world->now_s + by_s;
    bool ends[STAGES_MOST] = { false };
    for (int r = 0; r < world->program->stages; r++) {
        struct doing *doing = &world->doing[r];
        if (!doing->active)
            continue;
        double alone_s = doing->left_s / doing->rate;
        ends[r] = alone_s <= by_s * (1 + 1e-12);
        doing->left_s -= by_s * doing->rate;
    }
    for (int64_t i = 0; i < world->n_flights; i++)
        if (world->flights[i].at_s - world->now_s <= by_s)
            world->flights[i].at_s = now_s;
    world->now_s = now_s;
    for (int r = 0; r < world->program->stages; r++)
        if (ends[r] && !end(world, r, err))
            return false;
    arrive(world);
    return true;
}

static bool is_finished(const struct world *world)
{
    for (int r = 0; r < world->program->stages; r++)
        if (world->doing[r].active || !world->updated[r])
            return false;
    return true;
}

/* Nothing runs and nothing is on its way. */
static bool stuck(const struct world *world, struct err *err)
{
    for (int r = 0; r < world->program->stages; r++) {
        if (world->next[r] == world->program->n_work[r])
            continue;
        const struct work *work = &world->program->work[r][world->next[r]];
        return err_set(err, ERR_USAGE,
                       "schedule %s: rank %d waits for ever for %s of micro-batch %d at stage %d",
                       world->program->schedule, r,
                       work->kind == WORK_FORWARD ? "the inputs" : "the gradients", work->micro,
                       work->stage);
    }
    return err_set(err, ERR_USAGE, "schedule %s: gradients are never summed: works are missing",
                   world->program->schedule);
}

static bool run(struct world *world, struct err *err)
{
    for (;;) {
        for (int r = 0; r < world->program->stages; r++)
            if (!world->doing[r].active)
                begin_next(world, r);
        if (is_finished(world))
            return true;
        share_processors(world);
        double by_s = until_next(world);
        if (isinf(by_s))
            return stuck(world, err);
        if (!advance(world, by_s, err))
            return false;
    }
}

/* Of a work: receives of its turn and of the next, and sends of the last two, in either direction;
 * and images, which are not received. */
static size_t message_bytes(const struct simulate_options *o, int stage)
{
    size_t in = 0, out = 0;
    for (int e = 0; e < o->n_edges; e++) {
        in += o->edges[e].to == stage ? o->edges[e].bytes : 0;
        out += o->edges[e].from == stage ? o->edges[e].bytes : 0;
    }
    size_t inputs = o->costs[stage].inputs;
    return 4 * (in + out) + (inputs > in ? inputs - in : 0);
}

/* Activations, kept inputs and buffers of messages of a rank. It goes by the order of works, not
 * their times: memory is there before it is used. With recomputation, a set is there while a
 * micro-batch goes forward, and from its second forward pass until nothing of it is needed. */
size_t simulate_peak(const struct simulate_options *o, int rank)
{
    const struct program *program = o->program;
    enum work_kind last = program->split ? WORK_WEIGHTS : WORK_BACKWARD;
    int held[2], n_held = program_held(program, rank, held);
    size_t messages = 0, sets = 0, most_sets = 0, kept = 0, most_kept = 0;
    for (int i = 0; i < n_held; i++) {
        size_t bytes = message_bytes(o, held[i]);
        messages = bytes > messages ? bytes : messages;
    }
    for (int i = 0; i < program->n_work[rank]; i++) {
        const struct work *work = &program->work[rank][i];
        const struct stage_cost *cost = &o->costs[work->stage];
        bool forward = work->kind == WORK_FORWARD;
        sets += work->kind == (o->recompute ? WORK_BACKWARD : WORK_FORWARD) ? cost->kept : 0;
        kept += o->recompute && forward ? cost->inputs : 0;
        size_t now = sets + (o->recompute && forward ? cost->kept : 0);
        most_sets = now > most_sets ? now : most_sets;
        most_kept = kept > most_kept ? kept : most_kept;
        sets -= work->kind == last ? cost->kept : 0;
        kept -= o->recompute && work->kind == WORK_BACKWARD ? cost->inputs : 0;
    }
    return most_sets + most_kept + messages;
}

static int by_rank_then_time(const void *left, const void *right)
{
    const struct sim_span *a = left, *b = right;
    if (a->rank != b->rank)
        return a->rank - b->rank;
    if (a->begin_s != b->begin_s)
        return a->begin_s < b->begin_s ? -1 : 1;
    return (a->kind > b->kind) - (a->kind < b->kind);
}

static bool world_new(const struct simulate_options *options, struct world *world, struct err *err)
{
    const struct program *program = options->program;
    *world = (struct world){ .options = options, .program = program };
    for (int kind = 0; kind < 2; kind++) {
        world->missing[kind] =
            calloc((size_t)program->stages * (size_t)program->micros, sizeof *world->missing[kind]);
        if (!world->missing[kind])
            return err_memory(err, "a simulation");
    }
    for (int e = 0; e < options->n_edges; e++)
        for (int m = 0; m < program->micros; m++) {
            ++*missing_at(world, FLIGHT_FORWARD, options->edges[e].to, m);
            ++*missing_at(world, FLIGHT_BACKWARD, options->edges[e].from, m);
        }
    for (int s = 0; s < program->stages; s++)
        world->unfinished[s] = program->micros * (program->split ? 3 : 2);
    return true;
}

bool simulate(const struct simulate_options *options, struct simulation *out, struct err *err)
{
    *out = (struct simulation){ 0 };
    struct world world;
    bool ok = world_new(options, &world, err) && run(&world, err);
    if (ok) {
        int ranks = options->program->stages;
        qsort(world.spans, (size_t)world.n_spans, sizeof *world.spans, by_rank_then_time);
        out->seconds = world.now_s;
        out->busy = world.now_s > 0 ? world.computed_s / (world.now_s * ranks) : 0;
        for (int r = 0; r < ranks; r++)
            out->peak[r] = simulate_peak(options, r);
        out->spans = world.spans, world.spans = NULL;
        out->n_spans = (int)world.n_spans;
    }
    free(world.spans);
    free(world.flights);
    free(world.missing[0]);
    free(world.missing[1]);
    return ok;
}

void simulation_free(struct simulation *simulation)
{
    free(simulation->spans);
    *simulation = (struct simulation){ 0 };
}
