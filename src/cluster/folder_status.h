/* folder_status.h: how far a run in a results folder came, from its run.json: what extract, tissue
 * and predict (slides) and train (epochs) leave, with or without a cluster. */
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
    bool ended;                      /* the run says so itself */
    bool claimed;                    /* someone has the folder now */
    double seconds;                  /* that the run took so far, or in all */
    double age_s;                    /* since run.json was written */
    struct folder_failure *failures; /* [failed] */
    struct claim_holder holder;      /* where it is claimed */
};

/* *out is the caller's; free with folder_status_free. A folder without run.json is an error. */
bool folder_status_look(const char *folder, struct folder_status *out, struct err *err);
void folder_status_free(struct folder_status *status);
#endif
