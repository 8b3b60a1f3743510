/* direct.h: writes large pieces of data to reserved places in a file. A dedicated thread bypasses
 * the page cache where the system supports that, so that a processor that decodes does not also
 * copy; one batch is written while the next is filled. */
#ifndef PATCH_DIRECT_H
#define PATCH_DIRECT_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

struct direct;

/* Opens an existing file and reserves its disk space (a full disk is noticed here, before the
 * work). A batch holds pieces of up to batch_bytes in all; two batches are in memory. name is what
 * messages call the file. *out is the caller's; end with direct_finish or direct_close. */
bool direct_open(const char *path, const char *name, int64_t batch_bytes, struct direct **out,
                 struct err *err);

/* How many pieces of that size always fit into one batch; at least 1. */
int64_t direct_batch_pieces(int64_t batch_bytes, int64_t piece_bytes);

/* Memory for `bytes` at `offset` of the file, in the batch being filled; NULL if it is full. Fill
 * it, from any thread, before direct_submit. */
uint8_t *direct_place(struct direct *direct, int64_t offset, int64_t bytes);

/* Hands the batch over and starts the next. The error may come from an earlier batch. */
bool direct_submit(struct direct *direct, struct err *err);

/* Waits for the last batch and syncs to disk. The struct is freed in any case. */
bool direct_finish(struct direct *direct, struct err *err);
void direct_close(struct direct *direct); /* discards what was not written; NULL-safe */
#endif
