/* deflate_check.h: is a zlib stream in a file complete and its checksum right? libtiff decodes
 * strips only as far as their rows need, and never compares the checksum at the end. */
#ifndef SLIDE_DEFLATE_CHECK_H
#define SLIDE_DEFLATE_CHECK_H
#include <stdbool.h>
#include <stdint.h>

/* NULL if the `size` bytes at `offset` are a stream of `expected` bytes, else what is wrong.
 * longer: it may have more. Needs 128 kB, whatever the size. */
const char *deflate_check(int fd, uint64_t offset, uint64_t size, int64_t expected, bool longer);
#endif
