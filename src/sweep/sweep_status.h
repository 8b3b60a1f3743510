/* sweep_status.h: the progress of a sweep, from the files in its folder alone. */
#ifndef SWEEP_SWEEP_STATUS_H
#define SWEEP_SWEEP_STATUS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/claim.h"
#include "base/err.h"

struct sweep_row {
    char *name, *state;             /* "done", as in sweep.json */
    char *error;                    /* "" if there is none */
    double score;                   /* the validation measure; NaN if there is none yet */
    int64_t epochs, epochs_planned; /* 0 if it has not begun */
};

struct sweep_status {
    struct sweep_row *rows; /* [n] */
    size_t n, done, failed;
    char *measure;
    char *best;   /* the name of the best; "" if none is */
    bool claimed; /* a process is at it */
    struct claim_holder holder;
};

/* Whether a folder is one of a sweep. */
bool sweep_status_exists(const char *folder);
/* *out is the caller's; free with sweep_status_free. */
bool sweep_status_look(const char *folder, struct sweep_status *out, struct err *err);
void sweep_status_free(struct sweep_status *status);
#endif
