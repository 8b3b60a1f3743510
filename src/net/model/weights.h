/* weights.h: the parameters of a graph from a file of weights and to a safetensors file, by name.
 */
#ifndef NET_MODEL_WEIGHTS_H
#define NET_MODEL_WEIGHTS_H
#include "net/graph/graph.h"
#include "net/model/safetensors.h"

/* Mismatches between a network and a file. The texts are one line each: "fc.weight: [2, 512] here,
 * [1000, 512] in the file" for wrong shapes, the name alone for the others. */
struct weights_list {
    char **texts;
    size_t n;
};

struct weights_report {
    size_t n_loaded;
    struct weights_list missing;     /* the network has it, the file does not */
    struct weights_list unexpected;  /* the file has it, the network does not */
    struct weights_list wrong_shape; /* or a type that is not a number */
    struct weights_list fresh; /* did not match, but options.fresh allows it: left unchanged */
};

struct weights_options {
    const char *prefix;       /* starts every name in the file, e.g. "module."; NULL: none */
    const char *const *fresh; /* names, or prefixes that end with '.', that may be missing or have
                               * another shape, and then stay unchanged: a new head */
    size_t n_fresh;
    bool any_missing;    /* missing names are not an error */
    bool any_unexpected; /* nor are names that the network does not have */
};

/* Fills the parameters of the graph, which must have been allocated (graph_allocate or
 * graph_initialize). Nothing is changed unless everything matches. "num_batches_tracked" is
 * ignored. The report (may be NULL) is always filled; free with weights_report_free. options may be
 * NULL. */
bool weights_load(struct graph *graph, const struct safetensors *file,
                  const struct weights_options *options, struct weights_report *report,
                  struct err *err);
/* A file of weights by its content: safetensors, or a file of PyTorch (torch_file.h). *out is the
 * caller's; free with safetensors_close. */
bool weights_open(const char *path, struct safetensors *out, struct err *err);
/* weights_open + weights_load. */
bool weights_read(struct graph *graph, const char *path, const struct weights_options *options,
                  struct weights_report *report, struct err *err);
void weights_report_free(struct weights_report *report); /* also fine on a zeroed struct */

/* All parameters and buffers, in the order of the graph; see safetensors_write. */
bool weights_write(const struct graph *graph, const char *path,
                   const struct safetensors_note *notes, size_t n_notes, struct err *err);
#endif
