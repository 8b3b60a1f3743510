/* checkpoint.h: a training in one file: named arrays of floats and a JSON text with everything
 * else, protected by a CRC-32. The file is safetensors, so that other tools can read it; it is
 * written to a temporary file, synced and renamed. */
#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H
#include "net/model/safetensors.h"
#include "train/optimizer.h"

/* Empty arrays are omitted. Names are unique. Waits until the file is on the disk: 0.4 s
 * or more for ResNet-50 with its momentum, 200 MB. */
bool checkpoint_write(const char *path, const struct state_array *arrays, size_t n,
                      const char *state, struct err *err);

struct checkpoint {
    struct safetensors file;
    const char *state; /* points into file */
};

/* Opens the file and checks its CRC, which reads all of it (70 ms for 200 MB in the page cache).
 * *out is the caller's; free with checkpoint_close. */
bool checkpoint_open(const char *path, struct checkpoint *out, struct err *err);
void checkpoint_close(struct checkpoint *checkpoint); /* also fine on a zeroed struct */

/* Copies the file's values into the arrays. Each must be in the file with the same count; if one is
 * not, nothing is changed. */
bool checkpoint_load(const struct checkpoint *checkpoint, const struct state_array *arrays,
                     size_t n, struct err *err);
#endif
