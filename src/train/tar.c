/* tar.c: see tar.h. Every number in the archive is checked against the size of the file. */
#include "train/tar.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 512, MAX_NAME = 4096, MAX_ENTRY = 1 << 30 };

struct tar_header {
    char name[100], mode[8], uid[8], gid[8], size[12], time[12], sum[8], type, link[100];
    char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], rest[12];
};

static bool read_at(int fd, void *out, size_t size, int64_t offset)
{
    char *to = out;
    while (size > 0) {
        ssize_t n = pread(fd, to, size, (off_t)offset);
        if (n <= 0)
            return false;
        to += n, size -= (size_t)n, offset += n;
    }
    return true;
}

/* Octal digits up to a space or 0; -1 if there is anything else. */
static int64_t octal(const char *field, size_t n)
{
    int64_t value = 0;
    size_t i = 0;
    while (i < n && field[i] == ' ')
        i++;
    for (; i < n && field[i] && field[i] != ' '; i++) {
        if (field[i] < '0' || field[i] > '7')
            return -1;
        value = value * 8 + (field[i] - '0');
    }
    return value;
}

static bool sum_is_right(const struct tar_header *header)
{
    const unsigned char *bytes = (const unsigned char *)header;
    size_t at = offsetof(struct tar_header, sum);
    int64_t sum = 0;
    for (size_t i = 0; i < BLOCK; i++)
        sum += i >= at && i < at + sizeof header->sum ? ' ' : bytes[i];
    return sum == octal(header->sum, sizeof header->sum);
}

static char *header_name(const struct tar_header *header)
{
    char name[sizeof header->prefix + sizeof header->name + 2];
    bool prefixed = memcmp(header->magic, "ustar", 6) == 0 && header->prefix[0];
    snprintf(name, sizeof name, "%.*s%s%.*s", prefixed ? (int)sizeof header->prefix : 0,
             header->prefix, prefixed ? "/" : "", (int)sizeof header->name, header->name);
    return strdup(name);
}

/* The value of "path" among pax records "<length> <key>=<value>\n"; NULL if there is none. */
static char *pax_path(char *text, size_t size)
{
    for (size_t at = 0; at < size;) {
        char *end = NULL;
        unsigned long length = strtoul(text + at, &end, 10);
        if (length < 5 || length > size - at || *end != ' ')
            return NULL;
        const char *record = end + 1, *stop = text + at + length - 1;
        if (stop - record > 5 && strncmp(record, "path=", 5) == 0)
            return strndup(record + 5, (size_t)(stop - record - 5));
        at += length;
    }
    return NULL;
}

/* The name that a header of type L (GNU) or x (pax) gives to the next entry. */
static bool long_name(int fd, char type, int64_t offset, int64_t size, char **name)
{
    char text[MAX_NAME + 1];
    if (size > MAX_NAME || !read_at(fd, text, (size_t)size, offset))
        return false;
    text[size] = 0;
    char *found = type == 'L' ? strdup(text) : pax_path(text, (size_t)size);
    if (found) {
        free(*name);
        *name = found;
    }
    return true;
}

static bool add_entry(struct tar *tar, size_t *room, char *name, int64_t offset, int64_t size)
{
    if (tar->n == *room) {
        size_t more = *room ? 2 * *room : 256;
        struct tar_entry *entries = realloc(tar->entries, more * sizeof *entries);
        if (!entries)
            return false;
        tar->entries = entries, *room = more;
    }
    tar->entries[tar->n++] = (struct tar_entry){ .name = name, .offset = offset, .size = size };
    return true;
}

static bool scan(struct tar *tar, int64_t file_size, struct err *err)
{
    struct tar_header header;
    char *name = NULL;
    size_t room = 0;
    bool ok = true;
    for (int64_t at = 0; ok && at + BLOCK <= file_size;) {
        if (!read_at(tar->fd, &header, BLOCK, at)) {
            ok = err_errno(err, tar->path, "read");
            break;
        }
        if (header.name[0] == 0 && header.size[0] == 0)
            break; /* the end of the archive */
        int64_t size = octal(header.size, sizeof header.size), data = at + BLOCK;
        if (!sum_is_right(&header) || size < 0 || size > file_size - data) {
            ok = err_set(err, ERR_FORMAT, "%s: not a tar archive, or damaged at byte %lld",
                         tar->path, (long long)at);
        } else if (header.type == 'L' || header.type == 'x') {
            if (!long_name(tar->fd, header.type, data, size, &name))
                ok = err_set(err, ERR_FORMAT, "%s: a file name is longer than %d bytes", tar->path,
                             MAX_NAME);
        } else {
            if (!name)
                name = header_name(&header);
            bool file = header.type == '0' || header.type == 0;
            if (!name || (file && !add_entry(tar, &room, name, data, size)))
                ok = err_memory(err, tar->path);
            else if (file)
                name = NULL;
            free(name);
            name = NULL;
        }
        at = data + (size + BLOCK - 1) / BLOCK * BLOCK;
    }
    free(name);
    return ok;
}

bool tar_open(const char *path, struct tar *out, struct err *err)
{
    struct stat info;
    *out = (struct tar){ .fd = open(path, O_RDONLY | O_CLOEXEC), .path = strdup(path) };
    if (out->fd < 0 || fstat(out->fd, &info) != 0) {
        err_errno(err, path, "open");
        tar_close(out);
        return false;
    }
    bool ok = out->path ? scan(out, info.st_size, err) : err_memory(err, path);
    if (!ok)
        tar_close(out);
    return ok;
}

bool tar_read(const struct tar *tar, size_t entry, uint8_t **out, struct err *err)
{
    const struct tar_entry *found = &tar->entries[entry];
    if (found->size > MAX_ENTRY)
        return err_set(err, ERR_FORMAT, "%s: %s is too large", tar->path, found->name);
    *out = malloc((size_t)found->size + 1);
    if (!*out)
        return err_memory(err, found->name);
    if (read_at(tar->fd, *out, (size_t)found->size, found->offset))
        return true;
    free(*out);
    *out = NULL;
    return err_errno(err, tar->path, "read");
}

void tar_close(struct tar *tar)
{
    if (tar->fd >= 0)
        close(tar->fd);
    for (size_t i = 0; i < tar->n; i++)
        free(tar->entries[i].name);
    free(tar->entries);
    free(tar->path);
    *tar = (struct tar){ .fd = -1 };
}
