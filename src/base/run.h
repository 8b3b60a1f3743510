/* run.h: the record that a run over a cohort leaves in its results folder: run.json (version,
 * arguments, host, times, every slide's state) and slides.csv (a row a slide, which also reads as a
 * slide list: its paths are absolute). Both are rewritten while slides come in, at most once a
 * second, beside and renamed, so that a killed run tells how far it came. */
#ifndef BASE_RUN_H
#define BASE_RUN_H
#include <stdbool.h>
#include <stddef.h>
#include "base/err.h"
#include "base/json.h"

enum run_state {
    RUN_DONE,      /* made in this run */
    RUN_KEPT,      /* was complete already */
    RUN_FAILED,    /* could not be read or written; the error says why */
    RUN_NO_TISSUE, /* complete, in this run or before, but there is nothing on the slide */
};
extern const char *const run_state_names[]; /* in the order of the enum */

#define RUN_MAX_FACTS 12
#define RUN_TIME_TEXT 32

/* A number worth keeping about a slide, e.g. { "patches", 812 }; NAN is written as an empty cell,
 * in JSON as null. */
struct run_fact {
    const char *name; /* a literal; the same names in the same order for every slide of a run */
    double value;
};

struct run_item {
    const char *name, *path;
    enum run_state state;
    double seconds;
    const char *error; /* NULL unless failed */
    struct run_fact facts[RUN_MAX_FACTS];
    size_t n_facts;
    char modified[RUN_TIME_TEXT]; /* when the file at path was last changed, UTC; set by run_add */
};

struct run;

/* folder exists, and is claimed until run_free: a second run in it fails here. planned: how many
 * slides there are to come to. argv is the command line as typed; it is copied. *out is the
 * caller's; free with run_free. */
bool run_begin(const char *folder, size_t planned, int argc, char *const *argv, struct run **out,
               struct err *err);

/* Adds a slide (copied); the first one, and then one a second, saves the record. */
bool run_add(struct run *run, const struct run_item *item, struct err *err);

/* Other processes have worked for this run, as tasks of a cluster do: their CPU seconds count. */
void run_spent(struct run *run, double cpu_s);

/* Saves with the end time. If slides failed: false, with an error that counts them and says where
 * to look. */
bool run_finish(struct run *run, struct err *err);
void run_free(struct run *run);

/* What every run.json begins with: program, version, arguments, host. */
void run_put_command(struct json_out *json, int argc, char *const *argv, const char *host);
#endif
