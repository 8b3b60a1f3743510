/* fuzz_checkpoint.c: any bytes as a checkpoint: as they are, where the checksum holds nearly all of
 * it back; and up to the first 0 byte as the state in a checkpoint that is whole, after it as the
 * predictions of the epoch. A training that resumes from it is at a place that exists. */
#include "tests/fuzz/fuzz.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/file.h"
#include "tests/fuzz/files.h"
#include "tests/fuzz/small_trainer.h"
#include "train/checkpoint.h"
#include "train/trainer_state.h"
#include "base/text.h"

static void try_file(const uint8_t *data, size_t size)
{
    char path[32];
    struct checkpoint checkpoint;
    int fd = fuzz_memory_file(data, size, path);
    if (fd >= 0 && checkpoint_open(path, &checkpoint, NULL))
        checkpoint_close(&checkpoint);
    if (fd >= 0)
        close(fd);
}

/* The trainer's arrays, and the numbers as scores and labels of patches. */
static void write_checkpoint(struct trainer *trainer, const char *state, const float *numbers,
                             int64_t n)
{
    struct trainer_arrays arrays = trainer_arrays(trainer);
    struct state_array *all = calloc(arrays.n + 2, sizeof *all);
    char *path = trainer_step_path(trainer, 1);
    if (!all || !path || arrays.failed)
        abort();
    memcpy(all, arrays.items, arrays.n * sizeof *all);
    all[arrays.n] = (struct state_array){ "seen/scores", (float *)numbers, n / 3 * 2 };
    all[arrays.n + 1] = (struct state_array){ "seen/labels", (float *)numbers + n / 3 * 2, n / 3 };
    if (!checkpoint_write(path, all, arrays.n + 2, state, NULL))
        abort();
    trainer_arrays_free(&arrays);
    free(all);
    free(path);
}

/* What a training counts in its checkpoint is no more than it can have done. */
static bool is_sane(const char *state)
{
    static const char *const keys[] = { "epoch", "step", "steps", "step_images", "seen" };
    json_t *root = json_loads(state, 0, NULL);
    bool sane = root != NULL;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_int_t value = json_integer_value(json_object_get(root, keys[i]));
        sane = sane && value >= 0 && value < (json_int_t)1 << 32;
    }
    json_decref(root);
    return sane;
}

static void try_state(const char *state, const float *numbers, int64_t n)
{
    const char *folder = fuzz_folder();
    struct trainer *trainer = small_trainer(folder);
    char *checkpoints = text_format("%s/checkpoints", folder);
    struct err err = { .kind = ERR_NONE };
    bool found = false;
    if (!checkpoints || !file_make_folder(checkpoints, NULL))
        abort();
    free(checkpoints);
    write_checkpoint(trainer, state, numbers, n);
    trainer->other_steps = 0; /* a trainer resumes once, as it was made */
    if (trainer_resume(trainer, &found, &err)) {
        fuzz_taken += found;
        if (found && !is_sane(state))
            abort();
        if (found && (trainer->epoch < 0 || trainer->step < 0 ||
                      trainer->step > trainer->steps_per_epoch || trainer_steps(trainer) < 0))
            abort();
    } else if (err.kind == ERR_NONE) {
        abort(); /* refused without a word */
    }
    int64_t outputs = trainer->seen.outputs;
    predictions_free(&trainer->seen);
    trainer->seen = (struct predictions){ .outputs = outputs };
    fuzz_clear();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_file(data, size);
    struct fuzz_piece json = fuzz_next(&data, &size);
    char *state = strndup((const char *)json.bytes, json.size);
    float *numbers = calloc(size / sizeof(float) + 1, sizeof *numbers);
    if (!state || !numbers)
        abort();
    memcpy(numbers, data, size / sizeof(float) * sizeof(float));
    try_state(state, numbers, (int64_t)(size / sizeof(float)));
    free(state);
    free(numbers);
    return 0;
}
