/* doctor.h: this machine -> what is available to microtome, what each part is for, and what to do
 * if something is missing. Read-only. */
#ifndef DOCTOR_DOCTOR_H
#define DOCTOR_DOCTOR_H
#include <stdbool.h>
#include <stddef.h>
#include "base/err.h"

enum doctor_state {
    DOCTOR_OK,
    DOCTOR_NOTE,   /* works, but worth knowing: slower, smaller, or without an extra */
    DOCTOR_BROKEN, /* microtome cannot work */
};
extern const char *const doctor_state_names[]; /* in the order of the enum */

struct doctor_finding {
    const char *area; /* a literal: "slides", "computing", "machine", "cluster" */
    const char *name; /* a literal: "OpenSlide" */
    enum doctor_state state;
    char fact[160];    /* what was found */
    char meaning[320]; /* what it is for */
    char remedy[320];  /* "" if nothing needs to be done */
};

struct doctor_list {
    struct doctor_finding *items; /* areas stay together */
    size_t n;
    int64_t room;
    bool failed; /* out of memory */
};

/* Checks everything. `folder` is where results would go; `root` is the prefix of the paths in /proc
 * and /sys ("" for the real ones, a folder in tests). The caller owns *out; free with
 * doctor_free. */
bool doctor_examine(const char *folder, const char *root, struct doctor_list *out, struct err *err);
void doctor_free(struct doctor_list *list);
bool doctor_broken(const struct doctor_list *list); /* is anything necessary broken? */

/* Processors allowed by the container's quota (0.5, 2, ...); 0: no limit. Control groups of both
 * versions. */
double doctor_cpu_quota(const char *root);
/* Bytes the container may use; 0: no limit. */
double doctor_memory_limit(const char *root);

/* --- for the files in this folder --- */

/* Appends a finding with its fact filled in; never NULL (a spare one if out of memory). */
struct doctor_finding *doctor_add(struct doctor_list *list, const char *area, const char *name,
                                  enum doctor_state state, const char *fact, ...)
    __attribute__((format(printf, 5, 6)));
void doctor_say(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define DOCTOR_MEANS(finding, ...)                                                                 \
    doctor_say((finding)->meaning, sizeof(finding)->meaning, __VA_ARGS__)
#define DOCTOR_REMEDY(finding, ...)                                                                \
    doctor_say((finding)->remedy, sizeof(finding)->remedy, __VA_ARGS__)

void doctor_small_tiff(struct doctor_list *list);
void doctor_libraries(struct doctor_list *list);
void doctor_machine(struct doctor_list *list, const char *folder, const char *root);
void doctor_cluster(struct doctor_list *list);
#endif
