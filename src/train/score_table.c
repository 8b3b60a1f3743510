/* score_table.c: see score_table.h. */
#include "train/score_table.h"
#include <stdlib.h>
#include <string.h>
#include "base/text.h"
#include "train/objective_classify.h"

void score_table_header(FILE *stream, const struct model_config *config)
{
    fputs("id,label", stream);
    for (int64_t c = 0; c < config->num_classes; c++) {
        char *name = text_format("score_%s", config->class_names[c]);
        fputc(',', stream);
        csv_write_cell(stream, name ? name : "");
        free(name);
    }
    fputc('\n', stream);
}

void score_table_write(FILE *stream, const struct model_config *config,
                       const struct score_table_row *row, const float *logits, double *scores,
                       struct score_texts_result *result)
{
    const char *label = csv_cell(row->csv, row->row, row->label);
    int64_t n = config->num_classes, best = 0, truth = -1;
    if (row->id >= 0)
        csv_write_cell(stream, csv_cell(row->csv, row->row, row->id));
    else
        fprintf(stream, "%zu", row->row + 1);
    fputc(',', stream);
    csv_write_cell(stream, label);
    classify_scores(logits, n, config->independent, scores);
    for (int64_t c = 0; c < n; c++) {
        best = scores[c] > scores[best] ? c : best;
        truth = strcmp(config->class_names[c], label) == 0 ? c : truth;
        fprintf(stream, ",%.9g", scores[c]);
    }
    fputc('\n', stream);
    result->n++;
    result->labelled += truth >= 0;
    result->correct += truth >= 0 && best == truth;
}
