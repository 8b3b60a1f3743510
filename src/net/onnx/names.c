/* names.c: the names of an ONNX graph in a hash table, with the nodes that produce and use them. */
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "net/onnx/import.h"

/* More names than any network has; keeps what is quadratic in them short. */
#define NAME_LIMIT 100000
#define NODE_LIMIT 20000

struct onnx_name *onnx_name_find(const struct onnx_import *im, const char *text)
{
    if (!text || !*text || !im->n_buckets)
        return NULL;
    for (uint32_t at = (uint32_t)rng_hash(text) & (im->n_buckets - 1); im->buckets[at] >= 0;
         at = (at + 1) & (im->n_buckets - 1))
        if (strcmp(im->names[im->buckets[at]].text, text) == 0)
            return &im->names[im->buckets[at]];
    return NULL;
}

/* The entry of this name, a new one if it is not there. The table has room. */
static struct onnx_name *intern(struct onnx_import *im, const char *text)
{
    struct onnx_name *found = onnx_name_find(im, text);
    if (found)
        return found;
    uint32_t at = (uint32_t)rng_hash(text) & (im->n_buckets - 1);
    while (im->buckets[at] >= 0)
        at = (at + 1) & (im->n_buckets - 1);
    im->buckets[at] = im->n_names;
    im->names[im->n_names] =
        (struct onnx_name){ .text = text, .value = NO_VALUE, .producer = -1, .user = -1 };
    return &im->names[im->n_names++];
}

static bool defined(const struct onnx_name *name)
{
    return name->tensor || name->host || name->producer >= 0 || name->bound;
}

static bool twice(const struct onnx_import *im, const char *text, struct err *err)
{
    return err_set(err, ERR_FORMAT, "%s: the name '%.200s' is used twice", im->path, text);
}

static bool add_initializers(struct onnx_import *im, struct err *err)
{
    for (size_t i = 0; i < im->proto->n_initializer; i++) {
        const Onnx__TensorProto *tensor = im->proto->initializer[i];
        if (!tensor->name || !*tensor->name)
            return err_set(err, ERR_FORMAT, "%s: an initializer has no name", im->path);
        struct onnx_name *name = intern(im, tensor->name);
        if (name->tensor)
            return twice(im, name->text, err);
        name->tensor = tensor;
    }
    return true;
}

static bool add_node(struct onnx_import *im, int32_t index, struct err *err)
{
    onnx_node *node = im->proto->node[index];
    for (size_t i = 0; i < node->n_input; i++) {
        if (!*node->input[i])
            continue;
        struct onnx_name *name = intern(im, node->input[i]);
        name->n_uses++, name->user = index;
    }
    for (size_t i = 0; i < node->n_output; i++) {
        if (!*node->output[i])
            continue;
        struct onnx_name *name = intern(im, node->output[i]);
        if (defined(name))
            return twice(im, name->text, err);
        name->producer = index;
    }
    return true;
}

/* Room for every name that the file can hold. */
static bool make_room(struct onnx_import *im, struct err *err)
{
    const Onnx__GraphProto *proto = im->proto;
    size_t most = proto->n_initializer + proto->n_input + proto->n_output + im->options->n_bound;
    if (proto->n_node > NODE_LIMIT)
        return err_set(err, ERR_FORMAT, "%s: %zu nodes; at most %d are supported", im->path,
                       proto->n_node, NODE_LIMIT);
    for (size_t i = 0; i < proto->n_node; i++)
        most += proto->node[i]->n_input + proto->node[i]->n_output;
    if (most > NAME_LIMIT)
        return err_set(err, ERR_FORMAT, "%s: too many names", im->path);
    im->n_buckets = 16;
    while (im->n_buckets < 2 * most)
        im->n_buckets *= 2;
    im->names = calloc(most + 1, sizeof *im->names);
    im->buckets = malloc(im->n_buckets * sizeof *im->buckets);
    if (!im->names || !im->buckets)
        return err_memory(err, im->path);
    for (uint32_t i = 0; i < im->n_buckets; i++)
        im->buckets[i] = -1;
    return true;
}

static bool add_bound(struct onnx_import *im, struct err *err)
{
    for (size_t i = 0; i < im->options->n_bound; i++) {
        const struct onnx_bound *bound = &im->options->bound[i];
        struct onnx_name *name = intern(im, bound->name);
        struct host *host =
            onnx_host_new(im, bound->ints ? HOST_INT : HOST_FLOAT, bound->shape, err);
        if (!host)
            return err_prefix(err, im->path);
        for (int64_t k = 0; k < host->count; k++)
            if (bound->ints)
                host->ints[k] = bound->ints[k];
            else
                host->floats[k] = bound->floats[k];
        name->host = host, name->bound = true;
    }
    return true;
}

bool onnx_output_wanted(const struct onnx_import *im, const char *text)
{
    if (!text || !*text)
        return false;
    for (size_t i = 0; i < im->options->n_outputs; i++)
        if (strcmp(im->options->outputs[i], text) == 0)
            return true;
    return !im->options->outputs;
}

bool onnx_names_build(struct onnx_import *im, struct err *err)
{
    if (!make_room(im, err) || !add_bound(im, err) || !add_initializers(im, err))
        return false;
    for (size_t i = 0; i < im->proto->n_input; i++)
        if (im->proto->input[i]->name && *im->proto->input[i]->name)
            intern(im, im->proto->input[i]->name);
    for (size_t i = 0; i < im->proto->n_node; i++)
        if (!add_node(im, (int32_t)i, err))
            return false;
    for (size_t i = 0; i < im->proto->n_output; i++)
        if (onnx_output_wanted(im, im->proto->output[i]->name))
            intern(im, im->proto->output[i]->name)->n_uses++;
    return true;
}

void onnx_names_free(struct onnx_import *im)
{
    for (int32_t i = 0; i < im->n_names; i++)
        host_free(im->names[i].host);
    free(im->names);
    free(im->buckets);
}
