/* safetensors_write.c: writing; the header is composed in memory, the tensors go straight to the
 * file. */
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/json.h"
#include "net/model/safetensors.h"

static void describe(struct json_out *json, const char *name, const char *type,
                     const struct shape *shape, int64_t begin, int64_t end)
{
    json_out_object_line(json, name);
    json_out_text(json, "dtype", type);
    json_out_array_line(json, "shape");
    for (int i = 0; i < shape->rank; i++)
        json_out_int(json, NULL, shape->dim[i]);
    json_out_close_array(json);
    json_out_array_line(json, "data_offsets");
    json_out_int(json, NULL, begin);
    json_out_int(json, NULL, end);
    json_out_close_array(json);
    json_out_close_object(json);
}

/* The header's JSON, the caller's (free); NULL if no memory. */
static char *compose(const struct safetensors_source *tensors, size_t n,
                     const struct safetensors_note *notes, size_t n_notes)
{
    char *text = NULL;
    size_t size;
    struct json_out json;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return NULL;
    json_out_begin(&json, stream);
    json_out_object_line(&json, NULL);
    json_out_object_line(&json, "__metadata__");
    json_out_text(&json, "format", "pt");
    for (size_t i = 0; i < n_notes; i++)
        json_out_text(&json, notes[i].key, notes[i].value);
    json_out_close_object(&json);
    int64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t end = at + shape_count(&tensors[i].shape) * (int64_t)sizeof(float);
        describe(&json, tensors[i].name, "F32", &tensors[i].shape, at, end);
        at = end;
    }
    json_out_close_object(&json);
    bool ok = !ferror(stream);
    if (fclose(stream) == 0 && ok)
        return text;
    free(text);
    return NULL;
}

static void write_header(FILE *stream, const char *header)
{
    size_t length = strlen(header), padded = (length + 7) / 8 * 8;
    for (int i = 0; i < 8; i++)
        fputc((int)((uint64_t)padded >> 8 * i & 255), stream);
    fprintf(stream, "%s%*s", header, (int)(padded - length), "");
}

/* On failure errno has the reason. */
static bool write_all(FILE *stream, const char *header, const struct safetensors_source *tensors,
                      size_t n)
{
    write_header(stream, header);
    for (size_t i = 0; i < n; i++) {
        size_t count = (size_t)shape_count(&tensors[i].shape);
        if (fwrite(tensors[i].data, sizeof(float), count, stream) != count)
            return false;
    }
    return fflush(stream) == 0;
}

bool safetensors_write(const char *path, const struct safetensors_source *tensors, size_t n,
                       const struct safetensors_note *notes, size_t n_notes, struct err *err)
{
    char *header = compose(tensors, n, notes, n_notes);
    if (!header)
        return err_memory(err, path);
    struct file_out out;
    bool ok = file_out_open(&out, path, err);
    if (ok && !write_all(out.stream, header, tensors, n)) {
        ok = err_errno(err, path, "write");
        file_out_discard(&out);
    }
    ok = ok && file_out_commit(&out, err);
    free(header);
    return ok;
}

static int64_t bytes_of(const struct safetensors_tensor *tensor)
{
    return tensor->count * (int64_t)safetensors_type_bytes(tensor->type);
}

/* As compose, of tensors that were read. */
static char *compose_copy(const struct safetensors *file)
{
    char *text = NULL;
    size_t size;
    struct json_out json;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return NULL;
    json_out_begin(&json, stream);
    json_out_object_line(&json, NULL);
    json_out_object_line(&json, "__metadata__");
    json_out_text(&json, "format", "pt");
    json_out_close_object(&json);
    int64_t at = 0;
    for (size_t i = 0; i < file->n_tensors; i++) {
        const struct safetensors_tensor *tensor = &file->tensors[i];
        describe(&json, tensor->name, safetensors_type_name(tensor), &tensor->shape, at,
                 at + bytes_of(tensor));
        at += bytes_of(tensor);
    }
    json_out_close_object(&json);
    bool ok = !ferror(stream);
    if (fclose(stream) == 0 && ok)
        return text;
    free(text);
    return NULL;
}

bool safetensors_copy(const struct safetensors *file, const char *path, struct err *err)
{
    struct file_out out;
    char *header = compose_copy(file);
    bool ok = header ? file_out_open(&out, path, err) : err_memory(err, path);
    if (ok) {
        write_header(out.stream, header);
        for (size_t i = 0; ok && i < file->n_tensors; i++) {
            size_t bytes = (size_t)bytes_of(&file->tensors[i]);
            ok = bytes == 0 || fwrite(file->tensors[i].data, 1, bytes, out.stream) == bytes;
        }
        if (!ok || fflush(out.stream) != 0) {
            ok = err_errno(err, path, "write");
            file_out_discard(&out);
        }
    }
    ok = ok && file_out_commit(&out, err);
    free(header);
    return ok;
}
