/* weights_names.c: see weights_names.h. */
#include "net/model/weights_names.h"

#include <stdio.h>
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

/* Its extent of an axis; 0: there is no such tensor. */
static int64_t extent_of(const struct safetensors *file, const char *name, int axis)
{
    const struct safetensors_tensor *tensor = safetensors_find(file, name);
    return tensor && axis < tensor->shape.rank ? tensor->shape.dim[axis] : 0;
}

void weights_settings(const struct safetensors *file, const char *network,
                      struct zoo_options *options)
{
    int64_t patch = extent_of(file, "patch_embed.proj.weight", 3);
    int64_t hidden = extent_of(file, "blocks.0.mlp.fc1.weight", 0);
    int64_t read = extent_of(file, "blocks.0.mlp.fc2.weight", 1), depth = 0;
    if (!begins_with(network, "vit_") || patch < 1 || hidden < 1 || read < 1)
        return;
    char name[64] = "blocks.0.norm1.weight";
    while (depth < 1000 && safetensors_find(file, name))
        snprintf(name, sizeof name, "blocks.%d.norm1.weight", (int)++depth);
    options->depth = depth;
    options->vit = (struct zoo_vit_parts){
        .known = true,
        .patch = patch,
        .gated = hidden == 2 * read ? read : 0,
        .registers = extent_of(file, "reg_token", 1),
        .scaled = safetensors_find(file, "blocks.0.ls1.gamma") != NULL,
    };
}

/* Kept with the weights of some networks, and computed from the settings in others. */
static bool is_derived(const char *name)
{
    static const char *const ends[] = { "num_batches_tracked", "relative_position_index",
                                        "attn_mask", "mask_token" };
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t length = strlen(name), n = strlen(ends[i]);
        if (length >= n && strcmp(name + length - n, ends[i]) == 0)
            return true;
    }
    return false;
}

/* Whether the network has parameters in the module that the name begins with. */
static bool has_module(const struct graph *graph, const char *name)
{
    size_t length = strcspn(name, ".");
    for (int32_t i = 0; i < graph->n_values; i++)
        if (graph_is_parameter(graph, i) && strncmp(graph->values[i].name, name, length) == 0 &&
            graph->values[i].name[length] == '.')
            return true;
    return false;
}

bool weights_check_extra(const struct graph *graph, const struct safetensors *file,
                         const char *head, struct err *err)
{
    bool strict = begins_with(graph->name, "vit_");
    size_t length = strlen(head);
    for (size_t i = 0; i < file->n_tensors; i++) {
        const char *name = file->tensors[i].name;
        bool of_head = length > 0 && begins_with(name, head) && name[length] == '.';
        if (graph_find(graph, name) != NO_VALUE || is_derived(name) || of_head)
            continue;
        if (strict || has_module(graph, name))
            return err_set(err, ERR_FORMAT,
                           "%s: has '%.100s', which %s does not; these are weights of another "
                           "network",
                           file->path, name, graph->name);
    }
    return true;
}
