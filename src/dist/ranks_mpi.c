/* ranks_mpi.c: ranks over MPI (ranks.h). A group is a communicator: MPI keeps what is sent in one
 * apart from all others, and sums apart from messages. What runs during computation uses
 * MPI_Iallreduce, MPI_Isend and MPI_Irecv; an MPI library makes progress only while it is called,
 * hence ranks_progress. The same sums with the same counts are made whether or not anything is
 * computed meanwhile, so the result is bitwise the same. This is the only file that knows tags: a
 * piece of a message says by its tag whether more of the same message follow, so that messages of
 * different sizes cannot be taken for each other. */
#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "dist/launch.h"
#include "dist/ranks.h"

#define MAX_COUNT (1 << 28) /* elements in one call */

enum { TAG_LAST, TAG_MORE };

enum flight_kind { FLIGHT_SUM, FLIGHT_SEND, FLIGHT_RECEIVE };

/* A piece of a message, or of a sum, in flight. */
struct flight {
    enum flight_kind kind;
    MPI_Request request;
    int64_t handle; /* of its message */
    int peer, bytes, tag;
};

struct mpi_state {
    MPI_Comm group;
    struct flight *flights; /* in the order in which they were started */
    int64_t n, room;
    int64_t handles; /* given so far; the first is 1 */
};

/* "MPI: rank 1 of 2 in stage: send to rank 0: <the library's words>"; peer RANKS_NONE: all. */
static bool check(const struct ranks *ranks, int code, const char *what, int peer, struct err *err)
{
    char text[MPI_MAX_ERROR_STRING] = "", whom[24] = "";
    int length = 0;
    if (code == MPI_SUCCESS)
        return true;
    MPI_Error_string(code, text, &length);
    if (peer != RANKS_NONE)
        snprintf(whom, sizeof whom, " rank %d", peer);
    return err_set(err, ERR_IO, "MPI: rank %d of %d%s%s: %s%s: %s", ranks->rank, ranks->size,
                   ranks->name ? " in " : "", ranks->name ? ranks->name : "", what, whom, text);
}

static bool check_all(const struct ranks *ranks, int code, const char *what, struct err *err)
{
    return check(ranks, code, what, RANKS_NONE, err);
}

static MPI_Comm group_of(const struct ranks *ranks)
{
    return ((const struct mpi_state *)ranks->state)->group;
}

/* --- sums --- */

static bool sum(struct ranks *ranks, void *data, int64_t n, size_t size, MPI_Datatype type,
                MPI_Op op, struct err *err)
{
    bool ok = true;
    for (int64_t at = 0; ok && at < n; at += ranks->piece) {
        int count = (int)(n - at < ranks->piece ? n - at : ranks->piece);
        ok = check_all(ranks,
                       MPI_Allreduce(MPI_IN_PLACE, (char *)data + (size_t)at * size, count, type,
                                     op, group_of(ranks)),
                       "all-reduce", err);
    }
    return ok;
}

static bool mpi_sum_floats(struct ranks *ranks, float *data, int64_t n, struct err *err)
{
    return sum(ranks, data, n, sizeof *data, MPI_FLOAT, MPI_SUM, err);
}

static bool mpi_sum_reals(struct ranks *ranks, double *data, int64_t n, struct err *err)
{
    return sum(ranks, data, n, sizeof *data, MPI_DOUBLE, MPI_SUM, err);
}

static bool mpi_most(struct ranks *ranks, int64_t *values, int64_t n, struct err *err)
{
    return sum(ranks, values, n, sizeof *values, MPI_INT64_T, MPI_MAX, err);
}

/* --- in flight --- */

/* After an error. A receive that is cancelled or done writes no more. Sends and sums cannot be
 * cancelled and are left to the end of the process. Returns false. */
static bool abandon(struct ranks *ranks)
{
    struct mpi_state *state = ranks->state;
    for (int64_t i = 0; i < state->n; i++)
        if (state->flights[i].kind == FLIGHT_RECEIVE &&
            MPI_Cancel(&state->flights[i].request) == MPI_SUCCESS)
            MPI_Wait(&state->flights[i].request, MPI_STATUS_IGNORE);
    state->n = 0;
    return false;
}

/* Room for one more; NULL: no memory. */
static struct flight *next_flight(struct mpi_state *state, struct err *err)
{
    if (!array_grow(&state->flights, &state->room, state->n + 1, sizeof *state->flights,
                    "messages between ranks", err))
        return NULL;
    state->flights[state->n] = (struct flight){ .request = MPI_REQUEST_NULL };
    return &state->flights[state->n];
}

static bool mpi_start_sum(struct ranks *ranks, float *data, int64_t n, struct err *err)
{
    struct mpi_state *state = ranks->state;
    bool ok = true;
    for (int64_t at = 0; ok && at < n; at += ranks->piece) {
        int count = (int)(n - at < ranks->piece ? n - at : ranks->piece);
        struct flight *flight = next_flight(state, err);
        if (!flight)
            return false;
        flight->kind = FLIGHT_SUM;
        ok = check_all(ranks,
                       MPI_Iallreduce(MPI_IN_PLACE, data + at, count, MPI_FLOAT, MPI_SUM,
                                      state->group, &flight->request),
                       "all-reduce", err);
        state->n += ok;
        ranks->started += ok;
    }
    return ok;
}

/* Starts all pieces at once, so that they stay together; an empty message is one empty piece. */
static bool start_message(struct ranks *ranks, enum flight_kind kind, int peer, char *data,
                          size_t bytes, int64_t *handle, struct err *err)
{
    struct mpi_state *state = ranks->state;
    size_t at = 0, piece = (size_t)ranks->piece;
    *handle = ++state->handles;
    do {
        bool last = bytes - at <= piece;
        struct flight *flight = next_flight(state, err);
        if (!flight)
            return abandon(ranks);
        flight->kind = kind;
        flight->handle = *handle;
        flight->peer = peer;
        flight->bytes = (int)(last ? bytes - at : piece);
        flight->tag = last ? TAG_LAST : TAG_MORE;
        int code = kind == FLIGHT_SEND ? MPI_Isend(data + at, flight->bytes, MPI_BYTE, peer,
                                                   flight->tag, state->group, &flight->request)
                                       : MPI_Irecv(data + at, flight->bytes, MPI_BYTE, peer,
                                                   MPI_ANY_TAG, state->group, &flight->request);
        if (!check(ranks, code, kind == FLIGHT_SEND ? "send to" : "receive from", peer, err))
            return abandon(ranks);
        state->n++;
        at += (size_t)flight->bytes;
    } while (at < bytes);
    return true;
}

static bool mpi_start_send(struct ranks *ranks, int to, const void *data, size_t bytes,
                           int64_t *handle, struct err *err)
{
    return start_message(ranks, FLIGHT_SEND, to, (char *)data, bytes, handle, err);
}

static bool mpi_start_receive(struct ranks *ranks, int from, void *data, size_t bytes,
                              int64_t *handle, struct err *err)
{
    return start_message(ranks, FLIGHT_RECEIVE, from, data, bytes, handle, err);
}

/* Judges a piece that has ended with this code. */
static bool landed(struct ranks *ranks, const struct flight *flight, int code, MPI_Status *status,
                   struct err *err)
{
    static const char *const doing[] = { "all-reduce", "send to", "receive from" };
    int class = MPI_SUCCESS, bytes = 0;
    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &class);
    if (flight->kind == FLIGHT_SUM)
        return check_all(ranks, code, doing[flight->kind], err);
    if (flight->kind == FLIGHT_SEND || (class != MPI_SUCCESS && class != MPI_ERR_TRUNCATE))
        return check(ranks, code, doing[flight->kind], flight->peer, err);
    if (class == MPI_SUCCESS)
        MPI_Get_count(status, MPI_BYTE, &bytes);
    if (class == MPI_SUCCESS && bytes == flight->bytes && status->MPI_TAG == flight->tag)
        return true;
    bool longer = class == MPI_ERR_TRUNCATE || (bytes == flight->bytes && flight->tag == TAG_LAST);
    return err_set(
        err, ERR_IO, "rank %d of %d%s%s: the message from rank %d is %s than the %d bytes expected",
        ranks->rank, ranks->size, ranks->name ? " in " : "", ranks->name ? ranks->name : "",
        flight->peer, longer ? "longer" : "shorter", flight->bytes);
}

/* Tests everything in flight; with wait, waits for what belongs to `handle` (RANKS_ALL: all). */
static bool advance(struct ranks *ranks, bool wait, int64_t handle, struct err *err)
{
    struct mpi_state *state = ranks->state;
    int64_t left = 0;
    bool ok = true;
    for (int64_t i = 0; i < state->n; i++) {
        struct flight flight = state->flights[i];
        bool waits = wait && (handle == RANKS_ALL || handle == flight.handle);
        int code = MPI_SUCCESS, done = waits;
        MPI_Status status;
        if (ok && waits)
            code = MPI_Wait(&flight.request, &status);
        else if (ok)
            code = MPI_Test(&flight.request, &done, &status);
        if (ok && (code != MPI_SUCCESS || done)) {
            ranks->ended += flight.kind == FLIGHT_SUM;
            ok = landed(ranks, &flight, code, &status, err);
        } else {
            state->flights[left++] = flight;
        }
    }
    state->n = left;
    return ok || abandon(ranks);
}

static bool mpi_progress(struct ranks *ranks, struct err *err)
{
    return advance(ranks, false, 0, err);
}

static void mpi_abandon(struct ranks *ranks)
{
    abandon(ranks);
}

static bool mpi_finish(struct ranks *ranks, int64_t handle, struct err *err)
{
    return advance(ranks, true, handle, err);
}

/* --- to all --- */

static bool mpi_broadcast(struct ranks *ranks, void *data, size_t bytes, int root, struct err *err)
{
    size_t piece = (size_t)ranks->piece;
    bool ok = true;
    for (size_t at = 0; ok && at < bytes; at += piece) {
        int count = (int)(bytes - at < piece ? bytes - at : piece);
        ok = check_all(ranks, MPI_Bcast((char *)data + at, count, MPI_BYTE, root, group_of(ranks)),
                       "broadcast", err);
    }
    return ok;
}

static bool broadcast_parts(struct ranks *ranks, float *data, const int64_t *begin, struct err *err)
{
    bool ok = true;
    for (int r = 0; ok && r < ranks->size; r++)
        ok = mpi_broadcast(ranks, data + begin[r], (size_t)(begin[r + 1] - begin[r]) * sizeof *data,
                           r, err);
    return ok;
}

static bool mpi_gather_parts(struct ranks *ranks, float *data, const int64_t *begin,
                             struct err *err)
{
    if (begin[ranks->size] > INT_MAX) /* more than one call can count */
        return broadcast_parts(ranks, data, begin, err);
    int *counts = calloc(2 * (size_t)ranks->size, sizeof *counts), *places = counts + ranks->size;
    bool ok = counts || err_memory(err, "parts of ranks");
    if (!ranks_agree(ranks, ok, NULL, err)) {
        free(counts);
        return false;
    }
    for (int r = 0; r < ranks->size; r++) {
        counts[r] = (int)(begin[r + 1] - begin[r]);
        places[r] = (int)begin[r];
    }
    ok = check_all(ranks,
                   MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, counts, places,
                                  MPI_FLOAT, group_of(ranks)),
                   "gather", err);
    free(counts);
    return ok;
}

static bool mpi_gather_equal(struct ranks *ranks, const void *own, size_t bytes, void *all,
                             struct err *err)
{
    bool ok = true;
    if (bytes <= (size_t)ranks->piece)
        return check_all(
            ranks,
            MPI_Allgather(own, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, group_of(ranks)),
            "gather", err);
    memcpy((char *)all + (size_t)ranks->rank * bytes, own, bytes);
    for (int r = 0; ok && r < ranks->size; r++)
        ok = mpi_broadcast(ranks, (char *)all + (size_t)r * bytes, bytes, r, err);
    return ok;
}

/* --- groups --- */

static void free_state(struct ranks *ranks)
{
    struct mpi_state *state = ranks->state;
    if (state)
        free(state->flights);
    free(state);
    ranks->state = NULL;
}

static void mpi_end(struct ranks *ranks)
{
    free_state(ranks);
    MPI_Finalize();
}

static void mpi_free(struct ranks *ranks)
{
    struct mpi_state *state = ranks->state;
    abandon(ranks);
    MPI_Comm_free(&state->group); /* which MPI does when nothing uses it any more */
    free_state(ranks);
}

/* The machine: how many ranks of the group share it, and how many processors they may use together,
 * whether or not mpirun bound each to its own. */
static bool look_around(struct ranks *ranks, struct err *err)
{
    static const char finding[] = "finding ranks on this machine";
    MPI_Comm local = MPI_COMM_NULL;
    cpu_set_t set, own;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        CPU_SET(0, &set);
    own = set;
    bool ok =
        check_all(
            ranks,
            MPI_Comm_split_type(group_of(ranks), MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local),
            finding, err) &&
        check_all(ranks, MPI_Comm_size(local, &ranks->local_size), finding, err) &&
        check_all(ranks, MPI_Comm_rank(local, &ranks->local_rank), finding, err) &&
        check_all(ranks, MPI_Allreduce(MPI_IN_PLACE, &set, sizeof set, MPI_BYTE, MPI_BOR, local),
                  finding, err);
    int placed = !CPU_EQUAL(&set, &own);
    ok = ok && check_all(ranks, MPI_Allreduce(MPI_IN_PLACE, &placed, 1, MPI_INT, MPI_MAX, local),
                         finding, err);
    if (local != MPI_COMM_NULL)
        MPI_Comm_free(&local);
    ranks->processors = CPU_COUNT(&set);
    ranks->placed = placed;
    return ok;
}

/* Rank, size and machine, from the communicator. */
static bool open_group(struct ranks *ranks, struct err *err)
{
    MPI_Comm group = group_of(ranks);
    return check_all(ranks, MPI_Comm_set_errhandler(group, MPI_ERRORS_RETURN), "start", err) &&
           check_all(ranks, MPI_Comm_rank(group, &ranks->rank), "start", err) &&
           check_all(ranks, MPI_Comm_size(group, &ranks->size), "start", err) &&
           look_around(ranks, err);
}

static bool mpi_split(struct ranks *ranks, int colour, int key, struct ranks *out, struct err *err)
{
    struct mpi_state *state = calloc(1, sizeof *state);
    if (!ranks_agree(ranks, state || err_memory(err, "a group of ranks"), NULL, err)) {
        free(state);
        return false;
    }
    *out = (struct ranks){ .ops = ranks->ops, .state = state, .piece = ranks->piece };
    if (check_all(ranks, MPI_Comm_split(group_of(ranks), colour, key, &state->group), "split",
                  err) &&
        open_group(out, err))
        return true;
    free(state);
    *out = (struct ranks){ 0 };
    return false;
}

bool ranks_begin(struct ranks *out, struct err *err)
{
    static const struct ranks_ops ops = { .split = mpi_split,
                                          .free = mpi_free,
                                          .sum_floats = mpi_sum_floats,
                                          .sum_reals = mpi_sum_reals,
                                          .most = mpi_most,
                                          .start_sum = mpi_start_sum,
                                          .start_send = mpi_start_send,
                                          .start_receive = mpi_start_receive,
                                          .progress = mpi_progress,
                                          .finish = mpi_finish,
                                          .abandon = mpi_abandon,
                                          .broadcast = mpi_broadcast,
                                          .gather_parts = mpi_gather_parts,
                                          .gather_equal = mpi_gather_equal,
                                          .end = mpi_end };
    int level = 0;
    *out = ranks_one();
    if (ranks_started() == 1)
        return true;
    struct mpi_state *state = calloc(1, sizeof *state);
    if (!state)
        return err_memory(err, "ranks");
    *out =
        (struct ranks){ .ops = &ops, .state = state, .piece = MAX_COUNT, .size = ranks_started() };
    bool ok =
        check_all(out, MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level), "start", err);
    state->group = MPI_COMM_WORLD;
    if (ok && open_group(out, err)) {
        out->world_rank = out->rank;
        return true;
    }
    free(state);
    *out = ranks_one();
    return false;
}

bool launch_possible(struct err *err)
{
    (void)err;
    return true;
}
