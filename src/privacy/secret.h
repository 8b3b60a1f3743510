/* secret.h: the key of the noise that makes a training private. Whoever has it can subtract the
 * noise, so it comes from the kernel, lies in a file that only its owner can read, for as long as a
 * training may have to continue with the same noise, and is destroyed when that is over. */
#ifndef PRIVACY_SECRET_H
#define PRIVACY_SECRET_H
#include <stdint.h>
#include "base/err.h"

#define SECRET_BYTES 32

struct secret {
    uint8_t key[SECRET_BYTES];
};

/* Before the noise: has the cipher's library choose its fastest code, on every rank. */
bool secret_start(struct err *err);

/* From the kernel's random numbers. */
bool secret_draw(struct secret *out, struct err *err);

/* A new key in a new file of mode 0600, which must not exist; on disk when this returns. */
bool secret_create(const char *path, struct secret *out, struct err *err);
/* Of a file that secret_create made; refused if others may read it, or if it is a link. */
bool secret_open(const char *path, struct secret *out, struct err *err);
/* Overwrites and removes the file; true as well if there is none. What a copying file system or a
 * backup keeps is beyond it. */
bool secret_destroy(const char *path, struct err *err);
/* Overwrites the key in memory. */
void secret_forget(struct secret *secret);
#endif
