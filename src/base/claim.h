/* claim.h: a results folder belongs to one run at a time. The claim is a lock on the folder, which
 * ends with its process, and a file DIR/.lock that records the holder (host, process, time), for
 * hosts that do not see each other's locks. The holder touches the file every CLAIM_BEAT_S seconds:
 * if its process is gone, or another host has not touched it for CLAIM_DEAD_S, the lock is dead and
 * is taken over. */
#ifndef BASE_CLAIM_H
#define BASE_CLAIM_H
#include <stdatomic.h>
#include "base/err.h"

#define CLAIM_BEAT_S 30
#define CLAIM_DEAD_S 300

struct claim;

/* The folder must exist. Fails, naming the holder, if another run has it. The caller owns *out;
 * release the folder with claim_release. A folder that is not writable can be claimed by anyone:
 * there is nothing to protect. */
bool claim_take(const char *folder, struct claim **out, struct err *err);
/* The same, for a job that a scheduler restarted because its node was lost: while the holder is on
 * another host it waits, for at most CLAIM_DEAD_S, until that lock is dead. stop NULL: cannot be
 * stopped. */
bool claim_wait(const char *folder, const atomic_bool *stop, struct claim **out, struct err *err);
void claim_release(struct claim *claim); /* NULL-safe */

struct claim_holder {
    char host[256];
    long pid;
    char since[32]; /* UTC */
    bool alive;     /* as far as this host can tell */
};

/* Who has the folder? False if no one. */
bool claim_look(const char *folder, struct claim_holder *out);
#endif
