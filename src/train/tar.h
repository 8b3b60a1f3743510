/* tar.h: where the files in a tar archive are (ustar, with GNU and pax long names), so that each
 * can be read separately. Compressed archives are not supported. */
#ifndef TRAIN_TAR_H
#define TRAIN_TAR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

struct tar_entry {
    char *name; /* with its folders */
    int64_t offset, size;
};

struct tar {
    int fd;
    char *path;
    struct tar_entry *entries; /* regular files, in the order of the archive */
    size_t n;
};

/* *out is the caller's; close with tar_close. */
bool tar_open(const char *path, struct tar *out, struct err *err);
/* The bytes of an entry, the caller's; free(). Thread-safe. */
bool tar_read(const struct tar *tar, size_t entry, uint8_t **out, struct err *err);
void tar_close(struct tar *tar); /* also fine on a struct with fd -1 or zeroed by tar_close */
#endif
