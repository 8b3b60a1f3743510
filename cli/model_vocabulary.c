/* model_vocabulary.c: `microtome model vocabulary`: tables of texts -> a vocab.txt. */
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "base/csv.h"
#include "base/file.h"
#include "cli/model.h"
#include "text/learn.h"

static bool add_table(struct learner *learner, const char *path, const char *name, struct err *err)
{
    struct csv csv;
    if (!csv_read(path, &csv, err))
        return false;
    int column = csv_column(&csv, name);
    bool ok = column >= 0 ||
              err_set(err, ERR_USAGE,
                      "%s: no column '%s'; name the column of the texts with --text", path, name);
    for (size_t row = 0; ok && row < csv.n_rows; row++)
        if (!learner_add(learner, csv_cell(&csv, row, column), err)) {
            char line[32];
            snprintf(line, sizeof line, "line %d", csv.lines[row]);
            err_prefix(err, line);
            ok = err_prefix(err, path);
        }
    csv_free(&csv);
    return ok;
}

static bool write_text(const char *path, const char *text, struct err *err)
{
    struct file_out out;
    if (!file_out_open(&out, path, err))
        return false;
    fputs(text, out.stream);
    return file_out_commit(&out, err);
}

bool model_vocabulary(struct app *app, const struct model_args *given, char **tables, int n_tables,
                      struct err *err)
{
    struct learner *learner = NULL;
    char *text = NULL;
    long long lines = 0;
    if (n_tables == 0 || !given->output)
        return err_set(err, ERR_USAGE, "vocabulary: pass tables of texts (CSV) and -o vocab.txt");
    bool ok = learner_new(&learner, err);
    for (int i = 0; ok && i < n_tables; i++)
        ok = add_table(learner, tables[i], given->text, err);
    ok = ok && learner_vocabulary(learner, given->tokens, &text, err) &&
         write_text(given->output, text, err);
    for (const char *at = text; ok && (at = strchr(at, '\n')); at++)
        lines++;
    if (ok)
        console_note(app->ctx.console, "wrote %s: %lld tokens", given->output, lines);
    learner_free(learner);
    free(text);
    return ok;
}
