/* checkpoint.c: see checkpoint.h. */
#include "train/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* zlib takes at most 32 bits of length at a time. */
static uint32_t crc_of(uint32_t crc, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    while (size > 0) {
        uInt part = size > (1u << 30) ? 1u << 30 : (uInt)size;
        crc = (uint32_t)crc32(crc, bytes, part);
        bytes += part, size -= part;
    }
    return crc;
}

static uint32_t crc_add(uint32_t crc, const char *name, const void *data, int64_t count)
{
    crc = crc_of(crc, name, strlen(name) + 1);
    return crc_of(crc, data, (size_t)count * sizeof(float));
}

static int by_name(const void *a, const void *b)
{
    const struct safetensors_source *x = a, *y = b;
    return strcmp(x->name, y->name);
}

bool checkpoint_write(const char *path, const struct state_array *arrays, size_t n,
                      const char *state, struct err *err)
{
    struct safetensors_source *tensors = calloc(n + 1, sizeof *tensors);
    if (!tensors)
        return err_memory(err, "a checkpoint");
    size_t used = 0;
    for (size_t i = 0; i < n; i++)
        if (arrays[i].count > 0)
            tensors[used++] = (struct safetensors_source){ .name = arrays[i].name,
                                                           .shape = SHAPE(arrays[i].count),
                                                           .data = arrays[i].data };
    qsort(tensors, used, sizeof *tensors, by_name);
    uint32_t crc = crc_of(0, state, strlen(state));
    for (size_t i = 0; i < used; i++)
        crc = crc_add(crc, tensors[i].name, tensors[i].data, tensors[i].shape.dim[0]);
    char text[16];
    snprintf(text, sizeof text, "%08x", crc);
    struct safetensors_note notes[] = { { "state", state }, { "crc32", text } };
    bool ok = safetensors_write(path, tensors, used, notes, 2, err);
    free(tensors);
    return ok;
}

static bool check_crc(const struct checkpoint *checkpoint, struct err *err)
{
    const struct safetensors *file = &checkpoint->file;
    const char *text = safetensors_metadata(file, "crc32");
    if (!text || !checkpoint->state)
        return err_set(err, ERR_FORMAT, "%s: not a training checkpoint", file->path);
    struct safetensors_source *tensors = calloc(file->n_tensors + 1, sizeof *tensors);
    if (!tensors)
        return err_memory(err, file->path);
    bool ok = true;
    for (size_t i = 0; i < file->n_tensors; i++) {
        tensors[i] = (struct safetensors_source){ .name = file->tensors[i].name,
                                                  .shape = SHAPE(file->tensors[i].count),
                                                  .data = (const void *)file->tensors[i].data };
        ok = ok && strcmp(safetensors_type_name(&file->tensors[i]), "F32") == 0;
    }
    qsort(tensors, file->n_tensors, sizeof *tensors, by_name);
    uint32_t crc = crc_of(0, checkpoint->state, strlen(checkpoint->state));
    for (size_t i = 0; ok && i < file->n_tensors; i++)
        crc = crc_add(crc, tensors[i].name, tensors[i].data, tensors[i].shape.dim[0]);
    free(tensors);
    if (ok && strtoul(text, NULL, 16) == crc)
        return true;
    return err_set(err, ERR_FORMAT, "%s: damaged: the checksum does not match", file->path);
}

bool checkpoint_open(const char *path, struct checkpoint *out, struct err *err)
{
    *out = (struct checkpoint){ 0 };
    if (!safetensors_open(path, &out->file, err))
        return false;
    out->state = safetensors_metadata(&out->file, "state");
    if (check_crc(out, err))
        return true;
    checkpoint_close(out);
    return false;
}

void checkpoint_close(struct checkpoint *checkpoint)
{
    safetensors_close(&checkpoint->file);
    *checkpoint = (struct checkpoint){ 0 };
}

bool checkpoint_load(const struct checkpoint *checkpoint, const struct state_array *arrays,
                     size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct safetensors_tensor *tensor =
            safetensors_find(&checkpoint->file, arrays[i].name);
        if (arrays[i].count > 0 && (!tensor || tensor->count != arrays[i].count))
            return err_set(err, ERR_FORMAT,
                           "%s: '%s' %s; the checkpoint belongs to another network or config",
                           checkpoint->file.path, arrays[i].name,
                           tensor ? "has a different size" : "is missing");
    }
    for (size_t i = 0; i < n; i++)
        if (arrays[i].count > 0)
            memcpy(arrays[i].data, safetensors_find(&checkpoint->file, arrays[i].name)->data,
                   (size_t)arrays[i].count * sizeof(float));
    return true;
}
