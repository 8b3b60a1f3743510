/* results_tables.c: reads slides, lesions and curves from CSVs (results.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/names.h"
#include "report/results.h"
#include "verdict/slide_table.h"
#include "base/text.h"

#define MOST_LINE 4096
#define MOST_CURVE_POINTS (1 << 20)

static double number_of(const char *cell)
{
    char *end;
    double value = strtod(cell, &end);
    return end != cell && *end == '\0' ? value : NAN;
}

/* Copies a text unless it is empty. */
static bool set_text(char **place, const char *text)
{
    if (text[0] == '\0')
        return true;
    free(*place);
    return (*place = strdup(text)) != NULL;
}

/* A word is more useful than a number: "tumor" is not replaced by 1. */
static bool set_label(struct result_slide *slide, const char *label)
{
    bool number = isfinite(number_of(label));
    return (number && slide->label[0]) || set_text(&slide->label, label);
}

/* A path in a table, relative to the table. */
static char *path_beside(const char *table, const char *path)
{
    const char *slash = strrchr(table, '/');
    if (path[0] == '/' || !slash)
        return strdup(path);
    return text_format("%.*s/%s", (int)(slash - table), table, path);
}

/* Score, label and annotation of slides, from any table with a column 'slide'. */
static bool take_slides(struct results *results, const struct csv *csv, struct err *err)
{
    int name = csv_column(csv, "slide"), label = csv_column(csv, results->label_column);
    if (label >= 0)
        results->has_labels = true;
    else
        names_join((const char *const *)csv->names, csv->n_columns, results->slide_columns,
                   sizeof results->slide_columns);
    int score = csv_column(csv, "score"), annotation = csv_column(csv, "annotation");
    for (size_t row = 0; row < csv->n_rows; row++) {
        if (csv_cell(csv, row, name)[0] == '\0')
            continue;
        char *path = strdup(csv_cell(csv, row, name));
        struct result_slide *slide = path ? results_slide(results, slide_table_name(path)) : NULL;
        free(path);
        if (!slide || !set_label(slide, csv_cell(csv, row, label)))
            return err_memory(err, csv->path);
        double value = number_of(csv_cell(csv, row, score));
        if (isfinite(value))
            slide->score = value;
        const char *drawing = csv_cell(csv, row, annotation);
        if (drawing[0]) {
            free(slide->annotation);
            slide->annotation = path_beside(csv->path, drawing);
            if (!slide->annotation)
                return err_memory(err, csv->path);
        }
    }
    return true;
}

/* slides.csv of a run: times of predict, area of tissue, errors. */
static bool take_states(struct results *results, const struct csv *csv, struct err *err)
{
    int name = csv_column(csv, "name"), state = csv_column(csv, "state");
    int seconds = csv_column(csv, "seconds"), area = csv_column(csv, "area_mm2");
    int scored = csv_column(csv, "scored"), error = csv_column(csv, "error");
    for (size_t row = 0; row < csv->n_rows; row++) {
        struct result_slide *slide = results_slide(results, csv_cell(csv, row, name));
        if (!slide)
            return err_memory(err, csv->path);
        if (!set_text(&slide->path, csv_cell(csv, row, csv_column(csv, "slide"))))
            return err_memory(err, csv->path);
        if (area >= 0)
            slide->tissue_mm2 = number_of(csv_cell(csv, row, area));
        if (scored >= 0 && strcmp(csv_cell(csv, row, state), "kept") != 0)
            slide->seconds = number_of(csv_cell(csv, row, seconds));
        if (scored >= 0 && strcmp(csv_cell(csv, row, state), "failed") == 0 &&
            !set_text(&slide->error, csv_cell(csv, row, error)))
            return err_memory(err, csv->path);
    }
    return true;
}

static bool take_lesions(struct results *results, const char *path, struct err *err)
{
    char *stem = file_stem(path);
    struct result_slide *slide = stem ? results_slide(results, stem) : NULL;
    free(stem);
    return (slide && set_text(&slide->lesions, path)) || err_memory(err, path);
}

/* The points of a plot may be in two files: the one beside it and the one of --points. */
static void drop_repeated(struct results *results)
{
    const struct result_curve *last = &results->curves[results->n_curves - 1];
    const size_t bytes = (size_t)last->n * sizeof *last->x;
    for (size_t i = 0; i + 1 < results->n_curves; i++) {
        const struct result_curve *curve = &results->curves[i];
        if (curve->kind == last->kind && curve->n == last->n &&
            strcmp(curve->name, last->name) == 0 && memcmp(curve->x, last->x, bytes) == 0 &&
            memcmp(curve->y, last->y, bytes) == 0) {
            free(last->name), free(last->x);
            results->n_curves--;
            return;
        }
    }
}

/* One curve: the rows with this name. */
static bool take_curve(struct results *results, const struct csv *csv, enum curve_kind kind,
                       const char *name, const int columns[3], struct err *err)
{
    if (!results_room(&results->curves, results->n_curves, &results->curves_room,
                      sizeof *results->curves, err))
        return false;
    struct result_curve *curve = &results->curves[results->n_curves];
    *curve = (struct result_curve){ .kind = kind, .name = strdup(name) };
    curve->x = malloc(2 * (csv->n_rows + 1) * sizeof *curve->x);
    results->n_curves++;
    if (!curve->name || !curve->x)
        return err_memory(err, csv->path);
    curve->y = curve->x + csv->n_rows;
    for (size_t row = 0; row < csv->n_rows; row++) {
        double x = number_of(csv_cell(csv, row, columns[1]));
        double y = number_of(csv_cell(csv, row, columns[2]));
        if (strcmp(csv_cell(csv, row, columns[0]), name) != 0 || !isfinite(x) || !isfinite(y))
            continue;
        curve->x[curve->n] = x;
        curve->y[curve->n++] = y;
    }
    drop_repeated(results);
    return true;
}

static bool take_curves(struct results *results, const struct csv *csv, enum curve_kind kind,
                        const int columns[3], struct err *err)
{
    const char *last = NULL;
    if (csv->n_rows > MOST_CURVE_POINTS)
        return results_problem(results, "a table of curves has too many points", err);
    for (size_t row = 0; row < csv->n_rows; row++) {
        const char *name = csv_cell(csv, row, columns[0]); /* rows of a curve are adjacent */
        if (last && strcmp(name, last) == 0)
            continue;
        if (!take_curve(results, csv, kind, name, columns, err))
            return false;
        last = name;
    }
    return true;
}

/* The first line, to decide which tables to read in full. */
static bool first_line(const char *path, char line[MOST_LINE])
{
    FILE *stream = fopen(path, "r");
    bool ok = stream && fgets(line, MOST_LINE, stream);
    if (stream)
        fclose(stream);
    return ok;
}

/* Does a header name this column? */
static bool names_column(const char *header, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = header; (at = strstr(at, name)); at += length) {
        bool begins = at == header || strchr(",\"\xBF", at[-1]); /* BF ends a byte-order mark */
        if (begins && strchr(",\"\r\n", at[length]))
            return true;
    }
    return false;
}

static bool take_known_table(struct results *results, const struct csv *csv, struct err *err)
{
    static const char *const axes[CURVE_KINDS][2] = {
        [CURVE_ROC] = { "false_positive_rate", "true_positive_rate" },
        [CURVE_FROC] = { "false_positives_per_slide", "sensitivity" },
        [CURVE_PRECISION] = { "recall", "precision" },
        [CURVE_CALIBRATION] = { "mean_score", "share_positive" },
    };
    for (int kind = 0; kind < CURVE_KINDS; kind++) {
        int columns[3] = { csv_column(csv, "curve"), csv_column(csv, axes[kind][0]),
                           csv_column(csv, axes[kind][1]) };
        if (columns[0] >= 0 && columns[1] >= 0 && columns[2] >= 0)
            return take_curves(results, csv, (enum curve_kind)kind, columns, err);
    }
    if (csv_column(csv, "slide") >= 0 && csv_column(csv, "state") >= 0 &&
        csv_column(csv, "name") >= 0)
        return take_states(results, csv, err);
    if (csv_column(csv, "slide") >= 0 &&
        (csv_column(csv, "score") >= 0 || csv_column(csv, "label") >= 0 ||
         csv_column(csv, results->label_column) >= 0))
        return take_slides(results, csv, err);
    return true;
}

bool results_take_table(struct results *results, const char *path, struct err *err)
{
    char header[MOST_LINE];
    if (!first_line(path, header))
        return true;
    bool lesions =
        names_column(header, "score") && names_column(header, "x") && names_column(header, "y");
    if (lesions)
        return take_lesions(results, path, err);
    if (strncmp(header, "truth,", 6) == 0)
        return results_take_confusion(results, path, err);
    if (!names_column(header, "slide") && !names_column(header, "curve"))
        return true;
    struct csv csv = { 0 };
    struct err why = { 0 };
    if (!csv_read(path, &csv, &why))
        return results_problem(results, why.text, err);
    bool ok = take_known_table(results, &csv, err);
    csv_free(&csv);
    return ok;
}
