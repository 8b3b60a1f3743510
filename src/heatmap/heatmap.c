/* heatmap.c: see heatmap.h. The .npy is version 1.0 with a header of 128 bytes. */
#include "heatmap/heatmap.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/file.h"
#include "heatmap/heatmap_json.h"
#include "base/text.h"

#define NPY_HEADER 128
#define NPY_MAX_HEADER 4096

struct heatmap {
    struct heatmap_info info;
    char *path; /* of the .npy */
    int fd;
    int64_t offset; /* of the first float */
};

struct heatmap_writer {
    struct heatmap_info info;
    struct file_out npy;
    char *json_path;
    int64_t rows; /* written so far */
};

char *heatmap_column(const struct heatmap_info *info, int64_t class_index)
{
    return text_format("%s%s", heatmap_is_number(info) ? "" : "prob_",
                       info->class_names[class_index]);
}

bool heatmap_need_scores(const struct heatmap_info *info, const char *what, struct err *err)
{
    return !heatmap_is_number(info) ||
           err_set(err, ERR_USAGE,
                   "%s: its heatmap holds a number (%s), but %s needs the scores of a classifier",
                   info->slide, info->class_names[0], what);
}

void heatmap_list_classes(const struct heatmap_info *info, char *out, size_t room)
{
    *out = 0;
    for (size_t i = 0, at = 0; i < (size_t)info->n_classes && at < room; i++)
        at += (size_t)snprintf(out + at, room - at, "%s%s", i ? ", " : "", info->class_names[i]);
}

bool heatmap_find_class(const struct heatmap_info *info, const char *name, int64_t *out,
                        struct err *err)
{
    char names[300], *end = NULL;
    *out = heatmap_main_class(info);
    if (!name)
        return true;
    for (int64_t i = 0; i < info->n_classes; i++)
        if (strcmp(info->class_names[i], name) == 0) {
            *out = i;
            return true;
        }
    *out = strtoll(name, &end, 10);
    if (end != name && !*end && *out >= 0 && *out < info->n_classes)
        return true;
    heatmap_list_classes(info, names, sizeof names);
    return err_set(err, ERR_USAGE, "has no class '%.100s'; --class may be %s", name, names);
}

int64_t heatmap_winner(const float *scores, int64_t n_classes)
{
    int64_t best = 0;
    for (int64_t c = 1; c < n_classes; c++)
        best = scores[c] > scores[best] ? c : best;
    return best;
}

struct heatmap_cell heatmap_cell(const struct heatmap_info *info, int64_t column, int64_t row)
{
    double scale = info->downsample * (double)info->stride;
    int64_t x0 = llround((double)column * scale), x1 = llround((double)(column + 1) * scale);
    int64_t y0 = llround((double)row * scale), y1 = llround((double)(row + 1) * scale);
    x1 = x1 < info->width_l0 ? x1 : info->width_l0;
    y1 = y1 < info->height_l0 ? y1 : info->height_l0;
    return (struct heatmap_cell){ x0, y0, x1 > x0 ? x1 - x0 : 0, y1 > y0 ? y1 - y0 : 0 };
}

int64_t heatmap_rows_in(const struct heatmap_info *info, int64_t bytes)
{
    int64_t rows = bytes / (info->width * info->n_classes * (int64_t)sizeof(float));
    return rows < 1 ? 1 : rows < info->height ? rows : info->height;
}

static bool read_at(const struct heatmap *heatmap, void *out, int64_t bytes, int64_t offset,
                    struct err *err)
{
    char *at = out;
    while (bytes > 0) {
        ssize_t got = pread(heatmap->fd, at, (size_t)bytes, offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_errno(err, heatmap->path, "read");
        if (got == 0)
            return err_set(err, ERR_FORMAT, "%s: is truncated; predict the slide again",
                           heatmap->path);
        at += got, offset += got, bytes -= got;
    }
    return true;
}

bool heatmap_read_rows(const struct heatmap *heatmap, int64_t row, int64_t n, float *out,
                       struct err *err)
{
    const struct heatmap_info *info = &heatmap->info;
    int64_t row_bytes = info->width * info->n_classes * (int64_t)sizeof *out;
    if (row < 0 || n < 0 || row + n > info->height)
        return err_set(err, ERR_USAGE, "%s: has no row %lld", heatmap->path, (long long)(row + n));
    return read_at(heatmap, out, n * row_bytes, heatmap->offset + row * row_bytes, err);
}

/* The header of the .npy must say what the JSON says, and the file be as long as that. */
static bool check_npy(struct heatmap *heatmap, struct err *err)
{
    unsigned char start[10];
    char header[NPY_MAX_HEADER + 1];
    const struct heatmap_info *info = &heatmap->info;
    struct stat status;
    if (!read_at(heatmap, start, sizeof start, 0, err))
        return false;
    int64_t length = start[8] + 256 * start[9];
    if (memcmp(start, "\x93NUMPY\x01", 7) != 0 || length > NPY_MAX_HEADER)
        return err_set(err, ERR_FORMAT, "%s: not a .npy file of version 1", heatmap->path);
    if (!read_at(heatmap, header, length, sizeof start, err))
        return false;
    header[length] = 0;
    long long height = 0, width = 0, classes = 0;
    const char *shape = strstr(header, "'shape':");
    if (!strstr(header, "'descr': '<f4'") || !strstr(header, "'fortran_order': False") || !shape ||
        sscanf(shape + 8, " (%lld, %lld, %lld)", &height, &width, &classes) != 3)
        return err_set(err, ERR_FORMAT, "%s: not float32 [height, width, classes] in C order",
                       heatmap->path);
    if (height != info->height || width != info->width || classes != info->n_classes)
        return err_set(err, ERR_FORMAT,
                       "%s: is %lld x %lld x %lld, but its heatmap.json says %lld x %lld x %lld",
                       heatmap->path, height, width, classes, (long long)info->height,
                       (long long)info->width, (long long)info->n_classes);
    heatmap->offset = (int64_t)sizeof start + length;
    if (fstat(heatmap->fd, &status) != 0)
        return err_errno(err, heatmap->path, "read");
    double want = (double)height * (double)width * (double)classes * sizeof(float);
    if ((double)(status.st_size - heatmap->offset) < want)
        return err_set(err, ERR_FORMAT, "%s: is truncated; predict the slide again", heatmap->path);
    return true;
}

/* heatmap.npy and heatmap.json of what the user named. */
static bool name_files(const char *path, char **npy, char **json, struct err *err)
{
    const char *extension = file_extension(path);
    if (file_is_folder(path)) {
        *npy = text_format("%s/heatmap.npy", path);
        *json = text_format("%s/heatmap.json", path);
    } else {
        *npy = strdup(path);
        *json = text_format("%.*s.json", (int)(extension - path), path);
    }
    return (*npy && *json) || err_memory(err, path);
}

/* Takes what info owns, and npy. */
static bool open_scores(char *npy, struct heatmap_info *info, struct heatmap **out, struct err *err)
{
    struct heatmap *heatmap = calloc(1, sizeof *heatmap);
    bool ok = heatmap || err_memory(err, npy);
    if (ok) {
        *heatmap = (struct heatmap){ .info = *info, .path = npy };
        *info = (struct heatmap_info){ 0 };
        heatmap->fd = open(npy, O_RDONLY | O_CLOEXEC);
        ok = heatmap->fd >= 0 ? check_npy(heatmap, err) : err_errno(err, npy, "open");
    } else {
        free(npy);
    }
    if (ok)
        *out = heatmap;
    else
        heatmap_close(heatmap);
    return ok;
}

bool heatmap_open_scores(const char *folder, struct heatmap_info *info, struct heatmap **out,
                         struct err *err)
{
    char *npy = text_format("%s/heatmap.npy", folder);
    return npy ? open_scores(npy, info, out, err) : err_memory(err, folder);
}

bool heatmap_open(const char *path, struct heatmap **out, struct err *err)
{
    char *npy = NULL, *json = NULL;
    json_t *object = NULL;
    struct heatmap_info info = { 0 };
    bool ok = name_files(path, &npy, &json, err) && heatmap_json_load(json, &object, err) &&
              heatmap_json_get(object, json, &info, err);
    if (ok)
        ok = open_scores(npy, &info, out, err);
    else
        free(npy);
    heatmap_info_free(&info);
    json_decref(object);
    free(json);
    return ok;
}

void heatmap_close(struct heatmap *heatmap)
{
    if (!heatmap)
        return;
    if (heatmap->fd >= 0)
        close(heatmap->fd);
    heatmap_info_free(&heatmap->info);
    free(heatmap->path);
    free(heatmap);
}

const struct heatmap_info *heatmap_info(const struct heatmap *heatmap)
{
    return &heatmap->info;
}

static void write_header(FILE *stream, const struct heatmap_info *info)
{
    char header[NPY_HEADER + 1];
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = NPY_HEADER - 10;
    header[9] = 0;
    int length =
        snprintf(header + 10, NPY_HEADER - 10,
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (%lld, %lld, %lld), }",
                 (long long)info->height, (long long)info->width, (long long)info->n_classes);
    memset(header + 10 + length, ' ', (size_t)(NPY_HEADER - 10 - length));
    header[NPY_HEADER - 1] = '\n';
    fwrite(header, 1, NPY_HEADER, stream);
}

bool heatmap_create(const char *folder, const struct heatmap_info *info,
                    struct heatmap_writer **out, struct err *err)
{
    struct heatmap_writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return err_memory(err, folder);
    char *npy_path = text_format("%s/heatmap.npy", folder);
    writer->json_path = text_format("%s/heatmap.json", folder);
    bool ok = (npy_path && writer->json_path) || err_memory(err, folder);
    ok = ok && heatmap_info_copy(info, &writer->info, err) && file_make_folder(folder, err) &&
         file_out_open(&writer->npy, npy_path, err);
    free(npy_path);
    if (!ok) {
        heatmap_discard(writer);
        return false;
    }
    writer->info.scored = 0;
    write_header(writer->npy.stream, info);
    *out = writer;
    return true;
}

bool heatmap_write_rows(struct heatmap_writer *writer, const float *rows, int64_t n,
                        struct err *err)
{
    int64_t cells = n * writer->info.width, classes = writer->info.n_classes;
    if (writer->rows + n > writer->info.height)
        return err_set(err, ERR_USAGE, "%s: more rows than the heatmap has", writer->npy.path);
    for (int64_t i = 0; i < cells; i++)
        writer->info.scored += !isnan(rows[i * classes]);
    writer->rows += n;
    size_t count = (size_t)(cells * classes);
    if (fwrite(rows, sizeof *rows, count, writer->npy.stream) == count)
        return true;
    return err_errno(err, writer->npy.path, "write");
}

static bool write_json(const struct heatmap_writer *writer, struct err *err)
{
    struct file_out out;
    struct json_out json;
    if (!file_out_open(&out, writer->json_path, err))
        return false;
    json_out_begin(&json, out.stream);
    json_out_object(&json, NULL);
    heatmap_json_put(&json, &writer->info);
    json_out_close_object(&json);
    json_out_end(&json);
    return file_out_commit(&out, err);
}

bool heatmap_commit(struct heatmap_writer *writer, struct err *err)
{
    bool ok = writer->rows == writer->info.height ||
              err_set(err, ERR_USAGE, "%s: only %lld of %lld rows were written", writer->npy.path,
                      (long long)writer->rows, (long long)writer->info.height);
    ok = ok && file_out_commit(&writer->npy, err) && write_json(writer, err);
    heatmap_discard(writer);
    return ok;
}

void heatmap_discard(struct heatmap_writer *writer)
{
    if (!writer)
        return;
    file_out_discard(&writer->npy);
    heatmap_info_free(&writer->info);
    free(writer->json_path);
    free(writer);
}
