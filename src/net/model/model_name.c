/* model_name.c: see model_name.h. */
#include "net/model/model_name.h"

#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/text.h"

/* The last part of a path as it is on disk, without "." and "..". */
static char *last_part(const char *path)
{
    char *real = realpath(path, NULL);
    const char *slash = real ? strrchr(real, '/') : NULL;
    char *part = slash && slash[1] ? strdup(slash + 1) : strdup(path);
    free(real);
    return part;
}

/* "runs/run1" and "runs/run1/model.onnx" -> "run1", "nets/a.onnx" -> "a". */
static char *name_of_file(const char *path)
{
    if (file_is_folder(path))
        return last_part(path);
    char *stem = file_stem(path);
    if (!stem || strcmp(stem, "model") != 0)
        return stem;
    const char *slash = strrchr(path, '/');
    char *folder = slash ? text_format("%.*s/", (int)(slash - path), path) : strdup(".");
    char *name = folder ? last_part(folder) : NULL;
    free(stem), free(folder);
    return name;
}

char *model_full_name(const struct model_source *source, const struct model *model)
{
    const char *file = source->file ? source->file : source->weights;
    const char *network = source->file ? model->config.network : source->network;
    if (!file)
        return strdup(model->name);
    char *name = name_of_file(file);
    if (!name || !network)
        return name;
    char *full = text_format("%s (%s)", name, network);
    free(name);
    return full;
}
