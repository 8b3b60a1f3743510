/* run.h: the record of a run over a cohort in its results folder: run.json (version, arguments,
 * host, times, every slide's state) and slides.csv (one row per slide; also a valid slide list: its
 * paths are absolute). Both are rewritten as slides finish, at most once a second, to a temporary
 * file that is renamed, so a killed run shows how far it got. */
#ifndef BASE_RUN_H
#define BASE_RUN_H
#include <stdbool.h>
#include <stddef.h>
#include "base/err.h"
#include "base/json.h"

enum run_state {
    RUN_DONE,      /* made in this run */
    RUN_KEPT,      /* already complete */
    RUN_FAILED,    /* could not be read or written; the error says why */
    RUN_NO_TISSUE, /* complete, in this run or before, but the slide is empty */
};
extern const char *const run_state_names[]; /* in the order of the enum */

#define RUN_MAX_FACTS 132 /* a slide's classes have one each */
#define RUN_TIME_TEXT 32

/* A number worth keeping about a slide, e.g. { "patches", 812 }; NAN is written as an empty cell,
 * in JSON as null. */
struct run_fact {
    const char
        *name; /* outlives the run; the same names in the same order for every slide of a run */
    double value;
};

struct run_item {
    const char *name, *path;
    enum run_state state;
    double seconds;
    double cpu_s;      /* of other processes that worked on it, such as cluster tasks; counts for
                        * the run */
    const char *error; /* NULL unless failed */
    struct run_fact facts[RUN_MAX_FACTS];
    size_t n_facts;
    char modified[RUN_TIME_TEXT]; /* when the file at path was last changed, UTC; set by run_add */
};

struct run;

/* The folder must exist, and is claimed until run_free: a second run in it fails here. planned: the
 * total number of slides. argv is the command line as typed; it is copied. The caller owns *out;
 * free with run_free. */
bool run_begin(const char *folder, size_t planned, int argc, char *const *argv, struct run **out,
               struct err *err);

/* Adds a slide (copied). Saves the record with the first one and then at most once a second. */
bool run_add(struct run *run, const struct run_item *item, struct err *err);

/* Saves with the end time. If slides failed, returns false with an error that gives their number
 * and where to look. */
bool run_finish(struct run *run, struct err *err);
void run_free(struct run *run);

/* The first fields of every run.json: program, version, arguments, host. */
void run_put_command(struct json_out *json, int argc, char *const *argv, const char *host);

/* The outcome of a slide that separate tasks made, for commands that then only put it together. */
struct run_outcome {
    double seconds, cpu_s;
    const char *error; /* NULL: everything it takes is there */
};
#endif
