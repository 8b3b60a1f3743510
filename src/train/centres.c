/* centres.c: see centres.h. */
#include "train/centres.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The centre of each patient, the caller's; NULL with an error. */
static char **read_names(const struct dataset *dataset, const regex_t *pattern, struct err *err)
{
    char **names = calloc((size_t)dataset->n_patients + 1, sizeof *names);
    for (int32_t i = 0; names && i < dataset->n_patients; i++) {
        const char *patient = dataset->patients[i];
        regmatch_t groups[2];
        if (regexec(pattern, patient, 2, groups, 0) != 0 || groups[1].rm_so < 0) {
            err_set(err, ERR_USAGE,
                    "generate.centre: does not match the patient '%.200s', or has no group in "
                    "parentheses",
                    patient);
            names[i] = NULL;
            return names;
        }
        names[i] = strndup(patient + groups[1].rm_so, (size_t)(groups[1].rm_eo - groups[1].rm_so));
        if (!names[i])
            break;
    }
    return names;
}

/* names [n patients], which are taken or freed -> sorted, each once, with the index of each. */
static bool sort_names(char **names, int32_t patients, struct centres *out, struct err *err)
{
    char **sorted = calloc((size_t)patients + 1, sizeof *sorted);
    out->of_patient = calloc((size_t)patients + 1, sizeof *out->of_patient);
    if (!sorted || !out->of_patient) {
        free(sorted);
        return err_memory(err, "centres");
    }
    memcpy(sorted, names, (size_t)patients * sizeof *sorted);
    qsort(sorted, (size_t)patients, sizeof *sorted, by_name);
    for (int32_t i = 0; i < patients; i++)
        if (out->n == 0 || strcmp(sorted[out->n - 1], sorted[i]) != 0)
            sorted[out->n++] = sorted[i];
    for (int32_t i = 0; i < patients; i++) {
        char **found = bsearch(&names[i], sorted, (size_t)out->n, sizeof *sorted, by_name);
        out->of_patient[i] = (int32_t)(found - sorted);
    }
    for (int64_t i = 0; i < out->n; i++)
        if (!(sorted[i] = strdup(sorted[i])))
            out->n = i;
    out->names = sorted;
    return out->n > 0 || err_memory(err, "centres");
}

bool centres_find(const struct dataset *dataset, const char *pattern, struct centres *out,
                  struct err *err)
{
    regex_t compiled;
    *out = (struct centres){ 0 };
    if (!pattern[0])
        return true;
    if (regcomp(&compiled, pattern, REG_EXTENDED) != 0)
        return err_set(err, ERR_USAGE, "generate.centre: '%.200s' is not a regular expression",
                       pattern);
    char **names = read_names(dataset, &compiled, err);
    bool ok = names && (dataset->n_patients == 0 || names[dataset->n_patients - 1]);
    regfree(&compiled);
    if (ok)
        ok = sort_names(names, dataset->n_patients, out, err);
    else if (!err || !err->text[0])
        err_memory(err, "centres");
    for (int32_t i = 0; names && i < dataset->n_patients; i++)
        free(names[i]);
    free(names);
    return ok;
}

void centres_free(struct centres *centres)
{
    for (int64_t i = 0; i < centres->n; i++)
        free(centres->names[i]);
    free(centres->names);
    free(centres->of_patient);
    *centres = (struct centres){ 0 };
}

int32_t centres_of(const struct centres *centres, const struct dataset *dataset, int64_t sample)
{
    return centres->of_patient[dataset_range(dataset, sample).patient];
}
