/* stage.c: see stage.h. */
#include "verdict/stage.h"

#include <stdlib.h>
#include <string.h>

const char *const stage_names[] = { "pN0", "pN0(i+)", "pN1mi", "pN1", "pN2", NULL };

enum stage stage_of_nodes(const int64_t nodes[METASTASES])
{
    const int64_t metastases = nodes[METASTASIS_MICRO] + nodes[METASTASIS_MACRO];
    if (nodes[METASTASIS_MACRO] > 0)
        return metastases > 3 ? STAGE_PN2 : STAGE_PN1;
    return metastases > 0 ? STAGE_PN1MI : nodes[METASTASIS_ITC] > 0 ? STAGE_PN0_ITC : STAGE_PN0;
}

static int by_place(const void *a, const void *b)
{
    const struct staged_slide *x = a, *y = b;
    int order = strcmp(x->patient, y->patient);
    order = order ? order : strcmp(x->node, y->node);
    return order ? order : strcmp(x->slide, y->slide);
}

static bool same_node(const struct staged_slide *a, const struct staged_slide *b)
{
    return *a->node && strcmp(a->patient, b->patient) == 0 && strcmp(a->node, b->node) == 0;
}

/* Slides [begin, end) of one patient. */
static struct staged_patient patient_of(const struct staged_slide *slides, size_t begin, size_t end)
{
    struct staged_patient patient = { .patient = slides[begin].patient,
                                      .slides = (int64_t)(end - begin) };
    for (size_t i = begin; i < end;) {
        enum metastasis type = slides[i].type;
        size_t next = i + 1;
        for (; next < end && same_node(&slides[i], &slides[next]); next++)
            type = slides[next].type > type ? slides[next].type : type;
        patient.of_type[type]++;
        patient.nodes++;
        i = next;
    }
    patient.stage = stage_of_nodes(patient.of_type);
    return patient;
}

bool stage_patients(struct staged_cohort *cohort, struct err *err)
{
    const struct staged_slide *slides = cohort->slides;
    if (cohort->n > 1)
        qsort(cohort->slides, cohort->n, sizeof *cohort->slides, by_place);
    free(cohort->patients);
    cohort->n_patients = 0;
    cohort->patients = calloc(cohort->n + 1, sizeof *cohort->patients);
    if (!cohort->patients)
        return err_memory(err, "the patients");
    for (size_t begin = 0, end; begin < cohort->n; begin = end) {
        for (end = begin + 1;
             end < cohort->n && strcmp(slides[end].patient, slides[begin].patient) == 0;)
            end++;
        cohort->patients[cohort->n_patients++] = patient_of(slides, begin, end);
    }
    return true;
}

void staged_cohort_free(struct staged_cohort *cohort)
{
    for (size_t i = 0; i < cohort->n; i++) {
        struct staged_slide *slide = &cohort->slides[i];
        free(slide->slide), free(slide->patient), free(slide->node);
        lesion_sizes_free(&slide->lesions);
    }
    free(cohort->slides);
    free(cohort->patients);
    *cohort = (struct staged_cohort){ 0 };
}
