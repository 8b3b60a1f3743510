/* watch.h: a thread that notices when this rank waits for others too long: a rank that hangs, or a
 * connection that died without a word, on which MPI waits forever. It counts seconds in which it
 * runs itself, so that a job that a scheduler suspends does not count as waiting. */
#ifndef DIST_WATCH_H
#define DIST_WATCH_H
#include "dist/ranks.h"

struct watch;

/* Called once, by the watching thread, with what happened and what to do; it must end the process,
 * with WATCH_EXIT_CODE, without MPI: mpirun then ends the other ranks. */
typedef void watch_lost(void *arg, const char *text);

#define WATCH_EXIT_CODE 74 /* --ranks then does not try whether ranks can be started at all */

/* Watches all ranks and the groups split from now on; a single rank waits for nobody and is not
 * watched. `key` is the setting that the text names. *out is the caller's; end with watch_end
 * before the ranks. Not collective. */
bool watch_begin(struct ranks *ranks, int64_t seconds, const char *key, watch_lost *lost, void *arg,
                 struct watch **out, struct err *err);
void watch_end(struct watch *watch); /* NULL-safe */

/* --- for ranks.c --- */

/* Around whatever waits; `what`: a literal, "all-reduce". They nest. NULL-safe. */
void watch_wait(struct watch *watch, const struct ranks *group, const char *what);
void watch_done(struct watch *watch);
#endif
