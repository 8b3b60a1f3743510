/* slide_companions.c: see slide_companions.h. */
#include "slide/slide_companions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/file.h"
#include "base/folder.h"
#include "base/text.h"

#define MAX_INDEX_BYTES ((size_t)1 << 20) /* of a .vms file; they have a few kB */
#define DICOM_HEAD_BYTES 16384            /* the series is named near the beginning */
#define UID_ROOM 65

/* The name, and the content if it is a file. */
static bool add_part(const char *folder, const char *name, struct identity *out, struct err *err)
{
    struct identity part;
    char *path = text_format("%s/%s", folder, name);
    bool ok = path || err_memory(err, folder);
    out->hash = identity_hash(out->hash, name, strlen(name) + 1);
    if (ok && file_exists(path) && !file_is_folder(path)) {
        ok = identity_of_sample(path, &part, err);
        out->bytes += ok ? part.bytes : 0;
        if (ok)
            out->hash = identity_hash(out->hash, &part, sizeof part);
    }
    free(path);
    return ok;
}

/* The folder a file is in. The caller's; NULL if no memory. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return !slash ? strdup(".") : text_format("%.*s", (int)(slash - path), path);
}

/* MIRAX: a.mrxs and the folder a/. */
static bool add_mirax(const char *path, struct identity *out, struct err *err)
{
    char **names = NULL;
    size_t n = 0;
    char *folder = text_format("%.*s", (int)(file_extension(path) - path), path);
    bool ok = folder || err_memory(err, path);
    if (ok && file_is_folder(folder))
        ok = folder_names(folder, NULL, &names, &n, err);
    for (size_t i = 0; ok && i < n; i++) {
        if (i < SLIDE_COMPANIONS_MAX)
            ok = add_part(folder, names[i], out, err);
        else
            out->hash = identity_hash(out->hash, names[i], strlen(names[i]) + 1);
    }
    folder_names_free(names, n);
    free(folder);
    return ok;
}

/* Hamamatsu's index: lines such as ImageFile(1,0)=part.jpg, MapFile=..., OptimisationFile=... */
static bool add_hamamatsu(const char *path, struct identity *out, struct err *err)
{
    char *text = NULL, *folder = folder_of(path), *rest = NULL;
    bool ok =
        (folder || err_memory(err, path)) && file_read(path, MAX_INDEX_BYTES, &text, NULL, err);
    int n = 0;
    for (char *line = ok ? strtok_r(text, "\r\n", &rest) : NULL; ok && line;
         line = strtok_r(NULL, "\r\n", &rest)) {
        char *value = strchr(line, '=');
        bool names_file =
            value && (strncmp(line, "ImageFile", 9) == 0 || strncmp(line, "MapFile", 7) == 0 ||
                      strncmp(line, "OptimisationFile", 16) == 0);
        if (names_file && value[1] && !strchr(value, '/') && n++ < SLIDE_COMPANIONS_MAX)
            ok = add_part(folder, value + 1, out, err);
    }
    free(text);
    free(folder);
    return ok;
}

/* The series that a DICOM file belongs to: tag (0020,000E), explicit little endian. "" if unknown.
 */
static void read_series(const char *path, char uid[UID_ROOM])
{
    static const unsigned char tag[6] = { 0x20, 0x00, 0x0E, 0x00, 'U', 'I' };
    unsigned char head[DICOM_HEAD_BYTES];
    FILE *stream = fopen(path, "rb");
    size_t size = stream ? fread(head, 1, sizeof head, stream) : 0;
    uid[0] = 0;
    if (stream)
        fclose(stream);
    const unsigned char *at = memmem(head, size, tag, sizeof tag);
    if (!at || at + sizeof tag + 2 > head + size)
        return;
    size_t length = at[6] | (size_t)at[7] << 8;
    if (length < UID_ROOM && at + sizeof tag + 2 + length <= head + size)
        snprintf(uid, UID_ROOM, "%.*s", (int)length, (const char *)at + sizeof tag + 2);
}

static bool add_dicom(const char *path, struct identity *out, struct err *err)
{
    static const char *const endings[] = { ".dcm", NULL };
    char wanted[UID_ROOM], series[UID_ROOM], **names = NULL;
    size_t n = 0;
    int found = 0;
    read_series(path, wanted);
    if (!wanted[0])
        return true;
    char *folder = folder_of(path);
    bool ok = (folder || err_memory(err, path)) && folder_names(folder, endings, &names, &n, err);
    for (size_t i = 0; ok && i < n; i++) {
        char *other = text_format("%s/%s", folder, names[i]);
        ok = other || err_memory(err, path);
        if (ok)
            read_series(other, series);
        if (ok && strcmp(series, wanted) == 0 && found++ < SLIDE_COMPANIONS_MAX)
            ok = add_part(folder, names[i], out, err);
        free(other);
    }
    folder_names_free(names, n);
    free(folder);
    return ok;
}

bool slide_companions_add(const char *path, struct identity *out, struct err *err)
{
    static const struct {
        const char *extension;
        bool (*add)(const char *path, struct identity *out, struct err *err);
    } kinds[] = { { ".mrxs", add_mirax },
                  { ".vms", add_hamamatsu },
                  { ".vmu", add_hamamatsu },
                  { ".dcm", add_dicom } };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcasecmp(file_extension(path), kinds[i].extension) == 0)
            return kinds[i].add(path, out, err);
    return true;
}
