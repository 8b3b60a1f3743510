/* files.h: bytes as files, for targets of what is read by name. */
#ifndef TESTS_FUZZ_FILES_H
#define TESTS_FUZZ_FILES_H
#include <stddef.h>
#include <stdint.h>

/* The bytes as a file in memory: its name goes to path, and the descriptor that holds it is
 * returned; close() ends it. -1 if the system refuses. */
int fuzz_memory_file(const uint8_t *bytes, size_t size, char path[32]);

/* An empty folder for one input, the process's own, in memory or else below SCRATCH; fuzz_clear
 * removes it with all that is in it. */
const char *fuzz_folder(void);
void fuzz_clear(void);
/* Writes folder/name, with the folders on the way. Aborts where it cannot. */
void fuzz_write(const char *name, const uint8_t *bytes, size_t size);

/* An input that is several files: takes the bytes up to the next 0 byte and moves on behind it. */
struct fuzz_piece {
    const uint8_t *bytes;
    size_t size;
};
struct fuzz_piece fuzz_next(const uint8_t **data, size_t *size);
#endif
