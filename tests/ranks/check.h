/* check.h: for programs that run on several ranks: a check that fails says where and on which rank,
 * and ends the process, so that mpirun ends the others, which may be waiting. */
#ifndef TESTS_RANKS_CHECK_H
#define TESTS_RANKS_CHECK_H
#include <stdio.h>
#include <stdlib.h>
#include "dist/ranks.h"

#define CHECK(ranks, condition)                                                                    \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: rank %d of %d: %s\n", __FILE__, __LINE__, (ranks)->rank,       \
                    (ranks)->size, #condition);                                                    \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* The same for a call that gives an error. */
#define CHECK_OK(ranks, call, err)                                                                 \
    do {                                                                                           \
        if (!(call)) {                                                                             \
            fprintf(stderr, "%s:%d: rank %d of %d: %s: %s\n", __FILE__, __LINE__, (ranks)->rank,   \
                    (ranks)->size, #call, (err)->text);                                            \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#endif
