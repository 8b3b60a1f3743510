/* ranks_none.c: a build without MPI (ranks.h). CMake uses this file or ranks_mpi.c. */
#include "dist/launch.h"
#include "dist/ranks.h"

bool ranks_begin(struct ranks *out, struct err *err)
{
    *out = ranks_one();
    if (ranks_started() > 1)
        return err_set(err, ERR_USAGE,
                       "started as one of %d ranks, but this build has no MPI; install MPI and "
                       "rebuild, or run one process",
                       ranks_started());
    return true;
}

bool launch_possible(struct err *err)
{
    return err_set(err, ERR_USAGE,
                   "--ranks: this build has no MPI; install MPI and rebuild, or run one rank");
}
