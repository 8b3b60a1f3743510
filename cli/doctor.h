/* doctor.h: what the files of the command doctor share. */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H
#include "cli/app.h"

struct doctor_args {
    struct common_options common;
    bool json, mpi;
    int64_t ranks, largest;
};

extern const struct command cmd_doctor;

/* --mpi: measures the connections of the ranks that this is one of, or that it starts. */
bool doctor_mpi(struct app *app, const struct doctor_args *given,
                const struct args_result *operands, struct err *err);
#endif
