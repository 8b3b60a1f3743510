/* ranks_mpi.c: ranks over MPI (ranks.h). Sums that run during computation use MPI_Iallreduce; an
 * MPI library makes progress only while it is called, hence ranks_progress. The same calls with the
 * same counts are made whether or not anything is computed meanwhile, so the result is bitwise the
 * same.
 */
#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include "base/array.h"
#include "dist/launch.h"
#include "dist/ranks.h"

#define MAX_COUNT (1 << 28) /* elements in one call: MPI counts with int */

struct mpi_state {
    MPI_Request *requests; /* MPI_REQUEST_NULL: done */
    int n;
    int64_t room;
};

static bool check(int code, const char *what, struct err *err)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (code == MPI_SUCCESS)
        return true;
    MPI_Error_string(code, text, &length);
    return err_set(err, ERR_IO, "MPI: %s: %s", what, text);
}

static bool sum(void *data, int64_t n, size_t size, MPI_Datatype type, MPI_Op op, struct err *err)
{
    bool ok = true;
    for (int64_t at = 0; ok && at < n; at += MAX_COUNT) {
        int count = (int)(n - at < MAX_COUNT ? n - at : MAX_COUNT);
        ok = check(MPI_Allreduce(MPI_IN_PLACE, (char *)data + (size_t)at * size, count, type, op,
                                 MPI_COMM_WORLD),
                   "all-reduce", err);
    }
    return ok;
}

static bool mpi_sum_floats(struct ranks *ranks, float *data, int64_t n, struct err *err)
{
    (void)ranks;
    return sum(data, n, sizeof *data, MPI_FLOAT, MPI_SUM, err);
}

static bool mpi_sum_reals(struct ranks *ranks, double *data, int64_t n, struct err *err)
{
    (void)ranks;
    return sum(data, n, sizeof *data, MPI_DOUBLE, MPI_SUM, err);
}

static bool mpi_most(struct ranks *ranks, int64_t *values, int64_t n, struct err *err)
{
    (void)ranks;
    return sum(values, n, sizeof *values, MPI_INT64_T, MPI_MAX, err);
}

static bool mpi_start_sum(struct ranks *ranks, float *data, int64_t n, struct err *err)
{
    struct mpi_state *state = ranks->state;
    bool ok = true;
    for (int64_t at = 0; ok && at < n; at += MAX_COUNT) {
        int count = (int)(n - at < MAX_COUNT ? n - at : MAX_COUNT);
        if (!array_grow(&state->requests, &state->room, state->n + 1, sizeof *state->requests,
                        "sums over ranks", err))
            return false;
        ok = check(MPI_Iallreduce(MPI_IN_PLACE, data + at, count, MPI_FLOAT, MPI_SUM,
                                  MPI_COMM_WORLD, &state->requests[state->n]),
                   "all-reduce", err);
        state->n += ok;
        ranks->started += ok;
    }
    return ok;
}

static bool mpi_progress(struct ranks *ranks, struct err *err)
{
    struct mpi_state *state = ranks->state;
    bool ok = true;
    int left = 0;
    for (int i = 0; ok && i < state->n; i++) {
        int done = 0;
        ok = check(MPI_Test(&state->requests[i], &done, MPI_STATUS_IGNORE), "all-reduce", err);
        if (!done)
            state->requests[left++] = state->requests[i];
    }
    if (!ok)
        return false;
    ranks->ended += state->n - left;
    state->n = left;
    return true;
}

static bool mpi_finish_sums(struct ranks *ranks, struct err *err)
{
    struct mpi_state *state = ranks->state;
    int n = state->n;
    state->n = 0;
    ranks->ended += n;
    return check(MPI_Waitall(n, state->requests, MPI_STATUSES_IGNORE), "all-reduce", err);
}

static bool mpi_broadcast(struct ranks *ranks, void *data, size_t bytes, int root, struct err *err)
{
    bool ok = true;
    (void)ranks;
    for (size_t at = 0; ok && at < bytes; at += MAX_COUNT) {
        int count = (int)(bytes - at < MAX_COUNT ? bytes - at : MAX_COUNT);
        ok = check(MPI_Bcast((char *)data + at, count, MPI_BYTE, root, MPI_COMM_WORLD), "broadcast",
                   err);
    }
    return ok;
}

static bool mpi_gather_parts(struct ranks *ranks, float *data, const int64_t *begin,
                             struct err *err)
{
    int *counts = calloc(2 * (size_t)ranks->size, sizeof *counts), *places = counts + ranks->size;
    bool ok = counts || err_memory(err, "parts of ranks");
    if (ok && begin[ranks->size] > INT_MAX)
        ok = err_set(err, ERR_USAGE, "more than %d parameters cannot be gathered", INT_MAX);
    if (!ranks_agree(ranks, ok, NULL, err)) {
        free(counts);
        return false;
    }
    for (int r = 0; r < ranks->size; r++) {
        counts[r] = (int)(begin[r + 1] - begin[r]);
        places[r] = (int)begin[r];
    }
    ok = check(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, counts, places, MPI_FLOAT,
                              MPI_COMM_WORLD),
               "gather", err);
    free(counts);
    return ok;
}

static void mpi_end(struct ranks *ranks)
{
    struct mpi_state *state = ranks->state;
    if (state)
        free(state->requests);
    free(state);
    ranks->state = NULL;
    MPI_Finalize();
}

/* The machine: how many ranks share it, and how many processors they may use together, whether or
 * not mpirun bound each to its own. */
static bool look_around(struct ranks *ranks, struct err *err)
{
    MPI_Comm local = MPI_COMM_NULL;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        CPU_SET(0, &set);
    bool ok =
        check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local),
              "finding ranks on this machine", err) &&
        check(MPI_Comm_size(local, &ranks->local_size), "finding ranks on this machine", err) &&
        check(MPI_Allreduce(MPI_IN_PLACE, &set, sizeof set, MPI_BYTE, MPI_BOR, local),
              "finding ranks on this machine", err);
    if (local != MPI_COMM_NULL)
        MPI_Comm_free(&local);
    ranks->processors = CPU_COUNT(&set);
    return ok;
}

bool ranks_begin(struct ranks *out, struct err *err)
{
    static const struct ranks_ops ops = { .sum_floats = mpi_sum_floats,
                                          .sum_reals = mpi_sum_reals,
                                          .most = mpi_most,
                                          .start_sum = mpi_start_sum,
                                          .progress = mpi_progress,
                                          .finish_sums = mpi_finish_sums,
                                          .broadcast = mpi_broadcast,
                                          .gather_parts = mpi_gather_parts,
                                          .end = mpi_end };
    int level = 0;
    *out = ranks_one();
    if (ranks_started() == 1)
        return true;
    struct mpi_state *state = calloc(1, sizeof *state);
    if (!state)
        return err_memory(err, "ranks");
    *out = (struct ranks){ .ops = &ops, .state = state };
    if (check(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level), "start", err) &&
        check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "start", err) &&
        check(MPI_Comm_rank(MPI_COMM_WORLD, &out->rank), "start", err) &&
        check(MPI_Comm_size(MPI_COMM_WORLD, &out->size), "start", err) && look_around(out, err))
        return true;
    free(state);
    *out = ranks_one();
    return false;
}

bool launch_possible(struct err *err)
{
    (void)err;
    return true;
}
