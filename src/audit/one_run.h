/* one_run.h: a lower bound of epsilon from one training (Steinke, Nasr and Jagielski 2023): every
 * canary was put in or left out by a fair coin, and an attack guesses some of the coins. */
#ifndef AUDIT_ONE_RUN_H
#define AUDIT_ONE_RUN_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

/* The largest chance of at least `correct` of `guesses` right under (epsilon, delta), of `canaries`
 * coins. */
double one_run_chance(int64_t canaries, int64_t guesses, int64_t correct, double epsilon,
                      double delta);

/* The epsilon that these guesses refute with this confidence: any guarantee of less is false. 0 if
 * none is refuted. */
double one_run_epsilon(int64_t canaries, int64_t guesses, int64_t correct, double delta,
                       double confidence);

struct one_run {
    int64_t canaries, guesses, correct; /* of the number of guesses that gives the most */
    double epsilon;                     /* lower bound */
};

#define ONE_RUN_TRIES                                                                              \
    3 /* numbers of guesses that are tried; the confidence is divided among them */

/* Guesses that the highest scores [n] are members and the lowest are not: the outermost 2 %, 20 %
 * and all. False only if out of memory. */
bool one_run_audit(const double *scores, const bool *member, int64_t n, double delta,
                   double confidence, struct one_run *out, struct err *err);
#endif
