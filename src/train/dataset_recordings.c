/* dataset_recordings.c: see dataset_recordings.h. */
#include "train/dataset_recordings.h"
#include <stdlib.h>
#include <string.h>
#include "base/identity.h"
#include "base/text.h"

char *recording_path(const char *table, const char *file)
{
    const char *slash = strrchr(table, '/');
    return slash && file[0] != '/' ? text_format("%.*s%s", (int)(slash + 1 - table), table, file)
                                   : strdup(file);
}

static bool read_sample(const struct dataset *dataset, int64_t sample, struct frames *out,
                        struct err *err)
{
    char *path =
        recording_path(dataset_origin_path(dataset, sample), dataset_text(dataset, sample));
    bool ok = path ? frames_read(&dataset->recordings->rule, path, out, err)
                   : err_memory(err, "a recording");
    free(path);
    return ok;
}

/* Counts the frames of a sample, and keeps them if there is room. */
static void keep(struct dataset_recordings *recordings, int64_t sample, struct frames *frames,
                 int64_t most_bytes)
{
    int64_t bytes = frames->n * mel_options_of(recordings->mel)->bands * (int64_t)sizeof(float);
    recordings->cut += frames->cut;
    recordings->hash = identity_hash(recordings->hash, &frames->hash, sizeof frames->hash);
    if (recordings->bytes + bytes > most_bytes) {
        frames_free(frames);
        return;
    }
    recordings->bytes += bytes;
    recordings->kept[sample] = *frames;
}

bool dataset_open_recordings(struct dataset *dataset, const struct train_config *config,
                             struct err *err)
{
    struct dataset_recordings *recordings = dataset->recordings = calloc(1, sizeof *recordings);
    if (!recordings)
        return err_memory(err, "recordings");
    recordings->kept = calloc((size_t)dataset->n_samples + 1, sizeof *recordings->kept);
    recordings->n_kept = recordings->kept ? dataset->n_samples : 0;
    recordings->hash = IDENTITY_HASH_BEGIN;
    recordings->voice = config->data.voice;
    if (!recordings->kept)
        return err_memory(err, "recordings");
    if (!mel_new(&MEL_USUAL, &recordings->mel, err))
        return false;
    recordings->rule = (struct frames_rule){
        .mel = recordings->mel,
        .frames = frames_of_seconds(&MEL_USUAL, config->data.max_seconds),
        .refuse = config->data.long_rule == SEQUENCE_REFUSE,
    };
    bool ok = true;
    for (int64_t i = 0; ok && i < dataset->n_samples; i++) {
        struct frames frames = { 0 };
        ok = read_sample(dataset, i, &frames, err);
        char *name = ok ? NULL : dataset_sample_name(dataset, i);
        if (ok)
            keep(recordings, i, &frames, config->data.window_mb << 20);
        else if (name)
            err_prefix(err, name);
        free(name);
    }
    return ok;
}

void dataset_free_recordings(struct dataset *dataset)
{
    struct dataset_recordings *recordings = dataset->recordings;
    if (!recordings)
        return;
    for (int64_t i = 0; i < recordings->n_kept; i++)
        frames_free(&recordings->kept[i]);
    free(recordings->kept);
    mel_free(recordings->mel);
    free(recordings);
    dataset->recordings = NULL;
}

bool dataset_read_frames(const struct dataset *dataset, int64_t sample, const struct vary_key *key,
                         float *input, float *mask, struct err *err)
{
    const struct dataset_recordings *recordings = dataset->recordings;
    struct frames again = { 0 };
    const struct frames *frames = &recordings->kept[sample];
    if (!frames->values && !read_sample(dataset, sample, &again, err))
        return false;
    frames = frames->values ? frames : &again;
    if (key && recordings->voice > 0)
        frames_vary(&recordings->rule, frames, recordings->voice, *key, input, mask);
    else
        frames_fill(&recordings->rule, frames, input, mask);
    frames_free(&again);
    return true;
}
