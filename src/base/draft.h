/* draft.h: drafts: files that are not complete yet: NAME.<host>-<process>-<random>.part. The name
 * cannot be guessed, so nobody can put a link there first, and shows whether its writer is still
 * alive. */
#ifndef BASE_DRAFT_H
#define BASE_DRAFT_H
#include "base/err.h"

/* Creates a new, empty file beside `path`, open for reading and writing. Returns the descriptor,
 * and the name in *name, owned by the caller; -1 on failure, with *name NULL. */
int draft_create(const char *path, char **name, struct err *err);

/* Removes the drafts in a folder whose writer is gone: a process of this host that has ended, or
 * one of another host that has not written for a week. */
void draft_sweep(const char *folder);
#endif
