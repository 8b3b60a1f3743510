/* slide_columns.c: what a slide list says in columns that the user names (slide_list.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/csv.h"
#include "base/names.h"
#include "slide/slide_list.h"

static bool has_column(const struct slide_header *header, const char *column)
{
    for (size_t i = 0; i < header->n; i++)
        if (strcasecmp(header->columns[i], column) == 0)
            return true;
    return false;
}

bool slide_list_check_column(const struct slide_list *list, const char *option, const char *column,
                             struct err *err)
{
    if (!column[0])
        return err_set(err, ERR_USAGE, "%s: names no column", option);
    if (list->n_headers == 0)
        return err_set(err, ERR_USAGE,
                       "%s %s: needs a slide list (CSV) with that column instead of slides", option,
                       column);
    for (size_t i = 0; i < list->n_headers; i++) {
        const struct slide_header *header = &list->headers[i];
        const char *const *names = (const char *const *)header->columns;
        char there[400];
        if (has_column(header, column))
            continue;
        const char *near = names_nearest(column, names, header->n);
        return err_set(err, ERR_FORMAT, "%s: no column '%.100s' for %s (columns: %s)%s%s%s",
                       header->path, column, option,
                       names_join(names, header->n, there, sizeof there),
                       near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    return true;
}

static const char *known_value(const struct slide_entry *entry, const char *column)
{
    const struct {
        const char *column, *value;
    } known[] = {
        { "slide", entry->path },
        { "label", entry->label },
        { "annotation", entry->annotation },
        { "patient", entry->patient },
        { "node", entry->node },
        { "center", entry->center },
        { "split", entry->split },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcasecmp(column, known[i].column) == 0)
            return known[i].value;
    return NULL;
}

const char *slide_entry_value(const struct slide_entry *entry, const char *column)
{
    const char *value = known_value(entry, column);
    for (size_t i = 0; !value && i < entry->n_cells; i++)
        if (strcmp(entry->cells[i].column, column) == 0)
            value = entry->cells[i].value;
    for (size_t i = 0; !value && i < entry->n_cells; i++)
        if (strcasecmp(entry->cells[i].column, column) == 0)
            value = entry->cells[i].value;
    return value ? value : "";
}

bool slide_entry_number(const struct slide_entry *entry, const char *column, double *out,
                        bool *given, struct err *err)
{
    const char *cell = slide_entry_value(entry, column);
    char *end = NULL;
    *out = NAN;
    if (strcasecmp(column, "mpp") == 0) {
        *given = entry->mpp > 0;
        *out = *given ? entry->mpp : NAN;
        return true;
    }
    *given = cell[0] != 0;
    if (!*given)
        return true;
    *out = strtod(cell, &end);
    end += strspn(end, " ");
    if (end == cell || *end || !isfinite(*out))
        return err_set(err, ERR_FORMAT, "%s: column '%s': '%.60s' %s", entry->origin, column, cell,
                       csv_no_number(cell, "is not a number"));
    return true;
}

bool slide_list_label_by(struct slide_list *list, const char *column, struct err *err)
{
    if (!column)
        return true;
    if (!slide_list_check_column(list, "--label-column", column, err))
        return false;
    for (size_t i = 0; i < list->n; i++) {
        char *label = strdup(slide_entry_value(&list->entries[i], column));
        if (!label)
            return err_memory(err, "a slide list");
        free(list->entries[i].label);
        list->entries[i].label = label;
    }
    return true;
}
