/* launch.h: `--ranks N`: this program again, N times, by mpirun. Not collective. */
#ifndef DIST_LAUNCH_H
#define DIST_LAUNCH_H
#include <stdatomic.h>
#include "base/err.h"

struct launch {
    int ranks;               /* on this machine, or on those that the scheduler gave */
    char *const *arguments;  /* of the program, without its name; NULL-terminated */
    char *trial;             /* an argument with which the program only begins and ends as a rank */
    const atomic_bool *stop; /* when it is set the ranks are asked to save and end */
};

/* False, with the reason, in a build without MPI. */
bool launch_possible(struct err *err);

/* Runs until all ranks have ended; standard output and error are theirs. true if all ended well.
 * What a rank has said itself (exit codes 1, 2, 75, 130) becomes an error of that kind without
 * text. A rank that was killed is said, and what mpirun says if it cannot start ranks. */
bool launch_ranks(const struct launch *launch, struct err *err);
#endif
