/* dataset_labels.c: label images, which lie beside their images (dataset.h, dataset_origin.h). */
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/text.h"
#include "train/dataset_origin.h"

#define MARK "_labels"

bool label_image_is(const char *name)
{
    const char *extension = file_extension(name);
    size_t stem = strlen(name) - strlen(extension), mark = strlen(MARK);
    return stem > mark && strncmp(name + stem - mark, MARK, mark) == 0;
}

char *label_image_of(const char *path, struct err *err)
{
    static const char *const endings[] = { ".png", ".npy" };
    int stem = (int)(strlen(path) - strlen(file_extension(path)));
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        char *labels = text_format("%.*s" MARK "%s", stem, path, endings[i]);
        if (!labels) {
            err_memory(err, path);
            return NULL;
        }
        if (file_exists(labels))
            return labels;
        free(labels);
    }
    err_set(err, ERR_MISSING,
            "%s: has no label image; objective segment needs %.*s" MARK ".png or .npy beside it",
            path, stem, path);
    return NULL;
}

bool dataset_read_labels(const struct dataset *dataset, int64_t sample, struct label_image *out,
                         struct err *err)
{
    char *path = dataset_sample_name(dataset, sample); /* of an image in a folder: its path */
    char *labels = path ? label_image_of(path, err) : NULL;
    bool ok = path ? labels && label_image_read(labels, out, err) : err_memory(err, "labels");
    free(path);
    free(labels);
    return ok;
}
