/* model_config.h: how an image is prepared for a network and what the network's outputs mean: the
 * config.json beside the weights, with the keys of WSInfer's model zoo. Our own settings are under
 * the key "microtome", which other readers ignore. */
#ifndef NET_MODEL_MODEL_CONFIG_H
#define NET_MODEL_MODEL_CONFIG_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "net/graph/transform.h"

/* One change of a patch's size, as torchvision's transform of the same name. */
enum model_sizing_kind {
    MODEL_RESIZE,         /* to height x width */
    MODEL_RESIZE_SHORTER, /* the shorter side to height (Resize with one number) */
    MODEL_CENTER_CROP,    /* to height x width; a smaller patch is an error */
};
struct model_sizing {
    enum model_sizing_kind kind;
    int64_t height, width;
};
#define MODEL_MAX_SIZINGS 8

/* How stains are normalised before anything else is done to a patch. Numbers that the method does
 * not use are 0. */
struct model_stain {
    char method[16]; /* "": not specified; "none": left as they are; else a name from src/tissue */
    bool per_patch;  /* fitted on each patch; else on the tissue of its slide */
    double matrix[6], concentration_p99[2], lab_mean[3], lab_std[3]; /* the target */
};

/* How slides are read for a network that takes them whole (prepare/slide_image.h). */
struct model_whole {
    bool set;             /* it does; else it takes patches */
    double mpp;           /* um/px; 0: long_side_px decides */
    int64_t long_side_px; /* of the tissue's bounding box */
    char tissue[16];      /* the method by which tissue is found */
    double margin_um;     /* what is as near as this to tissue counts as tissue */
    bool background;      /* pixels without tissue stay as they are; else they are white */
};

/* The number that a model predicts: its output * std + mean. */
struct model_target {
    char *name, *unit; /* "tumor_coverage", "fraction"; the unit may be "" */
    double mean, std;  /* of the training data */
    double min, max;   /* of the training data: a range for colours */
};

/* How a model makes patches (src/diffusion). */
struct model_generator {
    int process;    /* of model_process_names */
    int colour;     /* of model_colour_names: the colours that it learnt */
    bool by_class;  /* it is told the class, as the first num_classes conditions */
    char **centres; /* [n_centres]: the conditions that follow */
    int64_t n_centres;
    char *latent; /* network of an autoencoder, whose maps it makes: its weights are in
                     MODEL_LATENT_FILE beside those of the model. NULL: it makes pixels */
};
#define MODEL_LATENT_FILE "latent.safetensors"
extern const char *const model_process_names[]; /* in the order of enum process */
extern const char *const model_colour_names[];  /* in the order of enum colour */

/* How texts become the inputs of a network; columns are those of the tables that it learnt from. */
struct model_text {
    char *tokenizer;         /* file beside the weights; NULL: the model takes images */
    char *text, *label, *id; /* columns; id "": the number of the row */
    int64_t max_tokens;
    int rule;       /* of model_text_rules */
    double overlap; /* of windows, for the last of these */
    bool keep_case;
};
extern const char *const model_text_rules[]; /* in the order of enum sequence_rule */

/* How recordings become the inputs of a network, log-mel frames (audio/frames.h); columns are those
 * of the tables that it learnt from. */
struct model_audio {
    char *column;     /* of the files; NULL: the model does not take recordings */
    char *label, *id; /* columns; id "": the number of the row */
    int64_t sample_rate_hz, window_samples, hop_samples, mels;
    int64_t max_frames;
    bool refuse; /* recordings that are longer are an error; else their beginning is taken */
};

/* What a model was trained for decides what it takes and what its outputs are. */
enum model_objective {
    OBJECTIVE_CLASSIFY,
    OBJECTIVE_DISTILL,        /* a classifier, fitted to its own window scores */
    OBJECTIVE_ENCODE,         /* patches to small maps and back */
    OBJECTIVE_GENERATE,       /* new patches: `generator` */
    OBJECTIVE_REGRESS,        /* one number for a patch: `target` */
    OBJECTIVE_SEGMENT,        /* one of enum segment_class for every pixel */
    OBJECTIVE_CLASSIFY_TEXT,  /* a classifier of texts: `text` */
    OBJECTIVE_CLASSIFY_AUDIO, /* a classifier of recordings: `audio` */
    OBJECTIVE_MASK,           /* the masked tokens of a text: `text` */
};

/* The classes of a model that segments, in this order: what is not in a nucleus, what is well
 * within one, and the rim of one, which separates nuclei that touch. */
enum segment_class { SEGMENT_BACKGROUND, SEGMENT_INSIDE, SEGMENT_BOUNDARY, SEGMENT_CLASSES };
extern const char *const segment_class_names[SEGMENT_CLASSES];

/* What a model that was trained with differential privacy gives away. */
struct model_privacy {
    bool set;
    double epsilon, delta; /* epsilon 0: infinite, there was no noise */
    double sigma, clip, rate;
    int64_t steps;
    char unit[16], accountant[16]; /* "patch" or "patient"; "rdp" or "prv" */
};

/* What the numbers of an output are. */
enum model_meaning {
    MEANING_UNKNOWN,
    MEANING_LOGITS,
    MEANING_PROBABILITIES,
    MEANING_FEATURES, /* a vector that describes the image; num_classes is 0 */
    MEANING_NUMBER,   /* of `target` */
};
extern const char *const model_meaning_names[]; /* NULL-terminated, in the order of the enum */
struct model_output {
    char name[64]; /* as the network calls it */
    enum model_meaning meaning;
};
#define MODEL_MAX_OUTPUTS 8

struct model_config {
    int64_t num_classes;       /* logits; one: sigmoid, more: softmax; 0: features */
    int64_t patch_size_pixels; /* side of a patch as it is cut, at spacing_um_px */
    double spacing_um_px;      /* 0 only if slides are scaled to a long side */
    char **class_names;        /* [num_classes] */
    struct model_sizing
        sizings[MODEL_MAX_SIZINGS]; /* in this order; none: the patch as it is cut */
    int n_sizings;
    double mean[3], std[3]; /* of RGB / 255; without Normalize 0 and 1 */
    char *architecture;     /* timm's name, or NULL */
    /* "microtome": */
    char *network;        /* name in our zoo, or NULL */
    enum padding padding; /* of the whole network */
    enum head_kind head;  /* by which the network of the zoo was replaced */
    enum norm_rule norm;
    int64_t stride_px; /* of a dense heatmap; 0: not specified */
    enum model_objective objective;
    struct model_generator generator; /* OBJECTIVE_GENERATE */
    struct model_target target; /* OBJECTIVE_REGRESS; num_classes is 1 and the class its name */
    bool independent;           /* every class is scored by itself, with a sigmoid ("activation") */
    struct model_stain stain;
    struct model_whole whole;
    bool icc; /* trained on colours converted to sRGB by ICC profiles */
    struct model_output outputs[MODEL_MAX_OUTPUTS]; /* the first is the one that is used */
    int n_outputs;                                  /* 0: the network itself says */
    char *licence, *citation;                       /* as their author wrote them, or NULL */
    struct model_privacy privacy;
    struct model_text text;   /* OBJECTIVE_CLASSIFY_TEXT; patch size and spacing are then 0 */
    struct model_audio audio; /* OBJECTIVE_CLASSIFY_AUDIO; the same */
};

/* Whether it takes images, not rows of a table: texts or recordings. */
static inline bool model_config_images(const struct model_config *config)
{
    return !config->text.tokenizer && !config->audio.column;
}

/* RGB / 255, no sizings, everything else unset. */
void model_config_init(struct model_config *config);
void model_config_free(struct model_config *config); /* also fine on a zeroed struct */

/* Errors name the file and the key. *out is the caller's; free with model_config_free. */
bool model_config_read(const char *path, struct model_config *out, struct err *err);
/* The same from memory; path only names it in messages. */
bool model_config_parse(const char *text, size_t size, const char *path, struct model_config *out,
                        struct err *err);
/* Its name in config.json: "classify", .. */
const char *model_config_objective(enum model_objective objective);
/* Whether its outputs are features, not scores. */
bool model_config_features(const struct model_config *config);
/* Its name in config.json: "zero", "reflect", .. */
const char *model_config_padding(enum padding padding);
/* The file's text, the caller's; as model_config_write. */
bool model_config_text(const struct model_config *config, char **out, struct err *err);
/* Written to a temporary file and renamed. Everything that WSInfer requires must be set. */
bool model_config_write(const char *path, const struct model_config *config, struct err *err);
#endif
