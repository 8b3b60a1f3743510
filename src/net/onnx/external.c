/* external.c: see external.h. Paths come from untrusted files: they are walked folder by folder,
 * without following links. */
#include "net/onnx/external.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_FILES 4096

struct mapped {
    const char *location; /* of the model */
    uint8_t *bytes;       /* NULL if the file is empty */
    uint64_t size, used;  /* used: bytes of the ranges so far */
};

struct onnx_external {
    Onnx__GraphProto *graph;
    size_t n_attached; /* initializers from the first one that may point into a file */
    struct mapped *files;
    size_t n_files;
    int64_t bytes;
};

static bool is_external(const Onnx__TensorProto *tensor)
{
    return tensor->n_external_data ||
           tensor->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
}

static const char *entry(const Onnx__TensorProto *tensor, const char *key)
{
    for (size_t i = 0; i < tensor->n_external_data; i++) {
        const Onnx__StringStringEntryProto *pair = tensor->external_data[i];
        if (pair->key && pair->value && strcmp(pair->key, key) == 0)
            return pair->value;
    }
    return NULL;
}

static bool read_number(const char *text, uint64_t *out)
{
    *out = 0;
    for (const char *at = text; *at; at++)
        if (*at < '0' || *at > '9' || __builtin_mul_overflow(*out, (uint64_t)10, out) ||
            __builtin_add_overflow(*out, (uint64_t)(*at - '0'), out))
            return false;
    return *text != '\0';
}

/* Relative, and no part of it is empty, "." or "..". */
static bool is_below(const char *location)
{
    for (const char *at = location;; at++) {
        size_t length = strcspn(at, "/");
        if (length == 0 || length > 255 || (length == 1 && at[0] == '.') ||
            (length == 2 && at[0] == '.' && at[1] == '.'))
            return false;
        at += length;
        if (!*at)
            return true;
    }
}

/* The folder of the model; -1 with errno. */
static int open_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = !slash          ? strdup(".")
                   : slash == path ? strdup("/")
                                   : strndup(path, (size_t)(slash - path));
    int fd = folder ? open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    free(folder);
    return fd;
}

/* The file at `location` below the folder of the model; -1 with errno (ELOOP, ENOTDIR: a link). */
static int open_below(const char *path, const char *location)
{
    int fd = open_folder(path);
    for (const char *at = location; fd >= 0;) {
        char part[256];
        size_t length = strcspn(at, "/");
        bool last = at[length] == '\0';
        memcpy(part, at, length);
        part[length] = '\0';
        int next =
            openat(fd, part,
                   O_NOFOLLOW | O_CLOEXEC | (last ? O_RDONLY | O_NONBLOCK : O_PATH | O_DIRECTORY));
        int why = errno;
        close(fd);
        errno = why;
        fd = next;
        if (last)
            break;
        at += length + 1;
    }
    return fd;
}

static bool map_file(const char *path, struct mapped *file, struct err *err)
{
    struct stat status;
    int fd = open_below(path, file->location);
    if (fd < 0 && errno == ELOOP)
        return err_set(err, ERR_FORMAT,
                       "%s: its weights are in '%.200s', which is a symbolic link; put the file "
                       "itself there",
                       path, file->location);
    if (fd < 0)
        return err_set(err, ERR_MISSING,
                       "%s: its weights are in '%.200s', which cannot be opened (%s); put that "
                       "file beside the model",
                       path, file->location, strerror(errno));
    bool ok = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    if (!ok) {
        err_set(err, ERR_FORMAT, "%s: its weights are in '%.200s', which is not a file", path,
                file->location);
    } else if (status.st_size > 0) {
        file->size = (uint64_t)status.st_size;
        void *map = mmap(NULL, (size_t)file->size, PROT_READ, MAP_PRIVATE, fd, 0);
        ok = map != MAP_FAILED || err_errno(err, file->location, "map");
        file->bytes = map == MAP_FAILED ? NULL : map;
    }
    close(fd);
    return ok;
}

/* The mapped file of this location; NULL with an error. */
static struct mapped *file_of(struct onnx_external *external, const char *path,
                              const char *location, struct err *err)
{
    for (size_t i = external->n_files; i-- > 0;)
        if (strcmp(external->files[i].location, location) == 0)
            return &external->files[i];
    if (external->n_files == MOST_FILES) {
        err_set(err, ERR_FORMAT, "%s: its weights are in more than %d files", path, MOST_FILES);
        return NULL;
    }
    struct mapped *larger =
        reallocarray(external->files, external->n_files + 1, sizeof *external->files);
    if (!larger) {
        err_memory(err, path);
        return NULL;
    }
    external->files = larger;
    struct mapped *file = &larger[external->n_files];
    *file = (struct mapped){ .location = location };
    if (!map_file(path, file, err))
        return NULL;
    external->n_files++;
    return file;
}

static bool attach(struct onnx_external *external, const char *path, Onnx__TensorProto *tensor,
                   struct err *err)
{
    const char *name = tensor->name ? tensor->name : "", *location = entry(tensor, "location");
    const char *offset_text = entry(tensor, "offset"), *length_text = entry(tensor, "length");
    uint64_t offset = 0, length = 0;
    if (!location || !is_below(location))
        return err_set(err, ERR_FORMAT,
                       "%s: the weights of '%.200s' are in '%.200s'; only files beside the model "
                       "are read",
                       path, name, location ? location : "");
    if (tensor->raw_data.len)
        return err_set(err, ERR_FORMAT, "%s: '%.200s' has weights inside and outside the file",
                       path, name);
    if ((offset_text && !read_number(offset_text, &offset)) ||
        (length_text && !read_number(length_text, &length)))
        return err_set(err, ERR_FORMAT, "%s: offset or length of '%.200s' is not a number", path,
                       name);
    struct mapped *file = file_of(external, path, location, err);
    if (!file)
        return false;
    if (!length_text && offset <= file->size)
        length = file->size - offset;
    if (offset > file->size || length > file->size - offset)
        return err_set(err, ERR_FORMAT,
                       "%s: '%.200s' is at bytes %llu to %llu of '%.200s', which has %llu; it is "
                       "truncated, or of another model",
                       path, name, (unsigned long long)offset,
                       (unsigned long long)offset + (unsigned long long)length, location,
                       (unsigned long long)file->size);
    if (length > file->size - file->used)
        return err_set(err, ERR_FORMAT, "%s: weights in '%.200s' overlap", path, location);
    file->used += length;
    external->bytes += (int64_t)length;
    if (length) {
        tensor->has_raw_data = true;
        tensor->raw_data = (ProtobufCBinaryData){ (size_t)length, file->bytes + offset };
    }
    return true;
}

bool onnx_external_open(Onnx__GraphProto *graph, const char *path, bool beside,
                        struct onnx_external **out, struct err *err)
{
    struct onnx_external *external = NULL;
    *out = NULL;
    for (size_t i = 0; i < graph->n_initializer; i++) {
        Onnx__TensorProto *tensor = graph->initializer[i];
        if (!is_external(tensor))
            continue;
        if (!beside)
            return err_set(err, ERR_FORMAT,
                           "%s: the weights are in another file ('%.200s'); save the model with "
                           "its weights inside",
                           path, tensor->name ? tensor->name : "");
        if (!external && !(external = calloc(1, sizeof *external)))
            return err_memory(err, path);
        external->graph = graph;
        if (!attach(external, path, tensor, err)) {
            onnx_external_close(external);
            return false;
        }
        external->n_attached = i + 1;
    }
    *out = external;
    return true;
}

int64_t onnx_external_bytes(const struct onnx_external *external)
{
    return external ? external->bytes : 0;
}

void onnx_external_release(const struct onnx_external *external, const Onnx__TensorProto *tensor)
{
    const uint8_t *data = tensor->raw_data.data, *end = data + tensor->raw_data.len;
    for (size_t i = 0; external && data && i < external->n_files; i++) {
        const struct mapped *file = &external->files[i];
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        if (!file->bytes || data < file->bytes || end > file->bytes + file->size)
            continue;
        size_t first = ((size_t)(data - file->bytes) + page - 1) / page * page;
        size_t last = (size_t)(end - file->bytes) / page * page;
        if (first < last)
            madvise(file->bytes + first, last - first, MADV_DONTNEED);
    }
}

void onnx_external_close(struct onnx_external *external)
{
    if (!external)
        return;
    for (size_t i = 0; i < external->n_attached; i++)
        if (is_external(external->graph->initializer[i]))
            external->graph->initializer[i]->raw_data = (ProtobufCBinaryData){ 0, NULL };
    for (size_t i = 0; i < external->n_files; i++)
        if (external->files[i].bytes)
            munmap(external->files[i].bytes, (size_t)external->files[i].size);
    free(external->files);
    free(external);
}
