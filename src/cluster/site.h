/* site.h: site-specific settings of a cluster, in a small YAML file:
 *
 *   modules: [gcc/12, openmpi/4]      loaded before anything runs
 *   setup: [export OMP_PROC_BIND=true]  shell lines, after the modules
 *   flags: [--qos=long]               further options of sbatch or qsub
 *   container: apptainer exec --bind /data microtome.sif    put before every command
 *   program: /opt/microtome/bin/microtome    on the nodes; default: this program
 *   parallel_environment: smp         Grid Engine: for jobs with several processors
 *   memory_resource: h_vmem           Grid Engine: requested by --memory; default: mem_total
 *   mpi_environment: mpi              Grid Engine: for jobs with several ranks */
#ifndef CLUSTER_SITE_H
#define CLUSTER_SITE_H
#include <stddef.h>
#include "base/err.h"

struct site_lines {
    char **items;
    size_t n;
};

struct site {
    struct site_lines modules, setup, flags;
    char *container, *program; /* NULL if not given */
    char *parallel_environment, *memory_resource, *mpi_environment;
};

/* path NULL: the defaults. All keys may be absent; an unknown one is an error with its line. *out
 * is the caller's; free with site_free, also after a failure. */
bool site_read(const char *path, struct site *out, struct err *err);
/* The same from memory, for fuzzing. */
bool site_parse(const char *text, size_t size, const char *path, struct site *out, struct err *err);
void site_free(struct site *site);
#endif
