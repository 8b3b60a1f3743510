/* onnx.h: networks from and to ONNX files.
 *
 * Import supports the operators that our graph can express (a table in onnx/table.c), computes
 * constants (shape arithmetic as exported by PyTorch) and names an unsupported operator together
 * with its node. Parameters keep the names of their initializers. The file is untrusted data:
 * lengths, nesting and counts are checked before anything is allocated.
 *
 * Names of layers: every tensor and node of a file is found under its name there (graph_find), and
 * the modules of a network that PyTorch exported under theirs. Where the graph has aliases, export
 * gives them to the tensors, so that other programs find them too, and keeps all of them in the
 * metadata ("microtome.layers"), from which import restores them.
 *
 * Export writes opset 17 with the weights in the file. */
#ifndef NET_ONNX_ONNX_H
#define NET_ONNX_ONNX_H
#include "net/graph/graph.h"

/* An input of the model that is given a value at import and so is not an input of the graph. */
struct onnx_bound {
    const char *name;
    struct shape shape;  /* rank 0: one number; extents may be 0 */
    const float *floats; /* one of the two */
    const int64_t *ints;
};

struct onnx_options {
    int64_t batch;         /* for a first axis without a size; 0: 1 */
    int64_t height, width; /* for the axes 2 and 3 of an image without a size; 0: an error */
    bool as_stored;        /* inputs keep the order of their axes: see below */
    int64_t fold_limit;    /* limit for the elements of computed constants; 0: 2^24 */
    const struct onnx_bound *bound;
    size_t n_bound;
    const char *const *outputs; /* only these outputs of the model; NULL: all */
    size_t n_outputs;
    char **config; /* receives the text of the config.json in the file's metadata, the caller's;
                    * NULL if there is none */
};

/* An input [N, H, W, 3] is one [N, 3, H, W] of the graph, and an image of bytes (uint8) is one of
 * floats from 0 to 1, unless options say as_stored.
 *
 * *out is the caller's; free with graph_free. options may be NULL. Weights may be in other files
 * beside this one (external.h). Twice the memory of the weights
 * while it runs; 0.4 s for ResNet-50 (100 MB). */
bool onnx_read(const char *path, const struct onnx_options *options, struct graph **out,
               struct err *err);
/* The same from memory; path only names it in messages, and all weights must be inside. */
bool onnx_parse(const uint8_t *bytes, size_t size, const char *path,
                const struct onnx_options *options, struct graph **out, struct err *err);

struct onnx_write_options {
    bool fixed_batch;     /* else the first axis of inputs and outputs is "batch", any size */
    const char *producer; /* "microtome" if NULL */
    const char *config;   /* text of a config.json, kept in the file's metadata; NULL: none */
};

/* Written to a temporary file and renamed. The graph's parameters must have values. options may be
 * NULL. As fast as the disk takes the weights. */
bool onnx_write(const struct graph *graph, const char *path,
                const struct onnx_write_options *options, struct err *err);
#endif
