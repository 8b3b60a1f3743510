/* folder_status.h: the progress of a run in a results folder, from the run.json that extract,
 * tissue and predict (slides) and train (epochs) write, with or without a cluster. */
#ifndef CLUSTER_FOLDER_STATUS_H
#define CLUSTER_FOLDER_STATUS_H
#include <stdint.h>
#include "base/claim.h"
#include "base/err.h"

struct folder_failure {
    char *slide, *error;
};

struct folder_status {
    char command[32];  /* "predict" */
    const char *units; /* "slides" or "epochs" */
    int64_t planned, done, kept, failed, no_tissue, left;
    bool ended;                      /* according to the run itself */
    bool claimed;                    /* a process has claimed the folder */
    double seconds;                  /* that the run has taken so far, or in total */
    double age_s;                    /* since run.json was written */
    struct folder_failure *failures; /* [failed] */
    struct claim_holder holder;      /* if claimed */
};

/* *out is the caller's; free with folder_status_free. A folder without run.json is an error. */
bool folder_status_look(const char *folder, struct folder_status *out, struct err *err);
void folder_status_free(struct folder_status *status);
#endif
