/* config.h: the config of a training: one YAML file, checked key by key against a table
 * (config_keys.c) in which every key is declared once, with its type, range, default and help. The
 * check, the template and the command line's settings all use that table. */
#ifndef TRAIN_CONFIG_H
#define TRAIN_CONFIG_H
#include <stdio.h>
#include "dist/rank_grid.h"
#include "net/graph/transform.h"
#include "stain/stain.h"
#include "prepare/augment.h"
#include "train/optimizer.h"
#include "train/schedule.h"

struct texts {
    char **items;
    size_t n;
};

enum data_split { SPLIT_PATIENT, SPLIT_ATTRIBUTE };
enum data_balance { BALANCE_NONE, BALANCE_WEIGHTS, BALANCE_SAMPLING };
enum train_monitor {
    MONITOR_AUTO,
    MONITOR_AUC,
    MONITOR_LOSS,
    MONITOR_ACCURACY,
    MONITOR_LAST,
    MONITOR_R2,
    MONITOR_DICE
};
enum network_activation {
    ACTIVATION_AUTO,
    ACTIVATION_SOFTMAX,
    ACTIVATION_SIGMOID,
    ACTIVATION_NONE
};
enum train_loss { LOSS_AUTO, LOSS_SOFTMAX, LOSS_SIGMOID, LOSS_MSE, LOSS_HUBER, LOSS_DICE };
/* What must be known of a sample: its class, nothing, a number, or a number for every pixel. */
enum data_truth { TRUTH_LABELS, TRUTH_NONE, TRUTH_TARGETS, TRUTH_LABEL_IMAGES };
enum train_on_nan { NAN_STOP, NAN_SKIP };
enum train_memory { MEMORY_PLAIN, MEMORY_RECOMPUTE, MEMORY_HALF, MEMORY_STREAM, MEMORY_AUTO };
enum train_store { STORE_SINGLE, STORE_BF16 };
enum ranks_bind { BIND_AUTO, BIND_NONE };
enum stage_recompute { RECOMPUTE_AUTO, RECOMPUTE_ALWAYS, RECOMPUTE_NEVER };
enum generate_condition { GENERATE_BY_CLASS, GENERATE_NONE };
enum distill_loss { DISTILL_PROBABILITIES, DISTILL_LOGITS };
enum privacy_unit { UNIT_PATCH, UNIT_PATIENT };
enum privacy_by { BY_AUTO, BY_RDP, BY_PRV };

struct train_config {
    int64_t seed;
    int objective; /* index in objective_names */
    struct texts classes;
    struct {
        char *name, *weights;
        int padding;    /* enum padding */
        int head, norm; /* enum head_kind, enum norm_rule */
        int activation; /* enum network_activation */
        int64_t input_px;
        struct texts fresh;
    } network;
    struct {
        struct texts train, slides, val, test, synthetic;
        double synthetic_share; /* of an epoch; 0: all synthetic patches once */
        char *label;            /* column of the slide lists */
        double mpp;             /* of whole slides; 0: long_side_px says their size */
        int64_t long_side_px;
        int split; /* enum data_split */
        double val_fraction;
        int64_t folds, fold; /* 0: no folds; from 1 */
        char *patient, *hard_negatives, *stain_template;
        char *text, *patient_column, *id; /* columns of tables of texts; text "": no texts */
        char *tokenizer;
        int64_t vocabulary, max_tokens;
        int long_rule; /* enum sequence_rule */
        double window_overlap;
        char *audio; /* column of tables of recordings; "": no recordings */
        double max_seconds, voice;
        bool keep_case;
        int stain;   /* enum stain_method */
        int balance; /* enum data_balance */
        int64_t resize_px, window_mb, workers;
        double spacing_um_px;
        double mean[3], std[3];
    } data;
    struct augment_options augment; /* crop_px is set by the trainer */
    struct {
        int64_t epochs, batch, accumulate;
        double clip, huber_delta, smoothing, mixup, ema;
        int loss;   /* enum train_loss */
        int memory; /* enum train_memory */
        int store;  /* enum train_store */
        int64_t memory_mb, tile_px;
        char *spill;
        int monitor; /* enum train_monitor */
        int on_nan;  /* enum train_on_nan */
        bool tta;
    } train;
    struct optimizer_options optimizer; /* threads is set by the trainer */
    struct schedule_options schedule;   /* epochs is set by the trainer */
    struct {
        bool overlap, scale_rate, shard_optimizer, sync_bn, compress;
        int bind; /* enum ranks_bind */
        int64_t bucket_mb, compress_warmup, timeout_s;
        double compress_keep;
    } ranks;
    int64_t parallel[GRID_AXES];    /* the grid of ranks, without space: see config_grid */
    bool sequence;                  /* parallel.sequence: tokens are divided as heads are */
    int64_t space[2];               /* parallel.space: rows and columns of parts of a patch */
    struct {                        /* of the section parallel too */
        int schedule;               /* enum program_kind */
        int64_t times, micro_batch; /* 0: not given */
        int recompute;              /* enum stage_recompute */
        struct texts cut;
        bool automatic; /* until parallel_settle (parallel_plan.h) has chosen all of this */
    } pipeline;
    struct {
        int64_t every_steps, keep;
    } checkpoint;
    struct {
        int process;           /* enum process */
        int condition;         /* enum generate_condition */
        int colour;            /* enum colour */
        double drop;           /* share of samples whose condition is withheld */
        char *centre, *latent; /* "": none */
    } generate;
    struct {
        char *teacher; /* "": no distillation */
        int64_t crop_px, margin_px, windows;
        int loss; /* enum distill_loss */
    } distill;
    struct {
        double epsilon; /* 0: the training is not private; infinite: clipped, without noise */
        double delta, clip, sigma, hold_out;
        int unit;       /* enum privacy_unit */
        int accountant; /* enum privacy_by */
        int64_t multiplicity, rank;
        struct texts public_data, tune;
    } privacy;
    struct {
        struct texts stores;
        double threshold;
        int64_t limit;
    } mine;
    enum data_truth truth; /* not a key: set by objective_resolve */
    char *classes_from;    /* not a key: the store that classes are from; NULL: the config says */
};

/* Choices of keys, NULL-terminated, in the order of the enums; "auto" is left to the objective. */
extern const char *const objective_names[]; /* objectives.c */
extern const char *const config_monitors[], *const config_losses[], *const config_activations[];

enum config_type {
    CONFIG_BOOL,
    CONFIG_INT,    /* int64_t, between min and max */
    CONFIG_REAL,   /* double, between min and max */
    CONFIG_RGB,    /* double [3], between min and max */
    CONFIG_CHOICE, /* int: the index in choices */
    CONFIG_PARTS,  /* int64_t [2]: rows x columns, "2x3"; "3": 1x3. Each between min and max */
    CONFIG_TEXT,   /* char *, the config's */
    CONFIG_TEXTS,  /* struct texts, the config's */
};

struct config_key {
    const char *path; /* "data.train" */
    enum config_type type;
    size_t offset;       /* in struct train_config */
    const char *initial; /* default, as YAML */
    double min, max;     /* numbers */
    const char *const *choices;
    const char *help;
};
/* In the order of the template. */
extern const struct config_key config_keys[];
extern const size_t config_n_keys;

/* The defaults, then the file, then the settings ("key.path=value", the value as YAML). Errors are
 * ERR_USAGE and name file and line (or the setting), the key, and what is allowed. path NULL: only
 * defaults and settings. *out is the caller's; free with config_free. */
bool config_read(const char *path, const char *const *settings, size_t n_settings,
                 struct train_config *out, struct err *err);
/* The same from memory; path only names it in messages. */
bool config_parse(const char *text, size_t size, const char *path, const char *const *settings,
                  size_t n_settings, struct train_config *out, struct err *err);
void config_free(struct train_config *config); /* also fine on a zeroed struct */

/* NULL if there is no such key. */
const struct config_key *config_key_at(const char *path);
/* Sets one key, the value as YAML; `name` is used in messages ("--set"). */
bool config_set(struct train_config *config, const struct config_key *key, const char *yaml,
                const char *name, struct err *err);

/* Whether what is learnt from is whole slides (data.slides) instead of patches. */
static inline bool config_whole(const struct train_config *config)
{
    return config->data.slides.n > 0;
}
/* Whether it is tables of texts (data.text). */
static inline bool config_texts(const struct train_config *config)
{
    return config->data.text[0] != 0;
}
/* Whether it is tables of recordings (data.audio); whether it is tables. */
static inline bool config_recordings(const struct train_config *config)
{
    return config->data.audio[0] != 0;
}
static inline bool config_tables(const struct train_config *config)
{
    return config_texts(config) || config_recordings(config);
}
/* Whether activations are kept as bfloat16 though the whole network runs at once. */
static inline bool config_half(const struct train_config *config)
{
    return config->train.memory == MEMORY_HALF ||
           (config->train.memory == MEMORY_PLAIN && config->train.store == STORE_BF16);
}
/* Whether the training is differentially private. */
static inline bool config_private(const struct train_config *config)
{
    return config->privacy.epsilon > 0;
}
/* Whether privacy.public_data has this: "val", "test". */
bool config_public(const struct train_config *config, const char *data);
/* Whether only a part of the network is learnt (privacy.tune); and whether that are adapters. */
bool config_tunes(const struct train_config *config);
bool config_adapts(const struct train_config *config);
/* Refuses what cannot be private. After config_check_parallel. */
bool config_check_private(const struct train_config *config, struct err *err);
extern const char *const privacy_units[], *const privacy_accountants[]; /* NULL-terminated */

/* Refuses settings that are for patches alone where slides are given, and the other way round. */
bool config_check_slides(const struct train_config *config, struct err *err);

/* Refuses settings that are for images where texts or recordings are given, and the other way
 * round. */
bool config_check_texts(const struct train_config *config, struct err *err);

/* Patches that go through the network together, and how many times that is in a step on each
 * replica; their product is train.batch x train.accumulate. After config_check_parallel. */
int64_t config_micro_batch(const struct train_config *config);
int64_t config_micro_batches(const struct train_config *config);
/* Whether the network is cut into stages. */
static inline bool config_staged(const struct train_config *config)
{
    return config->parallel[GRID_STAGE] > 1;
}
/* Refuses what cannot be divided over ranks as the section parallel says. How many ranks there are
 * is not looked at. */
bool config_check_parallel(const struct train_config *config, struct err *err);

/* Whether patches are divided over ranks (parallel.space). */
static inline bool config_divided(const struct train_config *config)
{
    return config->space[0] * config->space[1] > 1;
}
/* Refuses what does not go with heads that are divided over ranks (parallel.heads). */
bool config_check_heads(const struct train_config *config, struct err *err);
/* The grid of ranks that the section parallel asks for: of divided patches, GRID_BANDS has the rows
 * and GRID_SPACE the columns. */
void config_grid(const struct train_config *config, int64_t asked[GRID_AXES]);
/* rank_grid_extents of it; errors have the numbers as the config has them. */
bool config_extents(const struct train_config *config, int ranks, int extent[GRID_AXES],
                    struct err *err);
/* Refuses what cannot be divided over rows and columns of ranks. */
bool config_check_space(const struct train_config *config, struct err *err);

/* Are the classes the default, normal and tumor? */
bool config_default_classes(const struct train_config *config);
/* Then they are replaced by those of the first store in the data; a store that names none has these
 * two. */
bool config_adopt_classes(struct train_config *config, struct err *err);

/* The same for the labels of slide lists that are not these two: the classes are those, sorted. */
bool config_adopt_labels(struct train_config *config, struct err *err);

/* The same for tables of texts. */
bool config_adopt_text_labels(struct train_config *config, struct err *err);
/* Notes the labels of the tables for training that are not in *found yet (dataset_texts.c). */
bool config_text_labels(const struct train_config *config, struct texts *found, struct err *err);
/* Adds a copy of an item that is not there yet, unless it is "". */
bool texts_note(struct texts *texts, const char *item, struct err *err);

/* Two configs as texts of config_print: true if they differ only in what changes no result, in how
 * the network is cut into stages, or, on another number of ranks, in how a step is made up. The
 * error, with `path`, has the first line that differs. */
bool config_same(const char *path, const char *then, const char *now, bool same_ranks,
                 struct err *err);

/* All keys with their defaults and help as comments: a file that config_read accepts once the data
 * paths are filled in. */
void config_print_template(FILE *stream);
/* All keys with their values, as YAML. */
void config_print(const struct train_config *config, FILE *stream);
/* The same as text, the caller's; NULL if no memory. */
char *config_text(const struct train_config *config);
#endif
