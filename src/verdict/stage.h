/* stage.h: slides with the type of their metastasis -> the pN stage of every patient, by the rules
 * of CAMELYON17:
 * - The type of a lymph node is that of the largest metastasis on its slides. Isolated tumour cells
 *   are not a metastasis.
 * - pN0: nothing found; pN0(i+): only isolated tumour cells; pN1mi: micro-metastases, but no
 *   macro-metastasis; pN1: metastases in 1 to 3 nodes, at least one of them macro; pN2: in 4 to 9
 *   nodes, at least one of them macro (10 and more, which the rules do not know, count as pN2). */
#ifndef VERDICT_STAGE_H
#define VERDICT_STAGE_H
#include <stddef.h>
#include "verdict/lesion_size.h"

enum stage { STAGE_PN0, STAGE_PN0_ITC, STAGE_PN1MI, STAGE_PN1, STAGE_PN2 };
#define STAGES 5
extern const char *const stage_names[]; /* NULL-terminated, in the order of the enum */
#define STAGE_MOST_NODES 9              /* with metastases, that the rules know */

/* nodes: how many there are of every type. */
enum stage stage_of_nodes(const int64_t nodes[METASTASES]);

struct staged_slide {
    char *slide;
    char *patient, *node; /* node "": the slide is a node */
    enum metastasis type;
    bool measured;      /* the rest is known */
    double diameter_um; /* of the largest lesion; 0: none */
    struct lesion_sizes lesions;
    double downsample_l0; /* level-0 px per px of the lesions' positions */
    double origin_x_l0, origin_y_l0;
};

struct staged_patient {
    const char *patient; /* points into the slides */
    enum stage stage;
    int64_t slides, nodes;       /* how many */
    int64_t of_type[METASTASES]; /* nodes */
};

struct staged_cohort {
    struct staged_slide *slides; /* by patient, node and name */
    size_t n;
    struct staged_patient *patients; /* by name */
    size_t n_patients;
};

/* Sorts the slides of the cohort and finds its patients. */
bool stage_patients(struct staged_cohort *cohort, struct err *err);
void staged_cohort_free(struct staged_cohort *cohort); /* also fine on a zeroed struct */
#endif
