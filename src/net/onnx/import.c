/* import.c: the driver of the importer: inputs, then every node that is needed, then outputs. */
#include "net/onnx/import.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "net/onnx/external.h"
#include "net/onnx/model.h"

#define FOLD_LIMIT ((int64_t)1 << 24)

/* Marks the nodes that the outputs depend on. Nodes are in an order in which they can run. */
static bool mark_needed(struct onnx_import *im, struct err *err)
{
    const Onnx__GraphProto *proto = im->proto;
    im->needed = calloc(proto->n_node + 1, sizeof *im->needed);
    if (!im->needed)
        return err_memory(err, im->path);
    for (size_t i = 0; i < proto->n_output; i++) {
        const struct onnx_name *name = onnx_name_find(im, proto->output[i]->name);
        if (name && name->producer >= 0 && onnx_output_wanted(im, name->text))
            im->needed[name->producer] = true;
    }
    for (size_t i = proto->n_node; i-- > 0;) {
        onnx_node *node = proto->node[i];
        for (size_t k = 0; im->needed[i] && k < node->n_input; k++) {
            const struct onnx_name *name = onnx_name_find(im, node->input[k]);
            if (name && name->producer >= (int32_t)i)
                return err_set(err, ERR_FORMAT, "%s: '%.200s' is used before it is computed",
                               im->path, name->text);
            if (name && name->producer >= 0)
                im->needed[name->producer] = true;
        }
    }
    return true;
}

static bool is_standard(onnx_node *node)
{
    return !node->domain || !*node->domain || strcmp(node->domain, "ai.onnx") == 0;
}

static bool import_node(struct onnx_import *im, size_t index, struct err *err)
{
    onnx_node *node = im->proto->node[index];
    const char *type = node->op_type ? node->op_type : "";
    bool standard = is_standard(node);
    const struct onnx_operator *known = standard ? onnx_operator_find(type) : NULL;
    bool done = false;
    if (standard && !onnx_fold(im, node, &done, err))
        return false;
    if (done)
        return true;
    if (standard && !onnx_fuse(im, index, &done, err))
        return false;
    if (done)
        return true;
    if (!known || im->opset < known->since)
        return err_set(err, ERR_FORMAT, "operator '%s%s%s' (opset %lld) is not supported",
                       standard ? "" : node->domain, standard ? "" : ".", type,
                       (long long)im->opset);
    if (!known->handler(im, node, err)) {
        err_prefix(err, type);
        return false;
    }
    return true;
}

/* "file: node 'name': " before the error. A node without a name is called after its output. */
static bool blame(const struct onnx_import *im, onnx_node *node, struct err *err)
{
    struct err why = { 0 };
    if (!err)
        return false;
    why = *err;
    const char *name = node->name && *node->name ? node->name
                       : node->n_output          ? node->output[0]
                                                 : "";
    return err_set(err, why.kind, "%s: node '%.200s': %.700s", im->path, name, why.text);
}

/* Outputs of the graph are activations: a constant or an input that is passed on gets a node. */
static bool add_output(struct onnx_import *im, const Onnx__ValueInfoProto *info, struct err *err)
{
    struct onnx_name *name = onnx_name_find(im, info->name);
    char *text = name ? (char *)name->text : NULL;
    if (!name)
        return err_set(err, ERR_FORMAT, "%s: an output has no name", im->path);
    Onnx__NodeProto carrier = ONNX__NODE_PROTO__INIT;
    carrier.n_input = carrier.n_output = 1;
    carrier.input = carrier.output = &text;
    value_id value = onnx_value(im, &carrier, 0, err);
    if (value == NO_VALUE)
        return err_prefix(err, im->path);
    if (im->graph->values[value].kind != VALUE_NODE) {
        value = onnx_add_scale(im, &carrier, ".output", value, 1, 0, err);
        if (value == NO_VALUE)
            return err_prefix(err, im->path);
    }
    return graph_output(im->graph, name->text, value) != NO_VALUE ||
           err_set(err, im->graph->err.kind, "%s: %s", im->path, im->graph->err.text);
}

static bool run(struct onnx_import *im, struct err *err)
{
    const Onnx__GraphProto *proto = im->proto;
    if (!onnx_names_build(im, err) || !mark_needed(im, err))
        return false;
    for (size_t i = 0; i < proto->n_input; i++)
        if (!onnx_add_input(im, proto->input[i], err))
            return false;
    for (size_t i = 0; i < proto->n_node; i++) /* before nodes are read together with others */
        if (im->needed[i] && is_standard(proto->node[i]) &&
            !onnx_attributes_check(proto->node[i], err))
            return blame(im, proto->node[i], err);
    for (size_t i = 0; i < proto->n_node; i++)
        if (im->needed[i] && !import_node(im, i, err))
            return blame(im, proto->node[i], err);
    for (size_t i = 0; i < proto->n_output; i++)
        if (onnx_output_wanted(im, proto->output[i]->name) &&
            !add_output(im, proto->output[i], err))
            return false;
    if (!im->shapes_only && !graph_allocate(im->graph, err))
        return err_prefix(err, im->path);
    return graph_ok(im->graph, err) || err_prefix(err, im->path);
}

/* One import of an unpacked model. *open: whether it leaves the batch open. */
static bool import_once(const Onnx__ModelProto *model, const struct onnx_import *setup,
                        struct graph **out, bool *open, struct err *err)
{
    struct onnx_import im = *setup;
    im.proto = model->graph;
    im.opset = onnx_model_opset(model);
    im.graph = graph_new(model->graph->name ? model->graph->name : "");
    bool ok = im.graph ? run(&im, err) : err_memory(err, im.path);
    ok = ok && (im.shapes_only || onnx_layers_read(&im, model, err)) && graph_ok(im.graph, err);
    if (ok)
        *out = im.graph;
    else
        graph_free(im.graph);
    *open = im.open_batch;
    onnx_names_free(&im);
    free(im.needed);
    return ok;
}

/* What onnx_write keeps in the metadata. */
static bool find_config(const Onnx__ModelProto *model, const char *path, char **out,
                        struct err *err)
{
    *out = NULL;
    for (size_t i = 0; i < model->n_metadata_props; i++) {
        const Onnx__StringStringEntryProto *note = model->metadata_props[i];
        if (note->key && note->value && strcmp(note->key, ONNX_CONFIG_KEY) == 0 && !*out) {
            *out = strdup(note->value);
            return *out || err_memory(err, path);
        }
    }
    return true;
}

/* beside: weights may be in other files, in the folder of path. */
static bool parse(const uint8_t *bytes, size_t size, const char *path, bool beside,
                  const struct onnx_options *options, struct graph **out, struct err *err)
{
    static const struct onnx_options defaults = { 0 };
    struct err own;
    Onnx__ModelProto *model;
    struct graph *graph = NULL, *other = NULL;
    struct onnx_external *external = NULL;
    bool open = false;
    err = err ? err : &own; /* messages are made in parts */
    if (!onnx_model_parse(bytes, size, path, &model, err))
        return false;
    options = options ? options : &defaults;
    bool ok = onnx_external_open(model->graph, path, beside, &external, err);
    struct onnx_import setup = {
        .path = path,
        .options = options,
        .batch = options->batch ? options->batch : 1,
        /* weights may be moved about (one byte of the file is at most one element) */
        .fold_budget = (options->fold_limit ? options->fold_limit : FOLD_LIMIT) + (int64_t)size +
                       onnx_external_bytes(external),
        .external = external,
    };
    ok = ok && import_once(model, &setup, &graph, &open, err);
    if (ok && open) {
        setup.batch++, setup.shapes_only = true;
        if (import_once(model, &setup, &other, &open, &own))
            onnx_free_batch(graph, other);
        graph_free(other);
    }
    if (ok && options->config)
        ok = find_config(model, path, options->config, err);
    if (ok)
        *out = graph;
    else
        graph_free(graph);
    onnx_external_close(external);
    onnx__model_proto__free_unpacked(model, NULL);
    return ok;
}

bool onnx_parse(const uint8_t *bytes, size_t size, const char *path,
                const struct onnx_options *options, struct graph **out, struct err *err)
{
    return parse(bytes, size, path, false, options, out, err);
}

bool onnx_read(const char *path, const struct onnx_options *options, struct graph **out,
               struct err *err)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(err, path, "open");
    void *map = MAP_FAILED;
    size_t size = 0;
    bool ok = false;
    if (fstat(fd, &status) != 0) {
        err_errno(err, path, "read");
    } else if (!S_ISREG(status.st_mode) || status.st_size < 1 ||
               (uint64_t)status.st_size > ONNX_SIZE_LIMIT) {
        err_set(err, ERR_FORMAT, "%s: not an ONNX file: empty, or larger than 2 GB", path);
    } else {
        size = (size_t)status.st_size;
        map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        ok = map != MAP_FAILED || err_errno(err, path, "map");
    }
    close(fd);
    ok = ok && parse(map, size, path, true, options, out, err);
    if (map != MAP_FAILED)
        munmap(map, size);
    return ok;
}
