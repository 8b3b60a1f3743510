/* scores.h: a column of slide scores with the truth of every slide, from one CSV or from two;
 * optionally with the patient and the group of every slide. */
#ifndef VERDICT_SCORES_H
#define VERDICT_SCORES_H
#include <stdbool.h>
#include <stdint.h>
#include "verdict/slide_table.h"

struct scores_request {
    const char *path; /* the CSV with the scores */
    const char *slide_column, *score_column, *label_column;
    const char *positive_word;        /* the positive label; NULL: labels are 0 and 1 */
    const struct class_list *classes; /* labels are these classes; NULL: see positive_word */
    size_t class_index;               /* with classes: this one is positive */
    bool scores_are_classes;          /* with classes: the score is the number of a class */
    const char *truth_path;           /* a CSV with slides and labels; NULL: they are in `path` */
    bool allow_missing;               /* slides without a score or without a label are skipped */
    const char *patient_column;       /* of the truth or of the scores; NULL: not looked for */
    bool patient_column_needed;       /* it must exist */
    bool patient_needed;              /* none of its cells may be empty */
    const char *group_column;         /* likewise, but must exist; NULL: none */
};

struct scores {
    struct slide_table table, truth;      /* truth: empty without truth_path */
    int64_t n;                            /* slides with score and label, sorted by name */
    const char **slides;                  /* [n] point into the tables, like those below */
    double *values;                       /* [n] finite */
    bool *positive;                       /* [n] */
    int *labels;                          /* [n] with request->classes: their numbers; else NULL */
    const char **patients;                /* [n]; "": unknown; NULL: no such column */
    const char **groups;                  /* [n]; NULL: not requested */
    int64_t n_slides;                     /* n, and more if a row is a patient */
    int64_t without_label, without_score; /* slides that were skipped */
};

/* *out is the caller's; free with scores_free. */
bool scores_read(const struct scores_request *request, struct scores *out, struct err *err);
void scores_free(struct scores *scores); /* also fine on a zeroed struct */

/* The same slides with the same labels, so that the scores can be compared pair by pair. */
bool scores_are_paired(const struct scores *a, const struct scores *b);

enum patient_score { PATIENT_MAX, PATIENT_MEAN };
extern const char *const patient_score_names[]; /* NULL-terminated, in the order of the enum */

/* One row per patient instead of per slide, sorted by name: positive if any of the patient's slides
 * is, with the highest or the mean score. Every slide must have a patient; slides of one patient in
 * two groups are an error. */
bool scores_by_patient(struct scores *scores, enum patient_score how, struct err *err);

/* The rows of one group, or all of them. */
struct scores_part {
    int64_t n, positives, n_patients; /* n_patients: 0 if unknown */
    double *values;
    bool *positive;
    int64_t *clusters; /* [n]: numbers of patients; NULL if no patient has two rows */
};

/* group NULL: all rows. *out is the caller's; free with scores_part_free. */
bool scores_part(const struct scores *scores, const char *group, struct scores_part *out,
                 struct err *err);
void scores_part_free(struct scores_part *part); /* also fine on a zeroed struct */

/* For qsort of char *: numbers first and in order of value, then words. */
int scores_group_order(const void *a, const void *b);
/* The groups, each once, numbers first and in order of value, then words; *out [*n] is
 * the caller's to free, the texts are not. */
bool scores_groups(const struct scores *scores, const char ***out, size_t *n, struct err *err);
#endif
