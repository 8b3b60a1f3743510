/* h5_heap.c: texts of variable length lie in "global heaps" of an HDF5 file. The library believes
 * the sizes in them: a damaged one makes it crash or loop for ever. They are looked at before it is
 * asked (h5.h). */
#include <endian.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "patch/h5.h"

#define LOOK_AT_BYTES (1 << 20) /* of the file: attributes come before pixels */

enum {
    HEAP_HEADER = 16,   /* signature, version, reserved, size of the heap */
    OBJECT_HEADER = 16, /* number, uses, reserved, size of the object */
    ALIGNED = 8,
};

static uint64_t size_at(const uint8_t *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return le64toh(value);
}

/* Objects follow each other to the end of the heap; number 0 is what is free, with its header. */
static bool is_sound(const uint8_t *heap, uint64_t size)
{
    uint64_t at = HEAP_HEADER;
    while (at + OBJECT_HEADER <= size) {
        bool is_free = heap[at] == 0 && heap[at + 1] == 0;
        uint64_t bytes = size_at(heap + at + 8), rest = size - at;
        if (bytes > rest || (is_free && bytes < OBJECT_HEADER))
            return false;
        at += is_free ? bytes : OBJECT_HEADER + (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
        if (at > size)
            return false;
    }
    return true;
}

bool h5_check_heaps(const char *path, struct err *err)
{
    static const uint8_t signature[] = { 'G', 'C', 'O', 'L', 1, 0, 0, 0 };
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint8_t *bytes = malloc(LOOK_AT_BYTES);
    ssize_t n = fd >= 0 && bytes ? pread(fd, bytes, LOOK_AT_BYTES, 0) : -1;
    bool sound = true;
    for (ssize_t at = 0; sound && at + HEAP_HEADER <= n; at += ALIGNED) {
        if (memcmp(bytes + at, signature, sizeof signature) != 0)
            continue;
        uint64_t size = size_at(bytes + at + 8), rest = (uint64_t)(n - at);
        if (size <= rest)
            sound = size >= HEAP_HEADER && is_sound(bytes + at, size);
        else /* beyond what is looked at, or beyond the file */
            sound = n == LOOK_AT_BYTES;
    }
    if (fd >= 0)
        close(fd);
    free(bytes);
    return n < 0 ? err_errno(err, path, "read")
                 : sound || err_set(err, ERR_FORMAT, "%s: its texts are damaged", path);
}
