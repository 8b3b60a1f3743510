/* part.h: files that are not complete yet: NAME.<host>-<process>-<random>.part. The name cannot be
 * guessed, so that nobody can put a link there first, and tells whether its writer still lives. */
#ifndef BASE_PART_H
#define BASE_PART_H
#include "base/err.h"

/* Creates a new, empty file beside `path`, open for reading and writing: the descriptor, and its
 * name in *name, the caller's; -1 on failure, with *name NULL. */
int part_create(const char *path, char **name, struct err *err);

/* Removes the parts in a folder whose writer is gone: a process of this host that has ended, or one
 * of another host that has not written for a week. */
void part_sweep(const char *folder);
#endif
