/* lesions.c: see lesions.h. */
#include "verdict/lesions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/csv.h"
#include "base/file.h"

#define MOST_BYTES ((size_t)256 << 20)

bool lesions_add(struct lesion_list *list, struct lesion lesion, struct err *err)
{
    if (!array_grow(&list->items, &list->room, list->n + 1, sizeof lesion, "a list of lesions",
                    err))
        return false;
    list->items[list->n++] = lesion;
    return true;
}

void lesions_free(struct lesion_list *list)
{
    free(list->items);
    *list = (struct lesion_list){ 0 };
}

static bool number_of(const char *cell, double *value)
{
    char *end = NULL;
    *value = strtod(cell, &end);
    while (*end == ' ')
        end++;
    return end != cell && !*end && isfinite(*value);
}

/* cells [n_columns] of a row; columns: where score, x and y are. */
static bool add_row(const struct csv *csv, char *const *cells, const int columns[3], int line,
                    struct lesion_list *out, struct err *err)
{
    static const char *const names[3] = { "score", "x", "y" };
    double values[3];
    for (int i = 0; i < 3; i++)
        if (!number_of(cells[columns[i]], &values[i]))
            return err_set(err, ERR_FORMAT, "%s:%d: column %d (%s): '%.60s' %s", csv->path, line,
                           columns[i] + 1, names[i], cells[columns[i]],
                           csv_no_number(cells[columns[i]], "is not a finite number"));
    return lesions_add(out, (struct lesion){ values[0], values[1], values[2] }, err);
}

static bool read_rows(const struct csv *csv, struct lesion_list *out, struct err *err)
{
    int columns[3] = { csv_column(csv, "score"), csv_column(csv, "x"), csv_column(csv, "y") };
    double first = 0;
    if (csv->n_rows == 0 && csv->n_columns == 1 && !csv->names[0][0])
        return true; /* an empty file */
    bool bare = number_of(csv->names[0], &first);
    if (csv->n_columns < 3 || (!bare && (columns[0] < 0 || columns[1] < 0 || columns[2] < 0)))
        return err_set(err, ERR_FORMAT,
                       "%s:1: a lesion list needs the columns score, x and y (level-0 px)",
                       csv->path);
    for (int i = 0; bare && i < 3; i++)
        columns[i] = i;
    if (bare && !add_row(csv, csv->names, columns, 1, out, err))
        return false;
    for (size_t row = 0; row < csv->n_rows; row++)
        if (!add_row(csv, csv->cells + row * csv->n_columns, columns, csv->lines[row], out, err))
            return false;
    return true;
}

bool lesions_parse(const char *text, size_t size, const char *path, struct lesion_list *out,
                   struct err *err)
{
    struct csv csv;
    *out = (struct lesion_list){ 0 };
    if (!csv_parse(text, size, path, &csv, err))
        return false;
    bool ok = read_rows(&csv, out, err);
    csv_free(&csv);
    if (!ok)
        lesions_free(out);
    return ok;
}

bool lesions_read(const char *path, struct lesion_list *out, struct err *err)
{
    char *text = NULL;
    size_t size = 0;
    *out = (struct lesion_list){ 0 };
    if (!file_read(path, MOST_BYTES, &text, &size, err))
        return false;
    bool ok = lesions_parse(text, size, path, out, err);
    free(text);
    return ok;
}

/* The shortest text that reads back as the same float32: scores come from heatmaps. */
static void put_score(FILE *stream, double score)
{
    char text[32];
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, score);
        if (strtof(text, NULL) == (float)score)
            break;
    }
    fputs(text, stream);
}

bool lesions_write(const char *path, const struct lesion_list *list, struct err *err)
{
    struct file_out file;
    if (!file_out_open(&file, path, err))
        return false;
    fputs("score,x,y\n", file.stream);
    for (int64_t i = 0; i < list->n; i++) {
        put_score(file.stream, list->items[i].score);
        fprintf(file.stream, ",%.0f,%.0f\n", list->items[i].x_l0, list->items[i].y_l0);
    }
    return file_out_commit(&file, err);
}
