/* objective_classes.c: see objective_classes.h. */
#include "train/objective_classes.h"

#include <stdlib.h>
#include "base/csv.h"
#include "base/file.h"
#include "base/text.h"
#include "plot/curves.h"
#include "train/metrics.h"

/* In the order of the columns of metrics.csv. */
const struct measure classes_measures[CLASSES_N_MEASURES] = {
    { "accuracy", "accuracy", true },
    { "balanced_accuracy", "balanced accuracy", false },
    { "auc", "AUC", true },
    { "f1", "F1", false },
};
const char *const classes_plots[] = { "auc", "accuracy", NULL };

/* confusion may be NULL. */
static bool compute(const struct predictions *predictions, struct metrics *out, int64_t *confusion,
                    struct err *err)
{
    int32_t *labels = calloc((size_t)predictions->n + 1, sizeof *labels);
    if (!labels)
        return err_memory(err, "the metrics");
    for (int64_t i = 0; i < predictions->n; i++)
        labels[i] = (int32_t)predictions->truths[i];
    bool ok = metrics_compute(predictions->values, labels, predictions->n, predictions->outputs,
                              out, confusion, err);
    free(labels);
    return ok;
}

bool classes_judge(const struct learning *learning, const struct predictions *predictions,
                   double *values, struct err *err)
{
    struct metrics metrics = { 0 };
    (void)learning;
    if (!compute(predictions, &metrics, NULL, err))
        return false;
    values[0] = metrics.accuracy;
    values[1] = metrics.balanced_accuracy;
    values[2] = metrics.auc;
    values[3] = metrics.f1;
    return true;
}

static bool write_scores(const struct learning *learning, const char *path,
                         const struct predictions *found, struct err *err)
{
    struct file_out out;
    const struct texts *classes = &learning->config->classes;
    if (!file_out_open(&out, path, err))
        return false;
    fputs("sample,patient,label", out.stream);
    for (size_t c = 0; c < classes->n; c++) {
        fputs(",prob_", out.stream);
        csv_write_cell(out.stream, classes->items[c]);
    }
    fputc('\n', out.stream);
    for (int64_t i = 0; i < found->n; i++) {
        dataset_put_sample(learning->dataset, found->samples[i], out.stream);
        fprintf(out.stream, ",%d", (int)found->truths[i]);
        for (int64_t c = 0; c < found->outputs; c++)
            fprintf(out.stream, ",%.9g", (double)found->values[i * found->outputs + c]);
        fputc('\n', out.stream);
    }
    return file_out_commit(&out, err);
}

static bool write_confusion(const struct texts *classes, const char *path, const int64_t *confusion,
                            struct err *err)
{
    struct file_out out;
    if (!file_out_open(&out, path, err))
        return false;
    fputs("truth", out.stream);
    for (size_t c = 0; c < classes->n; c++) {
        fputc(',', out.stream);
        csv_write_cell(out.stream, classes->items[c]);
    }
    for (size_t r = 0; r < classes->n; r++) {
        fputc('\n', out.stream);
        csv_write_cell(out.stream, classes->items[r]);
        for (size_t c = 0; c < classes->n; c++)
            fprintf(out.stream, ",%lld", (long long)confusion[r * classes->n + c]);
    }
    fputc('\n', out.stream);
    return file_out_commit(&out, err);
}

bool classes_write(const struct learning *learning, const char *prefix,
                   const struct predictions *found, struct err *err)
{
    const struct texts *classes = &learning->config->classes;
    struct metrics metrics;
    int64_t *confusion = calloc(classes->n * classes->n, sizeof *confusion);
    char *scores = text_format("%sscores.csv", prefix);
    char *csv = text_format("%sconfusion.csv", prefix);
    char *svg = text_format("%sconfusion.svg", prefix);
    char *png = text_format("%sconfusion.png", prefix);
    bool ok = (confusion && scores && csv && svg && png) || err_memory(err, "the scores");
    ok = ok && (found->n == 0 || compute(found, &metrics, confusion, err)) &&
         write_scores(learning, scores, found, err) &&
         write_confusion(classes, csv, confusion, err) &&
         curves_confusion(svg, png, confusion, (const char *const *)classes->items,
                          (int64_t)classes->n, err);
    free(confusion);
    free(scores);
    free(csv);
    free(svg);
    free(png);
    return ok;
}

void classes_describe(const struct learning *learning, struct model_config *card)
{
    card->num_classes = (int64_t)learning->config->classes.n;
    card->class_names = learning->config->classes.items;
}
