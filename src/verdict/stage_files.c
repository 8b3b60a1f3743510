/* stage_files.c: the tables that `classify stage` writes (stage_table.h). */
#include <stdlib.h>
#include "base/csv.h"
#include "base/file.h"
#include "base/text.h"
#include "verdict/stage_table.h"

static void put_slides(const struct staged_cohort *cohort, FILE *out)
{
    fputs("slide,patient,node,type,diameter_um,lesions,itc,micro,macro\n", out);
    for (size_t i = 0; i < cohort->n; i++) {
        const struct staged_slide *slide = &cohort->slides[i];
        int64_t of_type[METASTASES] = { 0 };
        for (int32_t k = 0; k < slide->lesions.n; k++)
            of_type[slide->lesions.items[k].type]++;
        csv_write_cell(out, slide->slide);
        fputc(',', out);
        csv_write_cell(out, slide->patient);
        fputc(',', out);
        csv_write_cell(out, slide->node);
        fprintf(out, ",%s", metastasis_names[slide->type]);
        if (slide->measured)
            fprintf(out, ",%.1f,%d,%lld,%lld,%lld\n", slide->diameter_um, (int)slide->lesions.n,
                    (long long)of_type[METASTASIS_ITC], (long long)of_type[METASTASIS_MICRO],
                    (long long)of_type[METASTASIS_MACRO]);
        else
            fputs(",,,,,\n", out);
    }
}

static void put_patients(const struct staged_cohort *cohort, FILE *out)
{
    fputs("patient,stage,nodes,negative,itc,micro,macro,slides\n", out);
    for (size_t i = 0; i < cohort->n_patients; i++) {
        const struct staged_patient *patient = &cohort->patients[i];
        csv_write_cell(out, patient->patient);
        fprintf(out, ",%s,%lld", stage_names[patient->stage], (long long)patient->nodes);
        for (int type = 0; type < METASTASES; type++)
            fprintf(out, ",%lld", (long long)patient->of_type[type]);
        fprintf(out, ",%lld\n", (long long)patient->slides);
    }
}

static void put_named(FILE *out, const char *name, const char *ending, const char *value)
{
    char *file = text_format("%s%s", name, ending);
    csv_write_cell(out, file ? file : name);
    fprintf(out, ",%s\n", value);
    free(file);
}

/* The patient, then its slides, as in CAMELYON17. */
static void put_stages(const struct staged_cohort *cohort, FILE *out)
{
    size_t slide = 0;
    fputs("patient,stage\n", out);
    for (size_t i = 0; i < cohort->n_patients; i++) {
        const struct staged_patient *patient = &cohort->patients[i];
        put_named(out, patient->patient, ".zip", stage_names[patient->stage]);
        for (int64_t k = 0; k < patient->slides; k++, slide++)
            put_named(out, cohort->slides[slide].slide, ".tif",
                      metastasis_names[cohort->slides[slide].type]);
    }
}

static void put_lesions(const struct staged_cohort *cohort, FILE *out)
{
    fputs("slide,type,diameter_um,area_um2,x,y,score\n", out);
    for (size_t i = 0; i < cohort->n; i++) {
        const struct staged_slide *slide = &cohort->slides[i];
        for (int32_t k = 0; k < slide->lesions.n; k++) {
            const struct lesion_size *lesion = &slide->lesions.items[k];
            csv_write_cell(out, slide->slide);
            fprintf(out, ",%s,%.1f,%.0f,%.0f,%.0f,", metastasis_names[lesion->type],
                    lesion->diameter_um, lesion->area_um2,
                    slide->origin_x_l0 + (lesion->x_px + 0.5) * slide->downsample_l0,
                    slide->origin_y_l0 + (lesion->y_px + 0.5) * slide->downsample_l0);
            if (lesion->score > 0)
                fprintf(out, "%.9g", lesion->score);
            fputc('\n', out);
        }
    }
}

bool stage_write(const struct staged_cohort *cohort, const char *folder, struct err *err)
{
    static const struct {
        const char *name;
        void (*put)(const struct staged_cohort *cohort, FILE *out);
    } files[] = { { "lesions.csv", put_lesions },
                  { "slides.csv", put_slides },
                  { "patients.csv", put_patients },
                  { "stages.csv", put_stages } };
    bool measured = cohort->n > 0 && cohort->slides[0].measured;
    bool ok = true;
    for (size_t i = measured ? 0 : 1; ok && i < sizeof files / sizeof *files; i++) {
        struct file_out file;
        ok = file_out_open_in(&file, folder, files[i].name, err);
        if (!ok)
            break;
        files[i].put(cohort, file.stream);
        ok = file_out_commit(&file, err);
    }
    return ok;
}
