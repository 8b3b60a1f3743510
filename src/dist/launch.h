/* launch.h: `--ranks N`: runs N copies of this program with mpirun. Not collective. */
#ifndef DIST_LAUNCH_H
#define DIST_LAUNCH_H
#include <stdatomic.h>
#include "base/err.h"

struct launch {
    int ranks;              /* on this machine, or on those assigned by the scheduler */
    char *const *arguments; /* of the program, without its name; NULL-terminated */
    char *trial;            /* an argument with which the program only starts and exits as a rank */
    const atomic_bool *stop; /* when set, the ranks are asked to save and exit */
    bool no_output;          /* their standard output is discarded */
};

/* False, with the reason, in a build without MPI. */
bool launch_possible(struct err *err);

/* Threads for each of several ranks on a machine that has so many processors; at least 1. */
int launch_threads(int processors, int ranks);

/* False, with the remedy, if so many ranks would only bring this machine to a standstill: more than
 * LAUNCH_CROWD a processor. hosts: mpirun has other machines to start them on. */
enum { LAUNCH_CROWD = 32 };
bool launch_bearable(int ranks, int processors, bool hosts, struct err *err);

/* Runs until all ranks have ended; standard output and error are theirs. true if all succeeded. An
 * error that a rank has already printed (exit codes 1, 2, 75, 130) becomes an error of that kind
 * without text. The text reports a rank that was killed, or mpirun's reason if it cannot start
 * ranks. */
bool launch_ranks(const struct launch *launch, struct err *err);
#endif
