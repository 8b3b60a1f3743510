/* tiff_entry.c: see tiff_entry.h. */
#include "slide/tiff_entry.h"

#include <stddef.h>
#include <string.h>
#include <tiff.h>
#include <unistd.h>

#define MAX_ENTRIES 4096

struct layout {
    bool big_endian, big; /* big: BigTIFF */
};

struct entry {
    uint16_t type;
    uint64_t at; /* the entry's value, or the value's position */
};

static bool read_at(int fd, uint64_t at, void *out, size_t size)
{
    return at <= INT64_MAX && pread(fd, out, size, (off_t)at) == (ssize_t)size;
}

static uint64_t number(const uint8_t *bytes, int size, bool big_endian)
{
    uint64_t value = 0;
    for (int i = 0; i < size; i++)
        value = value << 8 | bytes[big_endian ? i : size - 1 - i];
    return value;
}

static bool read_layout(int fd, struct layout *out)
{
    uint8_t head[4];
    if (!read_at(fd, 0, head, sizeof head))
        return false;
    out->big_endian = head[0] == 'M';
    out->big = number(head + 2, 2, out->big_endian) == TIFF_VERSION_BIG;
    return true;
}

static bool find(int fd, uint64_t directory, uint16_t tag, const struct layout *layout,
                 struct entry *out)
{
    int count_bytes = layout->big ? 8 : 2, entry_bytes = layout->big ? 20 : 12;
    uint8_t bytes[20];
    if (!read_at(fd, directory, bytes, (size_t)count_bytes))
        return false;
    uint64_t n = number(bytes, count_bytes, layout->big_endian);
    for (uint64_t i = 0; i < n && i < MAX_ENTRIES; i++) {
        uint64_t at = directory + (uint64_t)count_bytes + i * (uint64_t)entry_bytes;
        if (!read_at(fd, at, bytes, (size_t)entry_bytes))
            return false;
        if (number(bytes, 2, layout->big_endian) != tag)
            continue;
        int word = layout->big ? 8 : 4;
        out->type = (uint16_t)number(bytes + 2, 2, layout->big_endian);
        out->at = number(bytes + 4 + word, word, layout->big_endian);
        if (layout->big) /* 8 bytes of value fit in the entry */
            out->at = at + 12;
        return true;
    }
    return false;
}

bool tiff_entry_exists(int fd, uint64_t directory, uint16_t tag)
{
    struct layout layout;
    struct entry entry;
    return read_layout(fd, &layout) && find(fd, directory, tag, &layout, &entry);
}

bool tiff_entry_rational(int fd, uint64_t directory, uint16_t tag, double *out)
{
    struct layout layout;
    struct entry entry;
    uint8_t bytes[8];
    if (!read_layout(fd, &layout) || !find(fd, directory, tag, &layout, &entry) ||
        entry.type != TIFF_RATIONAL || !read_at(fd, entry.at, bytes, sizeof bytes))
        return false;
    uint64_t over = number(bytes, 4, layout.big_endian);
    uint64_t under = number(bytes + 4, 4, layout.big_endian);
    if (under == 0)
        return false;
    *out = (double)over / (double)under;
    return true;
}
