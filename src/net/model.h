/* model.h: a network with its weights and what it expects of an image: what a user names with
 * --model or --network. */
#ifndef NET_MODEL_H
#define NET_MODEL_H
#include "base/image.h"
#include "net/graph.h"
#include "net/model_config.h"
#include "net/model_prepare.h"

/* Either `file`: an ONNX file, or safetensors with a config.json beside it that names the network,
 * or a folder with model.onnx or model.safetensors; or `network`: a name of the zoo, with weights
 * from a safetensors file or drawn from a seed. */
/* What the outputs of a network are: found out, or as the user says. */
enum model_outputs { OUTPUTS_AUTO, OUTPUTS_PROBABILITIES, OUTPUTS_LOGITS };
extern const char *const model_outputs_names[]; /* NULL-terminated, in the order of the enum */

struct model_source {
    const char *file;
    const char *network;
    const char *weights; /* safetensors for `network`; NULL: drawn from init_seed */
    uint64_t init_seed;
    int64_t classes; /* for drawn weights; 0: the network's default. Weights bring their own */
    int64_t height, width;      /* of the input; 0: what the file or the network says */
    enum model_outputs outputs; /* for model_open_classifier */
};

/* How the outputs of the graph become scores; see classifier.h. */
enum score_rule {
    SCORE_SOFTMAX,
    SCORE_SIGMOID, /* each class by itself */
    SCORE_AS_IS,
};

struct model {
    struct graph *graph;        /* one image input; the first output is the logits */
    struct model_config config; /* without a config.json: RGB / 255, classes named by number */
    char *name;                 /* of the network, or of the file */
    enum score_rule rule;       /* softmax, or sigmoid where there is one class, if not known */
    enum model_outputs outputs; /* as given to model_open_classifier */
    const char *ending;         /* the layer that it took off the end of the graph; NULL: none */
};

/* *out is the caller's; close with model_close. */
bool model_open(const struct model_source *source, struct model **out, struct err *err);
void model_close(struct model *model); /* NULL-safe */

/* Logits [classes] -> scores: softmax, or sigmoid where there is one. */
void model_scores(const float *logits, int64_t classes, double *scores);
#endif
