/* stage_table.h: tables of stages, of slides and of patients, and where slides belong. */
#ifndef VERDICT_STAGE_TABLE_H
#define VERDICT_STAGE_TABLE_H
#include "base/csv.h"
#include "verdict/stage.h"

/* A row: a patient with a stage, or a slide with a type. */
struct stage_row {
    const char *name; /* without folder and extension; points into the table */
    int value;        /* enum stage or enum metastasis */
};

struct stage_table {
    struct stage_row *patients, *slides; /* by name, each once */
    size_t n_patients, n_slides;
    struct csv csv;
};

/* A CSV with the columns patient and stage, as in CAMELYON17 (patient_000.zip,pN1 and
 * patient_000_node_0.tif,macro: rows of patients and of slides) and as `classify stage` writes it;
 * or with the columns slide and type. An unknown stage and a name listed twice are errors. *out is
 * the caller's; free with stage_table_free. */
bool stage_table_read(const char *path, struct stage_table *out, struct err *err);
/* The same from memory, for fuzzing; path is only used in messages. */
bool stage_table_parse(const char *text, size_t size, const char *path, struct stage_table *out,
                       struct err *err);
void stage_table_free(struct stage_table *table); /* also fine on a zeroed struct */
/* NULL if there is none. */
const struct stage_row *stage_row_find(const struct stage_row *rows, size_t n, const char *name);

/* Sets the patient and the node of every slide: from a slide list (columns slide, patient and, if
 * there is one, node), or, list_path NULL, from names like patient_000_node_0. Slides of the list
 * that the cohort lacks are an error if their patient has others; with allow_missing they are
 * counted in *missing. */
bool stage_find_patients(struct staged_cohort *cohort, const char *list_path,
                         const char *slide_column, bool allow_missing, int64_t *missing,
                         struct err *err);

/* Writes to the folder: slides.csv, patients.csv, stages.csv as in CAMELYON17 and, if lesions were
 * measured, lesions.csv. */
bool stage_write(const struct staged_cohort *cohort, const char *folder, struct err *err);
#endif
