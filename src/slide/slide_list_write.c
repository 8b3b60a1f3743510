/* slide_list_write.c: a slide list saved with the results made from it (slide_list.h). */
#include <stdlib.h>
#include "base/csv.h"
#include "base/file.h"
#include "slide/slide_list.h"

#define MAX_LIST_BYTES ((size_t)1 << 30)

bool slide_list_save(const struct slide_list *list, const char *path, struct err *err)
{
    struct file_out out;
    if (!file_out_open(&out, path, err))
        return false;
    fputs("slide,mpp,label,annotation,patient,node,center,split\n", out.stream);
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
        fputc('\n', out.stream);
    }
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
