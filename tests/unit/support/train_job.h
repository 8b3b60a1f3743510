/* train_job.h: one training of a test: settings in, results in a folder, stopped where the test
 * wants it. */
#ifndef TESTS_UNIT_SUPPORT_TRAIN_JOB_H
#define TESTS_UNIT_SUPPORT_TRAIN_JOB_H
#include <stdatomic.h>
#include "train/train.h"

#define JOB_MAX_SETTINGS 32

struct job {
    const char *settings[JOB_MAX_SETTINGS]; /* NULL-terminated */
    const char *folder;
    bool resume;
    int threads;        /* 0: one */
    int64_t stop_after; /* steps; 0: never */
    atomic_bool stop;
};

/* Settings that are wrong are an error like any other. */
bool run_job(struct job *job, struct train_result *result, struct err *err);

/* A measure of the objective by its name; the test fails if there is none. */
double job_measure(const struct train_result *result, const struct quality *quality,
                   const char *name);

/* Bytes of folder/name, the caller's; the test fails if it cannot be read. */
char *read_in(const char *folder, const char *name, size_t *size);
#endif
