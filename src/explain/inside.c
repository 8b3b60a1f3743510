/* inside.c: see inside.h. */
#include "explain/inside.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "nuclei/labels_in.h"

struct inside {
    char *path;
    bool folder;
    pthread_mutex_t lock; /* of what follows */
    char *name;           /* of the open one; NULL: none */
    struct nuclei_source *source;
};

bool inside_new(const char *path, struct inside **out, struct err *err)
{
    bool folder = file_is_folder(path);
    if (!folder && !file_exists(path))
        return err_set(err, ERR_IO, "%s: there is no such file or folder", path);
    struct inside *inside = calloc(1, sizeof *inside);
    if (!inside || !(inside->path = strdup(path))) {
        free(inside);
        return err_memory(err, path);
    }
    inside->folder = folder;
    pthread_mutex_init(&inside->lock, NULL);
    *out = inside;
    return true;
}

void inside_free(struct inside *inside)
{
    if (!inside)
        return;
    nuclei_source_free(inside->source);
    pthread_mutex_destroy(&inside->lock);
    free(inside->name);
    free(inside->path);
    free(inside);
}

static bool open_source(struct inside *inside, const char *name, struct err *err)
{
    const struct nuclei_source_slide unknown = { 0 };
    if (inside->source && (!inside->folder || strcmp(inside->name, name) == 0))
        return true;
    nuclei_source_free(inside->source);
    free(inside->name);
    inside->source = NULL;
    inside->name = strdup(name);
    char *found = NULL;
    bool ok = (inside->name || err_memory(err, name)) &&
              (!inside->folder || nuclei_source_find(inside->path, name, &found, err)) &&
              nuclei_source_open(found ? found : inside->path, &unknown, &inside->source, err);
    free(found);
    return ok;
}

bool inside_mask(struct inside *inside, const struct inside_window *window, uint8_t *mask,
                 struct err *err)
{
    struct nuclei_labels labels = { 0 };
    pthread_mutex_lock(&inside->lock);
    bool ok = open_source(inside, window->name, err) &&
              nuclei_source_window(inside->source, window->x_l0, window->y_l0, window->step_l0,
                                   window->width, window->height, &labels, NULL, err);
    pthread_mutex_unlock(&inside->lock);
    for (int64_t i = 0; ok && i < window->width * window->height; i++)
        mask[i] = labels.labels[i] != 0;
    nuclei_labels_free(&labels);
    return ok;
}
