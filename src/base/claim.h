/* claim.h: a results folder belongs to one run at a time. The claim is a lock on the folder, which
 * ends with its process, and a file DIR/.lock that says who has it (host, process, time), for hosts
 * that do not see each other's locks. Whoever holds it touches the file every CLAIM_BEAT_S seconds:
 * a file whose process is gone, or that another host has not touched for CLAIM_DEAD_S, is a dead
 * lock and is taken over. */
#ifndef BASE_CLAIM_H
#define BASE_CLAIM_H
#include <stdatomic.h>
#include "base/err.h"

#define CLAIM_BEAT_S 30
#define CLAIM_DEAD_S 300

struct claim;

/* folder exists. Fails, naming the holder, if another run has it. *out is the caller's; give the
 * folder back with claim_release. A folder that cannot be written lets everyone in: there is
 * nothing to protect. */
bool claim_take(const char *folder, struct claim **out, struct err *err);
/* The same, for a job that a scheduler began again because its node was lost: while the holder is
 * on another host it waits, for CLAIM_DEAD_S at most, until that one is dead. NULL: cannot be
 * stopped.
 */
bool claim_wait(const char *folder, const atomic_bool *stop, struct claim **out, struct err *err);
void claim_release(struct claim *claim); /* NULL-safe */

struct claim_holder {
    char host[256];
    long pid;
    char since[32]; /* UTC */
    bool alive;     /* as far as can be told from here */
};

/* Who has the folder? False if no one. */
bool claim_look(const char *folder, struct claim_holder *out);
#endif
