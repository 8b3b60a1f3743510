/* program.c: schedules: stages and micro-batches -> what each rank of a pipeline does, in order.
 *
 * In all of them micro-batches go forward in ascending order and come back in ascending order, on
 * every rank and in either copy of the network. So gradients are added in the order in which one
 * process would add them, and messages between two ranks are received in the order in which they
 * are sent. */
#include "net/stages/program.h"
#include <stdlib.h>

#define MICROS_MOST (1 << 20)

struct schedule {
    bool two_way, split;
    bool (*may)(int micros, struct err *err); /* NULL: any number of micro-batches */
    void (*order)(struct program *program, int rank);
};

static void then(struct program *program, int rank, enum work_kind kind, int micro)
{
    bool second = program->two_way && micro % 2 == 1;
    program->work[rank][program->n_work[rank]++] =
        (struct work){ kind, second ? program->stages - 1 - rank : rank, micro };
}

/* Every micro-batch forward and back before the next. One way, that is Basic: the first rank sees
 * the gradient of a micro-batch last and only then begins the next. Two ways, it is MAST and
 * MASTER: the rank that sees the gradient of a micro-batch first begins the next one, whose forward
 * pass follows that gradient from rank to rank into the memory that it frees. With backward = 2
 * forwards a micro-batch is at its last stage 2S + 1 after the one before it: N of them take 3S +
 * (N - 1) (2S + 1). A pair alone takes 5S + 1, and each further one the 4S + 2 that the literature
 * has for a pair; a pair alone cannot take less while a rank keeps one set of activations. */
static void one_by_one(struct program *program, int rank)
{
    for (int m = 0; m < program->micros; m++) {
        then(program, rank, WORK_FORWARD, m);
        then(program, rank, WORK_BACKWARD, m);
    }
}

static void all_forward_then_back(struct program *program, int rank)
{
    for (int m = 0; m < program->micros; m++)
        then(program, rank, WORK_FORWARD, m);
    for (int m = 0; m < program->micros; m++)
        then(program, rank, WORK_BACKWARD, m);
}

/* A rank first runs as many micro-batches forward as there are ranks behind it. From then on each
 * further one is followed by the gradient of the oldest. In split programs, rank r makes the
 * gradients of weights r micro-batches later than those that others wait for: the last rank, which
 * would otherwise hold up all, returns gradients at once, and works off the weights while it would
 * wait for the first rank. */
static void take_turns(struct program *program, int rank)
{
    int micros = program->micros, ahead = program->stages - 1 - rank, late = rank;
    for (int m = 0; m < micros + ahead; m++) {
        if (m < micros)
            then(program, rank, WORK_FORWARD, m);
        if (m < ahead)
            continue;
        int back = m - ahead;
        if (back < micros)
            then(program, rank, WORK_BACKWARD, back);
        if (program->split && back >= late && back - late < micros)
            then(program, rank, WORK_WEIGHTS, back - late);
    }
    if (program->split)
        for (int m = micros > late ? micros - late : 0; m < micros; m++)
            then(program, rank, WORK_WEIGHTS, m);
}

static bool a_pair(int micros, struct err *err)
{
    return micros == 2 ||
           err_set(err, ERR_USAGE,
                   "parallel: the schedule mast has two micro-batches in a step, not %d; take "
                   "master for more, or another micro_batch",
                   micros);
}

static bool pairs(int micros, struct err *err)
{
    return micros % 2 == 0 ||
           err_set(err, ERR_USAGE,
                   "parallel: the schedule master has pairs of micro-batches in a step, not %d; "
                   "take an even number of them, by micro_batch or times",
                   micros);
}

const char *const program_names[] = { "basic", "mast", "master", "gpipe", "1f1b", "zb-h1", NULL };

static const struct schedule schedules[PROGRAMS] = {
    [PROGRAM_BASIC] = { .order = one_by_one },
    [PROGRAM_MAST] = { .two_way = true, .may = a_pair, .order = one_by_one },
    [PROGRAM_MASTER] = { .two_way = true, .may = pairs, .order = one_by_one },
    [PROGRAM_GPIPE] = { .order = all_forward_then_back },
    [PROGRAM_1F1B] = { .order = take_turns },
    [PROGRAM_ZB_H1] = { .split = true, .order = take_turns },
};

bool program_new(enum program_kind schedule, int stages, int micros, struct program *out,
                 struct err *err)
{
    *out = (struct program){ 0 };
    const struct schedule *kind = &schedules[schedule];
    if (stages < 1 || stages > STAGES_MOST)
        return err_set(err, ERR_USAGE, "parallel: %d stages; take 1 to %d", stages, STAGES_MOST);
    if (micros < 1 || micros > MICROS_MOST)
        return err_set(err, ERR_USAGE, "parallel: %d micro-batches in a step; take 1 to %d", micros,
                       MICROS_MOST);
    if (kind->may && !kind->may(micros, err))
        return false;
    *out = (struct program){ .schedule = program_names[schedule],
                             .stages = stages,
                             .micros = micros,
                             .two_way = kind->two_way,
                             .split = kind->split };
    size_t works = (size_t)micros * (kind->split ? 3 : 2);
    for (int r = 0; r < stages; r++) {
        out->work[r] = malloc(works * sizeof *out->work[r]);
        if (!out->work[r]) {
            program_free(out);
            return err_memory(err, "a schedule");
        }
        kind->order(out, r);
    }
    return true;
}

void program_free(struct program *program)
{
    for (int r = 0; r < STAGES_MOST; r++)
        free(program->work[r]);
    *program = (struct program){ 0 };
}

int program_rank(const struct program *program, int stage, int micro)
{
    return program->two_way && micro % 2 == 1 ? program->stages - 1 - stage : stage;
}

int program_held(const struct program *program, int rank, int held[2])
{
    int other = program->stages - 1 - rank;
    held[0] = rank;
    if (!program->two_way || other == rank)
        return 1;
    held[0] = rank < other ? rank : other;
    held[1] = rank < other ? other : rank;
    return 2;
}

int program_most_kept(const struct program *program, int rank, int stage)
{
    enum work_kind last = program->split ? WORK_WEIGHTS : WORK_BACKWARD;
    int kept = 0, most = 0;
    for (int i = 0; i < program->n_work[rank]; i++) {
        const struct work *work = &program->work[rank][i];
        if (work->stage != stage)
            continue;
        if (work->kind == WORK_FORWARD && ++kept > most)
            most = kept;
        else if (work->kind == last)
            kept--;
    }
    return most;
}

bool program_recomputes(const struct program *program, int rank, int i)
{
    const struct work *work = &program->work[rank][i];
    if (work->kind != WORK_BACKWARD)
        return false;
    const struct work *before = i > 0 ? work - 1 : NULL;
    return !before || before->kind != WORK_FORWARD || before->micro != work->micro;
}
