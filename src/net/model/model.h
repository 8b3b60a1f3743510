/* model.h: a network with its weights and what it expects of an image, as a user specifies it with
 * --model or --network. */
#ifndef NET_MODEL_MODEL_H
#define NET_MODEL_MODEL_H
#include "base/image.h"
#include "net/graph/graph.h"
#include "net/model/model_config.h"
#include "net/model/model_prepare.h"

/* Either `file`: an ONNX file, or safetensors with a config.json beside it that names the network,
 * or a folder with model.onnx or model.safetensors; or `network`: a name of the zoo, with weights
 * from a safetensors file or random weights from a seed. */
/* What the outputs of a network are: determined automatically, or as specified by the user. */
enum model_outputs { OUTPUTS_AUTO, OUTPUTS_PROBABILITIES, OUTPUTS_LOGITS };
extern const char *const model_outputs_names[]; /* NULL-terminated, in the order of the enum */

struct model_source {
    const char *file;
    const char *network;
    const char *weights; /* safetensors for `network`; NULL: random weights from init_seed */
    uint64_t init_seed;
    int64_t classes; /* for random weights; 0: the network's default. Loaded weights determine it */
    bool features;   /* of `network`: without the layer that classifies; the outputs are features */
    int64_t height, width;      /* of the input; 0: as given by the file or the network */
    enum model_outputs outputs; /* for model_open_classifier */
    enum head_kind head;        /* of `network`; a file knows its own */
    enum norm_rule norm;
};

/* How the outputs of the graph become scores; see classifier.h. */
enum score_rule {
    SCORE_SOFTMAX,
    SCORE_SIGMOID, /* each class independently */
    SCORE_AS_IS,
    SCORE_FEATURES, /* not scores: the outputs as they are, any number of them */
    SCORE_NUMBER,   /* not a score: the number of config.target, in its unit */
};

/* The graph has exactly one input, an image [N, C, H, W], and its parameters have values. */
struct model {
    struct graph *graph;        /* one image input; the first output is the logits */
    struct model_config config; /* without a config.json: RGB / 255, classes named by number */
    char *name;                 /* of the network, or of the file and its network (model_name.h) */
    int64_t n_scores;           /* of the output; see model_count */
    enum score_rule rule;       /* if unknown: softmax, or sigmoid for one class */
    enum model_outputs outputs; /* as given to model_open_classifier */
    const char *ending; /* the layer that was removed from the end of the graph; NULL: none */
};

/* *out is the caller's; close with model_close. Reads all weights: ResNet-50 in 60 ms from
 * safetensors, 0.4 s from ONNX; random weights take seconds (graph_initialize). */
bool model_open(const struct model_source *source, struct model **out, struct err *err);
void model_close(struct model *model); /* NULL-safe */

/* Logits [classes] -> scores: softmax, or sigmoid for one class. */
void model_scores(const float *logits, int64_t classes, double *scores);
#endif
