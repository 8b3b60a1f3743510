/* cluster.c: the MPI and scheduler commands on the PATH. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "dist/launch.h"
#include "doctor/doctor.h"

/* The file a shell would run for `name`; false if there is none. */
static bool on_path(const char *name, char out[PATH_MAX])
{
    const char *path = getenv("PATH");
    while (path && *path) {
        size_t length = strcspn(path, ":");
        snprintf(out, PATH_MAX, "%.*s/%s", (int)length, path, name);
        if (length > 0 && access(out, X_OK) == 0)
            return true;
        path += length + (path[length] == ':');
    }
    return false;
}

static void look_for(struct doctor_list *list, const char *name, const char *command,
                     const char *meaning, const char *remedy)
{
    char file[PATH_MAX];
    bool there = on_path(command, file);
    struct doctor_finding *found =
        doctor_add(list, "cluster", name, there ? DOCTOR_OK : DOCTOR_NOTE, "%.140s",
                   there ? file : "not found");
    DOCTOR_MEANS(found, "%s", meaning);
    if (!there)
        DOCTOR_REMEDY(found, "%s", remedy);
}

static void look_for_mpi(struct doctor_list *list)
{
    struct err why = { 0 };
    if (launch_possible(&why)) {
        look_for(list, "MPI", "mpirun",
                 "trains one network with several processes or machines (--ranks)",
                 "only needed for training with --ranks: install Debian's package openmpi-bin");
        return;
    }
    struct doctor_finding *found =
        doctor_add(list, "cluster", "MPI", DOCTOR_NOTE, "not in this build");
    DOCTOR_MEANS(found, "training uses one process with all available threads");
    DOCTOR_REMEDY(found, "only needed for training with --ranks: install libopenmpi-dev and build "
                         "again");
}

void doctor_cluster(struct doctor_list *list)
{
    look_for_mpi(list);
    look_for(
        list, "SLURM", "sbatch", "jobs are submitted to SLURM",
        "only needed on a cluster with SLURM: use a login node, or Debian's package slurm-client");
    look_for(list, "Grid Engine", "qsub", "jobs are submitted to Grid Engine",
             "only needed on a cluster with Grid Engine: source its settings.sh, or Debian's "
             "gridengine-client");
}
