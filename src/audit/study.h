/* study.h: an audit: every attack that can be tried on a model, the controls that must fail, and
 * what follows, in plain words. */
#ifndef AUDIT_STUDY_H
#define AUDIT_STUDY_H
#include <stdio.h>
#include "audit/nearest.h"
#include "audit/power.h"
#include "audit/set.h"

#define STUDY_ATTACKS 16
#define STUDY_TEXT 400
#define STUDY_REFERENCES 64

struct study_request {
    const char *model;       /* its folder */
    char *const *references; /* folders of models to compare with */
    size_t n_references;     /* at most STUDY_REFERENCES */
    struct set_request set;  /* folder is set to the model's */
    double epsilon, delta;   /* the promise; epsilon 0: as the model's config.json says */
    int64_t generated;       /* images that a generator makes for nearest neighbours; 0: none */
    uint64_t seed;
};

struct study_attack {
    char name[80], what[160];
    bool control;   /* must fail */
    double *scores; /* [n] of the set */
    struct power power;
};

enum study_verdict {
    STUDY_QUIET,   /* no attack is better than chance */
    STUDY_LEAKS,   /* some are */
    STUDY_BROKEN,  /* and a promise is broken */
    STUDY_SHIFTED, /* controls succeed: members and others differ by themselves */
};

struct study {
    struct audit_set set;
    const char *kind; /* "classifier", "generator" */
    struct promise promise;
    char unit[16]; /* of the promise: "patch", "patient", or "" */
    struct study_attack attacks[STUDY_ATTACKS];
    int n_attacks;
    bool looked; /* at nearest neighbours */
    struct nearest nearest;
    enum study_verdict verdict;
    char sentence[STUDY_TEXT]; /* the verdict */
    char untried[6][STUDY_TEXT];
    int n_untried;
};

/* *out is the caller's; free with study_free, also after a failure. Uses HDF5: see patch/store.h.
 */
bool study_run(const struct study_request *request, const struct ctx *ctx, struct study *out,
               struct err *err);
void study_free(struct study *study); /* also fine on a zeroed struct */

/* From verdict.c: fills verdict and sentence from the attacks. */
void study_judge(struct study *study);
/* The attack (not a control) with the largest area; NULL: none. */
const struct study_attack *study_best(const struct study *study);

/* From page.c: audit.html, audit.json, scores.csv, roc.svg/.png and roc_log.svg/.png in a folder.
 */
bool study_write(const struct study *study, const char *model, const char *folder, struct err *err);
/* What audit.json says. */
void study_put_json(const struct study *study, const char *model, FILE *stream);
#endif
