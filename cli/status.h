/* status.h: what the files of the command status share. */
#ifndef CLI_STATUS_H
#define CLI_STATUS_H
#include <stdbool.h>
#include <stdio.h>
#include "base/err.h"

/* A sweep that runs, or ran, on this computer. *ended: no process is at it. */
bool status_sweep(FILE *out, const char *folder, bool json, bool *ended, struct err *err);
#endif
