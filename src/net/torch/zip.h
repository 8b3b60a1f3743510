/* zip.h: the entries of a zip archive in memory: stored and deflated, zip64, data descriptors.
 * The central directory is checked against the local headers before an entry is used: names are
 * unique, and no two entries share bytes. Thread-safe once open. */
#ifndef NET_TORCH_ZIP_H
#define NET_TORCH_ZIP_H
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

struct zip_entry {
    const char *name;     /* not terminated, within the bytes */
    size_t name_length;   /* above 0 */
    const uint8_t *bytes; /* as they are in the archive */
    size_t packed;        /* their number */
    size_t size;          /* what they are unpacked to */
    bool deflated;        /* else stored: packed == size */
};

struct zip {
    struct zip_entry *entries; /* in the order of their names */
    size_t n_entries;
};

/* `bytes` must live as long as *out, which is the caller's; free with zip_close. `path` only names
 * the file in messages. */
bool zip_open(const uint8_t *bytes, size_t size, const char *path, struct zip *out,
              struct err *err);
void zip_close(struct zip *zip); /* also fine on a zeroed struct */

/* NULL if there is none. */
const struct zip_entry *zip_find(const struct zip *zip, const char *name);
/* The entry's content: where it lies, if it is stored; else *owned is unpacked memory, the
 * caller's. An entry of more than `limit` bytes is refused before anything is allocated, as is one
 * that claims to have been packed to less than a 1032th, which deflate cannot. */
bool zip_read(const struct zip_entry *entry, const char *path, size_t limit, const uint8_t **out,
              uint8_t **owned, struct err *err);
#endif
