/* weights_names.c: see weights_names.h. */
#include "net/model/weights_names.h"

#include <stdlib.h>
#include <string.h>
#include "base/text.h"

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Takes over `name`, which may be NULL (no memory). */
static bool set_name(struct safetensors *file, size_t i, char *name, struct err *err)
{
    void **larger = name ? reallocarray(file->owned, file->n_owned + 1, sizeof *larger) : NULL;
    if (!larger) {
        free(name);
        return err_memory(err, file->path);
    }
    file->owned = larger;
    file->owned[file->n_owned++] = name;
    file->tensors[i].name = name;
    return true;
}

/* A stage of the older files ends with what halves the map; ours begins with it. */
static bool rename_swin(struct safetensors *file, struct err *err)
{
    static const char between[] = ".downsample.";
    if (!safetensors_find(file, "layers.0.downsample.reduction.weight"))
        return true;
    for (size_t i = 0; i < file->n_tensors; i++) {
        const char *name = file->tensors[i].name;
        char *end = NULL;
        long stage = begins_with(name, "layers.") ? strtol(name + 7, &end, 10) : 0;
        bool ok = true;
        if (end && stage >= 0 && stage < 8 && begins_with(end, between))
            ok = set_name(file, i, text_format("layers.%ld%s", stage + 1, end), err);
        else if (strcmp(name, "head.weight") == 0 || strcmp(name, "head.bias") == 0)
            ok = set_name(file, i, text_format("head.fc%s", name + 4), err);
        if (!ok)
            return false;
    }
    safetensors_sort(file);
    return true;
}

/* timm's linear layers are convolutions of the whole 7 x 7 map: the same numbers in the same order.
 */
static bool rename_vgg(struct safetensors *file, struct err *err)
{
    static const char *const names[][2] = { { "pre_logits.fc1.", "classifier.0." },
                                            { "pre_logits.fc2.", "classifier.3." },
                                            { "head.fc.", "classifier.6." } };
    if (!safetensors_find(file, "pre_logits.fc1.weight"))
        return true;
    for (size_t i = 0; i < file->n_tensors; i++)
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
            struct shape *shape = &file->tensors[i].shape;
            const char *name = file->tensors[i].name;
            if (!begins_with(name, names[k][0]))
                continue;
            if (!set_name(file, i, text_format("%s%s", names[k][1], name + strlen(names[k][0])),
                          err))
                return false;
            if (shape->rank == 4)
                *shape = SHAPE(shape->dim[0], shape_span(shape, 1, 4));
            break;
        }
    safetensors_sort(file);
    return true;
}

bool weights_rename(struct safetensors *file, const char *network, struct err *err)
{
    if (begins_with(network, "swin_") || strcmp(network, "ctranspath") == 0)
        return rename_swin(file, err);
    if (strcmp(network, "vgg16") == 0 || strcmp(network, "vgg16_bn") == 0)
        return rename_vgg(file, err);
    return true;
}
