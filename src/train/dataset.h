/* dataset.h: patch stores, folders of images and tar files, lists of whole slides, or tables of
 * texts or recordings -> one table of labelled samples, split into sides: training, validation and
 * test. Only the table is in memory; pixels are read on demand. A patient (or slide) is never on
 * two sides. */
#ifndef TRAIN_DATASET_H
#define TRAIN_DATASET_H
#include "base/image.h"
#include "base/label_image.h"
#include "patch/patch.h"
#include "stain/stain.h"
#include "text/sequence.h"
#include "train/config.h"

/* The tokenizer of a data set of texts: of a file, or learnt from the training side. */
struct dataset_texts {
    struct tokenizer *tokenizer;
    struct sequence sequence;
    char *file;  /* "vocab.txt" or "tokenizer.json" */
    char *bytes; /* [size]: of that file */
    size_t size;
};

enum data_side { DATA_TRAIN, DATA_VAL, DATA_TEST, DATA_NONE };

struct slide_entry;
struct origin;      /* one store, folder, tar or slide list; see dataset_origin.h */
struct sample_span; /* samples in a row of one origin, patient and side; see dataset_origin.h */

/* A sample is its id: 0, 1, .., n_samples - 1, by origin, then by item. Nothing is kept for each
 * but its class, in as few bits as the classes need: 43 million patches take about 11 MB. */

struct dataset {
    struct origin *origins;
    int32_t n_origins;
    int64_t n_samples;
    int64_t n_synthetic; /* the last so many of them are synthetic, all on the training side */
    struct sample_span *spans; /* by first sample */
    int64_t n_spans;
    uint64_t *labels; /* packed, label_bits each: dataset_label */
    int label_bits;
    float *targets; /* [n_samples]: numbers to be learnt, with TRUTH_TARGETS; else NULL */
    char *target_name, *target_unit; /* of the stores; NULL: no targets */
    char **patients;                 /* names; slide names where no patient is known */
    int32_t n_patients;
    int64_t n_classes;
    double mpp;        /* of the first store that states it; else 0 */
    double learnt_mpp; /* the same after data.resize_px */
    bool has_stores, has_images;
    bool label_images;      /* beside every image: dataset_read_labels */
    bool icc;               /* the colours of all stores were converted to sRGB (extract --icc) */
    struct stain_fit stain; /* what the patches of all stores were normalised to, if anything */
    struct dataset_texts *texts; /* how texts become tokens; NULL: samples are not texts */
    struct dataset_recordings *recordings; /* how recordings become frames; NULL: they are none */
    int64_t room_origins, room_spans, room_labels, room_targets;
    int64_t last_item;            /* of the last sample, while building */
    struct patient_table *lookup; /* names -> numbers, while building */
};

/* Lists everything that the config names and splits it. Errors: nothing found, a class without
 * training samples, a label beyond the classes, a patient on two sides, stores with different stain
 * normalisation, synthetic patches that are not in data.synthetic. *out is the caller's; free with
 * dataset_free. Opens every file, about 1 ms each. HDF5: see patch/store.h on threads. */
bool dataset_open(const struct train_config *config, struct dataset *out, struct err *err);
/* All samples of config->mine.stores of the first class, on the training side. */
bool dataset_open_normal(const struct train_config *config, struct dataset *out, struct err *err);
/* All samples of the paths, which may also be single images, with the labels they have
 * (PATCH_UNLABELED: none), on the training side. Of the config: classes, data.patient and
 * data.spacing_um_px. */
bool dataset_open_any(const struct train_config *config, char *const *paths, size_t n_paths,
                      struct dataset *out, struct err *err);
void dataset_free(struct dataset *dataset); /* also fine on a zeroed struct */

static inline bool dataset_synthetic(const struct dataset *dataset, int64_t sample)
{
    return sample >= dataset->n_samples - dataset->n_synthetic;
}
/* Patients that there are: synthetic patches are of none, but have a name among the patients. */
static inline int32_t dataset_real_patients(const struct dataset *dataset)
{
    return dataset->n_patients - (dataset->n_synthetic > 0);
}

/* The sample's class; PATCH_UNLABELED: none. */
int32_t dataset_label(const struct dataset *dataset, int64_t sample);
/* Each of these searches the origins: O(log n). */
enum data_side dataset_side(const struct dataset *dataset, int64_t sample);
const char *dataset_patient(const struct dataset *dataset, int64_t sample);
int32_t dataset_origin(const struct dataset *dataset, int64_t sample); /* index in origins */
/* Patch in the store, entry in the tar, or file in the folder. */
int64_t dataset_item(const struct dataset *dataset, int64_t sample);
/* Group of the store: its samples are read together; for an image its item. */
int32_t dataset_group(const struct dataset *dataset, int64_t sample);

/* Samples [first, end), in a row, of one group and one side. */
struct sample_range {
    int64_t first, end;
    int32_t origin, group;
    int32_t patient; /* index in patients */
    enum data_side side;
};
/* From the sample to the last of its group that follows: to walk through all samples, begin with
 * sample 0 and continue with `end`. */
struct sample_range dataset_range(const struct dataset *dataset, int64_t sample);

/* How many samples of each class [n_classes] a side has; returns the number of all. Looks at every
 * sample, unless per_class is NULL. */
int64_t dataset_count(const struct dataset *dataset, enum data_side side, int64_t *per_class);
/* A number that changes with names, labels, patients, sides or file contents (base/identity.h; for
 * single images only the file size). */
uint64_t dataset_hash(const struct dataset *dataset);
/* The store, folder or tar a sample is in; the data set's. */
const char *dataset_origin_path(const struct dataset *dataset, int64_t sample);
/* The slide and the place on it of a store's sample; "" and -1 for others. */
struct sample_place {
    const char *slide; /* the data set's */
    int64_t x_l0, y_l0;
};
struct sample_place dataset_place(const struct dataset *dataset, int64_t sample);
/* "store.h5 patch 12", the caller's; NULL if no memory. */
char *dataset_sample_name(const struct dataset *dataset, int64_t sample);
/* The cells of a CSV that say which sample this is: its name and patient. */
void dataset_put_sample(const struct dataset *dataset, int64_t sample, FILE *stream);

/* Where samples are whole slides: its line of the slide list, the data set's; else NULL. */
const struct slide_entry *dataset_slide(const struct dataset *dataset, int64_t sample);

/* Where samples are texts: the text, the data set's; and its ids and mask [max_tokens].
 * Thread-safe.
 */
const char *dataset_text(const struct dataset *dataset, int64_t sample);
bool dataset_read_text(const struct dataset *dataset, int64_t sample, float *ids, float *mask,
                       struct err *err);
/* The same with one of its windows (data.long), drawn by the key. */
bool dataset_draw_text(const struct dataset *dataset, int64_t sample, struct augment_key key,
                       float *ids, float *mask, struct err *err);

/* Width of the sample's patch as stored; an image is opened to find it. */
bool dataset_patch_px(const struct dataset *dataset, int64_t sample, int64_t *out, struct err *err);

/* Samples of a store come from groups, each read as a whole by one thread at a time; others are
 * read individually, by any number of threads. */
bool dataset_in_group(const struct dataset *dataset, int64_t sample);
/* Bytes of the sample's group. */
int64_t dataset_group_bytes(const struct dataset *dataset, int64_t sample);
/* The pixels of the sample's group to out [dataset_group_bytes]. */
bool dataset_read_group(const struct dataset *dataset, int64_t sample, uint8_t *out,
                        struct err *err);
/* The label image of a sample, of the patch's size. Thread-safe. *out is the caller's. */
bool dataset_read_labels(const struct dataset *dataset, int64_t sample, struct label_image *out,
                         struct err *err);
/* The sample's patch as a separate image; group: from dataset_read_group, or NULL. */
bool dataset_read(const struct dataset *dataset, int64_t sample, const uint8_t *group,
                  struct image *out, struct err *err);
#endif
