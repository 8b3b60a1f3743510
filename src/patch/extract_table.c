/* extract_table.c: what the slide list says of a slide, beyond the columns that every command
 * knows, on its way into a store: other columns, a number to be learnt, survival (extract.h). */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "base/text.h"
#include "patch/extract.h"

#define MOST_TABLE_BYTES 60000 /* an attribute of HDF5 has room for 64 KB */

bool extract_survival_columns(const char *text, struct extract_options *options, struct err *err)
{
    options->survival_time[0] = options->survival_event[0] = 0;
    if (!text)
        return true;
    const char *comma = strchr(text, ',');
    size_t first = comma ? (size_t)(comma - text) : 0, second = comma ? strlen(comma + 1) : 0;
    if (first == 0 || second == 0 || strchr(comma + 1, ',') || first >= CLASS_NAME ||
        second >= CLASS_NAME)
        return err_set(err, ERR_USAGE,
                       "--survival: '%.100s' is not two columns of the slide list, TIME,EVENT",
                       text);
    memcpy(options->survival_time, text, first);
    options->survival_time[first] = 0;
    memcpy(options->survival_event, comma + 1, second + 1);
    return true;
}

/* A slide's survival; *given: false if both cells are empty. */
static bool survival_of(const struct slide_entry *entry, const struct extract_options *options,
                        double *time, double *event, bool *given, struct err *err)
{
    bool has_event = false;
    const char *times = options->survival_time, *events = options->survival_event;
    if (!slide_entry_number(entry, times, time, given, err) ||
        !slide_entry_number(entry, events, event, &has_event, err))
        return false;
    if (*given != has_event)
        return err_set(err, ERR_FORMAT,
                       "%s: column '%s' is empty, but '%s' is not; --survival needs both or none",
                       entry->origin, *given ? events : times, *given ? times : events);
    if (*given && *time < 0)
        return err_set(err, ERR_FORMAT, "%s: column '%s': %g is a time below 0", entry->origin,
                       times, *time);
    if (*given && *event != 0 && *event != 1)
        return err_set(err, ERR_FORMAT,
                       "%s: column '%s': %g is neither 1 (the event happened) nor 0 (censored)",
                       entry->origin, events, *event);
    return true;
}

static bool check_survival(const struct slide_list *slides, const struct extract_options *options,
                           struct err *err)
{
    size_t known = 0;
    if (!slide_list_check_column(slides, "--survival", options->survival_time, err) ||
        !slide_list_check_column(slides, "--survival", options->survival_event, err))
        return false;
    for (size_t i = 0; i < slides->n; i++) {
        double time, event;
        bool given;
        if (!survival_of(&slides->entries[i], options, &time, &event, &given, err))
            return false;
        known += given;
    }
    return known > 0 || err_set(err, ERR_FORMAT, "--survival %s,%s: the columns are empty",
                                options->survival_time, options->survival_event);
}

static bool check_target(const struct slide_list *slides, const struct extract_options *options,
                         struct err *err)
{
    const char *column = options->target.name;
    size_t known = 0;
    if (!slide_list_check_column(slides, "--target", column, err))
        return false;
    for (size_t i = 0; i < slides->n; i++) {
        double value;
        bool given;
        if (!slide_entry_number(&slides->entries[i], column, &value, &given, err))
            return false;
        known += given;
    }
    return known > 0 ||
           err_set(err, ERR_FORMAT, "--target %s: the column is empty", options->target.text);
}

bool extract_check_columns(const struct slide_list *slides, const struct extract_options *options,
                           struct err *err)
{
    return (!options->survival_time[0] || check_survival(slides, options, err)) &&
           (options->target.kind != TARGET_COLUMN || check_target(slides, options, err));
}

char *extract_table(const struct slide_entry *entry, struct err *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (stream && entry->n_cells > 0) {
        struct json_out json;
        json_out_begin(&json, stream);
        json_out_object_line(&json, NULL);
        for (size_t i = 0; i < entry->n_cells; i++)
            json_out_text(&json, entry->cells[i].column, entry->cells[i].value);
        json_out_close_object(&json);
    }
    if (!stream || fclose(stream) != 0) {
        free(text);
        err_memory(err, entry->name);
        return NULL;
    }
    if (size <= MOST_TABLE_BYTES)
        return text;
    free(text);
    err_set(err, ERR_FORMAT,
            "%s: the other columns of this slide have %zu bytes, and a store has room for %d; "
            "remove some columns from the slide list",
            entry->origin, size, MOST_TABLE_BYTES);
    return NULL;
}

bool extract_slide_target(const struct slide_entry *entry, const struct extract_options *options,
                          float *out, struct err *err)
{
    double value = NAN;
    bool given = true;
    if (options->target.kind == TARGET_COLUMN &&
        !slide_entry_number(entry, options->target.name, &value, &given, err))
        return false;
    *out = (float)value;
    return given ||
           err_set(err, ERR_MISSING, "%s: column '%s' is empty; --target %s needs a number",
                   entry->origin, options->target.name, options->target.text);
}

bool extract_survival(const struct slide_entry *entry, const struct extract_options *options,
                      struct store_facts *out, struct err *err)
{
    double event = NAN;
    bool given = false;
    out->survival_time = NAN;
    out->survival_event = -1;
    if (!options->survival_time[0])
        return true;
    if (!survival_of(entry, options, &out->survival_time, &event, &given, err))
        return false;
    if (given)
        out->survival_event = (int64_t)event;
    return true;
}

const char *extract_other_cell(const struct slide_entry *entry,
                               const struct extract_options *options,
                               const struct store_facts *facts, bool *stale)
{
    const char *used[] = { options->target.kind == TARGET_COLUMN ? options->target.name : NULL,
                           options->survival_time, options->survival_event };
    const char *other = NULL;
    json_t *then = json_loads(facts->slide_table, 0, NULL);
    *stale = false;
    for (size_t i = 0; i < entry->n_cells; i++) {
        const struct slide_cell *cell = &entry->cells[i];
        const char *value = json_string_value(json_object_get(then, cell->column));
        if (value && strcmp(value, cell->value) == 0)
            continue;
        *stale = true;
        for (size_t k = 0; k < sizeof used / sizeof *used; k++)
            if (used[k] && used[k][0] &&
                slide_entry_value(entry, used[k]) == cell->value) /* this very cell */
                other = used[k];
    }
    json_decref(then);
    return other;
}
