/* slide_list_write.c: a slide list saved with the results made from it (slide_list.h). */
#include <stdlib.h>
#include <string.h>
#include "base/csv.h"
#include "base/file.h"
#include "slide/slide_list.h"

#define MAX_LIST_BYTES ((size_t)1 << 30)

/* The names of all other columns, in the order in which they come; the caller's, NULL at the end.
 */
static const char **other_columns(const struct slide_list *list)
{
    size_t most = 0, n = 0;
    for (size_t i = 0; i < list->n; i++)
        most += list->entries[i].n_cells;
    const char **names = calloc(most + 1, sizeof *names);
    for (size_t i = 0; names && i < list->n; i++)
        for (size_t k = 0; k < list->entries[i].n_cells; k++) {
            const char *name = list->entries[i].cells[k].column;
            size_t at = 0;
            while (at < n && strcmp(names[at], name) != 0)
                at++;
            if (at == n)
                names[n++] = name;
        }
    return names;
}

static const char *cell_of(const struct slide_entry *entry, const char *column)
{
    for (size_t i = 0; i < entry->n_cells; i++)
        if (strcmp(entry->cells[i].column, column) == 0)
            return entry->cells[i].value;
    return "";
}

bool slide_list_save(const struct slide_list *list, const char *path, struct err *err)
{
    struct file_out out;
    const char **others = other_columns(list);
    if (!others)
        return err_memory(err, path);
    if (!file_out_open(&out, path, err)) {
        free(others);
        return false;
    }
    fputs("slide,mpp,label,annotation,patient,node,center,split", out.stream);
    for (size_t k = 0; others[k]; k++) {
        fputc(',', out.stream);
        csv_write_cell(out.stream, others[k]);
    }
    fputc('\n', out.stream);
    for (size_t i = 0; i < list->n; i++) {
        const struct slide_entry *entry = &list->entries[i];
        const char *const texts[] = { entry->label, entry->annotation, entry->patient,
                                      entry->node,  entry->center,     entry->split };
        csv_write_cell(out.stream, entry->path);
        fputc(',', out.stream);
        if (entry->mpp > 0)
            fprintf(out.stream, "%.17g", entry->mpp);
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
            fputc(',', out.stream);
            csv_write_cell(out.stream, texts[k]);
        }
        for (size_t k = 0; others[k]; k++) {
            fputc(',', out.stream);
            csv_write_cell(out.stream, cell_of(entry, others[k]));
        }
        fputc('\n', out.stream);
    }
    free(others);
    return file_out_commit(&out, err);
}

bool slide_list_load(const char *path, struct slide_list *out, struct err *err)
{
    char *text = NULL;
    size_t size = 0;
    *out = (struct slide_list){ 0 };
    bool ok = file_read(path, MAX_LIST_BYTES, &text, &size, err) &&
              slide_list_parse(text, size, "slides.csv", out, err); /* no folder: as they are */
    free(text);
    return ok;
}
