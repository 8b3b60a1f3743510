/* checkpoint.h: a training in one file: named arrays of floats and a JSON text with all else, under
 * a CRC-32. The file is safetensors, so that other tools can look into it; it is written beside,
 * synced and renamed. */
#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H
#include "net/safetensors.h"
#include "train/optimizer.h"

/* Arrays of no elements are left out. Names are unique. */
bool checkpoint_write(const char *path, const struct state_array *arrays, size_t n,
                      const char *state, struct err *err);

struct checkpoint {
    struct safetensors file;
    const char *state; /* points into file */
};

/* Opens and checks the CRC of all it holds. *out is the caller's; free with checkpoint_close. */
bool checkpoint_open(const char *path, struct checkpoint *out, struct err *err);
void checkpoint_close(struct checkpoint *checkpoint); /* also fine on a zeroed struct */

/* Copies the file's values into the arrays. Each must be there and of the same count; nothing is
 * changed unless all are. */
bool checkpoint_load(const struct checkpoint *checkpoint, const struct state_array *arrays,
                     size_t n, struct err *err);
#endif
