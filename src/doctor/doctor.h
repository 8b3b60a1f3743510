/* doctor.h: this machine -> what is there for microtome, what each part means for the user, and
 * what to do where something is missing. Looks only; writes nothing. */
#ifndef DOCTOR_DOCTOR_H
#define DOCTOR_DOCTOR_H
#include <stdbool.h>
#include <stddef.h>
#include "base/err.h"

enum doctor_state {
    DOCTOR_OK,
    DOCTOR_NOTE,   /* works, but worth knowing: slower, smaller, or without an extra */
    DOCTOR_BROKEN, /* microtome cannot do its work like this */
};
extern const char *const doctor_state_names[]; /* in the order of the enum */

struct doctor_finding {
    const char *area; /* a literal: "slides", "computing", "machine", "cluster" */
    const char *name; /* a literal: "OpenSlide" */
    enum doctor_state state;
    char fact[160];    /* what was found */
    char meaning[320]; /* what it is good for */
    char remedy[320];  /* "" where nothing needs to be done */
};

struct doctor_list {
    struct doctor_finding *items; /* areas stay together */
    size_t n;
    int64_t room;
    bool failed; /* no memory */
};

/* Looks at everything. `folder` is where results would go; `root` stands before the paths of
 * /proc and /sys ("" for the real ones, a folder of a test else). *out is the caller's; free with
 * doctor_free. */
bool doctor_examine(const char *folder, const char *root, struct doctor_list *out, struct err *err);
void doctor_free(struct doctor_list *list);
bool doctor_broken(const struct doctor_list *list); /* is anything necessary broken? */

/* Processors that the container's quota allows (0.5, 2, ...); 0: no limit. Control groups of both
 * versions. */
double doctor_cpu_quota(const char *root);
/* Bytes that the container may use; 0: no limit. */
double doctor_memory_limit(const char *root);

/* --- for the files of this folder --- */

/* A new finding at the end, with its fact filled in; never NULL (a spare one without memory). */
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
