/* dataset_recordings.h: private to training: recordings in tables, as frames. All are read once
 * when the data set is opened; frames are kept in memory as far as data.window_mb allows, others
 * are read again when they are needed. */
#ifndef TRAIN_DATASET_RECORDINGS_H
#define TRAIN_DATASET_RECORDINGS_H
#include "audio/vary.h"
#include "train/dataset.h"

struct dataset_recordings {
    struct mel *mel;
    struct frames_rule rule;
    struct frames *kept; /* [n_kept], by sample; values NULL: to be read again */
    int64_t n_kept, bytes;
    double voice;  /* how far recordings are varied for training: vary.h */
    int64_t cut;   /* recordings that are longer than the network takes */
    uint64_t hash; /* of all of them */
};

/* Sides must have been assigned. */
bool dataset_open_recordings(struct dataset *dataset, const struct train_config *config,
                             struct err *err);
void dataset_free_recordings(struct dataset *dataset);
/* The inputs of a network, see frames_fill; with a key varied, as for training. Thread-safe. */
bool dataset_read_frames(const struct dataset *dataset, int64_t sample, const struct vary_key *key,
                         float *input, float *mask, struct err *err);

/* The file that a table names, the caller's: relative to the folder of the table. NULL if no
 * memory. */
char *recording_path(const char *table, const char *file);
#endif
