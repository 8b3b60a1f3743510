/* spill_file.h: memory that did not fit, in a file without a name: it disappears with the process,
 * however that ends. Transfers go past the page cache where the file system allows it. */
#ifndef NET_STREAM_SPILL_FILE_H
#define NET_STREAM_SPILL_FILE_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

/* Addresses, offsets and lengths of transfers are multiples of this. */
#define SPILL_PAGE 4096

struct spill_file;

/* Takes no space yet. */
bool spill_file_new(const char *folder, struct spill_file **out, struct err *err);
void spill_file_free(struct spill_file *file);
/* Reserves the space where the file system can, so that a full disk is not found out hours later.
 */
bool spill_file_reserve(struct spill_file *file, int64_t bytes, struct err *err);
/* One transfer at a time. */
bool spill_file_write(struct spill_file *file, const void *data, int64_t bytes, int64_t offset,
                      struct err *err);
bool spill_file_read(struct spill_file *file, void *data, int64_t bytes, int64_t offset,
                     struct err *err);
/* Whether transfers have gone past the page cache so far. */
bool spill_file_is_direct(const struct spill_file *file);
#endif
